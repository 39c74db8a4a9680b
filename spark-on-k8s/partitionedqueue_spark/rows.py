"""Stored messages as Arrow record batches: whole columns cut out of whole replies, nothing decoded message by message.

Only application properties are decoded, with what was changed in them, and only of messages that have some.
"""

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from partitionedqueue.model import limits
from partitionedqueue.model.amqp_types import Described
from partitionedqueue.model.errors import InvalidMessage
from partitionedqueue.model.stored_message import (
    HAS_CHANGES,
    HAS_MESSAGE_ID,
    HAS_PARTITION_KEY,
    HAS_SESSION_ID,
    HAS_TIME_TO_LIVE,
    HEADER_BYTES,
    VERSION,
    decode_application_properties,
)

Longs: TypeAlias = npt.NDArray[np.int64]

SCHEMA: Final = StructType(
    [
        StructField("partition", IntegerType()),
        StructField("sequence_number", LongType()),
        StructField("enqueued_time", TimestampType()),
        StructField("delivery_count", IntegerType()),
        StructField("message_id", StringType()),
        StructField("session_id", StringType()),
        StructField("partition_key", StringType()),
        StructField("time_to_live_ms", LongType()),
        StructField("body", BinaryType()),
        StructField("application_properties", MapType(StringType(), StringType())),
    ]
)
_ARROW: Final = pa.schema(
    [
        ("partition", pa.int32()),
        ("sequence_number", pa.int64()),
        ("enqueued_time", pa.timestamp("us", tz="UTC")),
        ("delivery_count", pa.int32()),
        ("message_id", pa.string()),
        ("session_id", pa.string()),
        ("partition_key", pa.string()),
        ("time_to_live_ms", pa.int64()),
        ("body", pa.binary()),
        ("application_properties", pa.map_(pa.string(), pa.string())),
    ]
)
# The header of the stored form; its fields in the order of the bytes.
_HEADER: Final = np.dtype(
    [
        ("version", "u1"), ("flags", "u1"),
        ("message_id_length", "<u2"), ("session_id_length", "<u2"), ("partition_key_length", "<u2"),
        ("message_id_offset", "<u4"), ("session_id_offset", "<u4"), ("partition_key_offset", "<u4"),
        ("body_offset", "<u4"), ("body_length", "<u4"), ("deliveries_before", "<u4"),
        ("time_to_live_ms", "<i8"), ("scheduled_enqueue_time_ms", "<i8"), ("enqueued_sequence_number", "<i8"),
        ("changes_offset", "<u4"), ("application_properties_offset", "<u4"),
    ]
)  # fmt: skip
_TICKS_MOST: Final = 3_155_378_976_000_000_000  # the end of the year 9999


def record_batch(
    partition: int, sequences: Longs, times_ms: Longs, deliveries: Longs, stored: Sequence[bytes]
) -> pa.RecordBatch:
    """One batch of rows.

    Args:
        partition: the messages' partition.
        sequences: their sequence numbers within it.
        times_ms: their enqueued times.
        deliveries: how often each was delivered, this time counted.
        stored: their stored forms.

    Raises:
        InvalidMessage: a stored form is damaged, or of a later version.
    """
    whole = pa.array(stored, type=pa.binary())
    header, starts, data = _headers(whole, len(stored))
    flags = header["flags"]

    def strings(name: str, flag: int) -> pa.Array:
        return _strings(data, starts + header[f"{name}_offset"], header[f"{name}_length"], (flags & flag) != 0)

    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.full(len(stored), partition, dtype=np.int32)),
            pa.array(sequences | (partition << limits.SEQUENCE_BITS)),
            pa.array(times_ms * 1000).cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC")),
            pa.array((deliveries + header["deliveries_before"]).astype(np.int32)),
            strings("message_id", HAS_MESSAGE_ID),
            strings("session_id", HAS_SESSION_ID),
            strings("partition_key", HAS_PARTITION_KEY),
            pa.array(header["time_to_live_ms"].astype(np.int64), mask=(flags & HAS_TIME_TO_LIVE) == 0),
            _bodies(whole, header, np.diff(starts, append=len(data)), stored),
            _application_properties(header["application_properties_offset"], (flags & HAS_CHANGES) != 0, stored),
        ],
        schema=_ARROW,
    )


def _headers(whole: pa.Array, count: int) -> tuple[npt.NDArray[Any], Longs, npt.NDArray[np.uint8]]:
    """Every message's header, where each message starts in the array's bytes, and those bytes."""
    _, offsets, values = whole.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32, count=count + 1).astype(np.int64)
    if int(np.diff(bounds).min(initial=HEADER_BYTES)) < HEADER_BYTES:
        raise InvalidMessage(f"a stored message is shorter than its header of {HEADER_BYTES} bytes")
    heads = pc.binary_slice(whole, 0, HEADER_BYTES).buffers()[2] if count else b""
    header = np.frombuffer(heads, dtype=_HEADER, count=count)
    if not bool((header["version"] == VERSION).all()):
        raise InvalidMessage(f"a stored message is not of version {VERSION}; this reader is older than what wrote it")
    data = np.frombuffer(values, dtype=np.uint8, count=int(bounds[-1])) if count else np.empty(0, dtype=np.uint8)
    return header, bounds[:-1], data


def _strings(data: npt.NDArray[np.uint8], starts: Longs, lengths: Longs, there: npt.NDArray[np.bool_]) -> pa.Array:
    """A column of strings gathered from places in `data`; null where `there` is false."""
    count = len(starts)
    if not bool(there.any()):
        return pa.nulls(count, pa.string())
    sizes = np.where(there, lengths, 0).astype(np.int64)
    ends = np.cumsum(sizes)
    places = np.repeat(starts - (ends - sizes), sizes) + np.arange(int(ends[-1]))
    offsets = np.zeros(count + 1, dtype=np.int32)
    offsets[1:] = ends
    valid = None if bool(there.all()) else pa.py_buffer(np.packbits(there, bitorder="little").tobytes())
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data[places]))]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def _bodies(whole: pa.Array, header: npt.NDArray[Any], sizes: Longs, stored: Sequence[bytes]) -> pa.Array:
    offsets = header["body_offset"].astype(np.int64)
    ends = offsets + header["body_length"]
    if bool((ends > sizes).any()):
        raise InvalidMessage("the body of a stored message reaches beyond its end")
    # A body that is last in every message, behind sections of one size: one cut through the column.
    if len(offsets) and bool((offsets == offsets[0]).all()) and bool((ends == sizes).all()):
        # With no end, Arrow takes a negative size for it wherever there are two messages.
        return pc.binary_slice(whole, int(offsets[0]), int(sizes.max()))
    cuts = zip(stored, offsets.tolist(), ends.tolist(), strict=True)
    return pa.array([message[start:end] for message, start, end in cuts], type=pa.binary())


def _application_properties(
    offsets: npt.NDArray[Any], changed: npt.NDArray[np.bool_], stored: Sequence[bytes]
) -> pa.Array:
    kind = pa.map_(pa.string(), pa.string())
    there = (offsets != 0) | changed
    if not bool(there.any()):
        return pa.nulls(len(stored), kind)
    rows: list[list[tuple[str, str | None]] | None] = [None] * len(stored)
    for place in np.flatnonzero(there).tolist():
        properties = decode_application_properties(stored[place], int(offsets[place]))
        rows[place] = [(str(name), _text(value)) for name, value in properties.items()]
    return pa.array(rows, type=kind)


def _text(value: object) -> str | None:
    """An application property as text: as SQL writes booleans; bytes in base64; times as their milliseconds.

    Lists and maps, which AMQP allows only elsewhere, are JSON.
    """
    match value:
        case None | str():
            return None if value is None else str(value)
        case bool():
            return "true" if value else "false"
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case int():
            return format(value, "d")
        case Described():
            return _described(value)
        case list() | dict():
            return json.dumps(_plain(value), ensure_ascii=False)
    return str(value)


def _plain(value: object) -> object:
    """A list or map of texts, and of such lists and maps."""
    if isinstance(value, dict):
        return {str(_text(name)): _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if type(value) is list else _text(value)


def _described(value: Described) -> str | None:
    """.NET's own types, in units of 100 ns: a TimeSpan as it writes it, a DateTimeOffset as ISO 8601."""
    if type(value.value) is int and value.descriptor == "com.microsoft:timespan":
        sign, ticks = "-" if value.value < 0 else "", abs(value.value)
        seconds, fraction = divmod(ticks, 10_000_000)
        days, clock = f"{seconds // 86_400}." if seconds >= 86_400 else "", seconds % 86_400
        rest = f".{fraction:07d}" if fraction else ""
        return f"{sign}{days}{clock // 3600:02d}:{clock // 60 % 60:02d}:{clock % 60:02d}{rest}"
    is_time = type(value.value) is int and value.descriptor == "com.microsoft:datetime-offset"
    if is_time and 0 <= value.value < _TICKS_MOST:
        return (datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=value.value // 10)).isoformat()
    return _text(value.value)
