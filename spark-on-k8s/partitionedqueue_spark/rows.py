"""Stored messages as Arrow record batches: whole columns cut out of whole replies, nothing decoded message by message.

Only application properties are decoded, with what was changed in them, and only of messages that have some.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from partitionedqueue.model import limits
from partitionedqueue.model.amqp_types import decode_value
from partitionedqueue.model.errors import InvalidMessage
from partitionedqueue.model.stored_message import (
    HAS_CHANGES,
    HAS_MESSAGE_ID,
    HAS_PARTITION_KEY,
    HAS_SESSION_ID,
    HAS_TIME_TO_LIVE,
    HEADER_BYTES,
    IS_SCHEDULED,
    VERSION,
    decode_application_properties,
)
from partitionedqueue_spark.chunk import Bytes, Chunk, Longs, Truths
from partitionedqueue_spark.schema import BESIDE_THE_MESSAGE, COLUMNS, arrow_schema_of
from partitionedqueue_spark.sections import FIELDS, Places, places_of, text_extents
from partitionedqueue_spark.texts import text_of

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
_IN_THE_HEADER: Final = {
    "message_id": HAS_MESSAGE_ID,
    "session_id": HAS_SESSION_ID,
    "partition_key": HAS_PARTITION_KEY,
}
_REASONS: Final = {
    "dead_letter_reason": "DeadLetterReason",
    "dead_letter_error_description": "DeadLetterErrorDescription",
}
_STATES: Final = pa.array(["active", "locked", "deferred", "scheduled"], pa.string())
_LETTERS: Final = np.zeros(256, dtype=np.int8)
_LETTERS[[ord(letter) for letter in "alds"]] = range(4)


@dataclass(frozen=True, slots=True)
class Shape:
    """What rows look like: the columns, in their order, and the queue that dead letters come from."""

    columns: tuple[str, ...] = COLUMNS
    dead_letter_source: str | None = None

    @property
    def needs_messages(self) -> bool:
        """Whether any column comes out of the messages themselves."""
        return not BESIDE_THE_MESSAGE.issuperset(self.columns)


def record_batch(partition: int, chunk: Chunk, shape: Shape) -> pa.RecordBatch:
    """One batch of rows. Raises InvalidMessage where a stored form is damaged, or of a later version."""
    columns = _Columns(partition, chunk, shape)
    return pa.RecordBatch.from_arrays(
        [columns.column(name) for name in shape.columns], schema=arrow_schema_of(shape.columns)
    )


def unreadable_batch(partition: int, chunk: Chunk, shape: Shape) -> pa.RecordBatch:
    """Rows of messages that cannot be read: what is known without them, and their stored form as body."""
    beside = _Columns(partition, chunk, shape)

    def column(field: pa.Field) -> pa.Array:
        if field.name == "body":
            return pa.array(chunk.stored, type=pa.binary())
        return beside.column(field.name) if field.name in BESIDE_THE_MESSAGE else pa.nulls(len(chunk), field.type)

    schema = arrow_schema_of(shape.columns)
    return pa.RecordBatch.from_arrays([column(field) for field in schema], schema=schema)


class _Columns:
    """The columns of a chunk, each made when it is asked for; what several need is made once."""

    def __init__(self, partition: int, chunk: Chunk, shape: Shape) -> None:
        self._number = partition
        self._chunk = chunk
        self._shape = shape

    def column(self, name: str) -> pa.Array:
        """One column."""
        if name in FIELDS:
            return self._field(name)
        if name in _IN_THE_HEADER:
            return self._text_in_the_header(name, _IN_THE_HEADER[name])
        if name in _REASONS:
            return self._reason(_REASONS[name])
        made: pa.Array = getattr(self, f"_{name}")()
        return made

    # ---- known without the message

    def _partition(self) -> pa.Array:
        return pa.array(np.full(len(self._chunk), self._number, dtype=np.int32))

    def _sequence_number(self) -> pa.Array:
        return self._queue_wide(self._chunk.sequences)

    def _enqueued_time(self) -> pa.Array:
        return _times(self._chunk.times_ms)

    def _state(self) -> pa.Array:
        if self._chunk.states is None:
            return pa.nulls(len(self._chunk), pa.string())
        return _STATES.take(pa.array(_LETTERS[self._chunk.states]))

    def _queue_wide(self, sequences: Longs) -> pa.Array:
        return pa.array(sequences | (self._number << limits.SEQUENCE_BITS))

    # ---- out of the header of the stored form

    @cached_property
    def _whole(self) -> pa.Array:
        return pa.array(self._chunk.stored, type=pa.binary())

    @cached_property
    def _bounds(self) -> Longs:
        count = len(self._chunk)
        bounds = np.frombuffer(self._whole.buffers()[1], dtype=np.int32, count=count + 1).astype(np.int64)
        if int(np.diff(bounds).min(initial=HEADER_BYTES)) < HEADER_BYTES:
            raise InvalidMessage(f"a stored message is shorter than its header of {HEADER_BYTES} bytes")
        return bounds

    @cached_property
    def _data(self) -> Bytes:
        count = int(self._bounds[-1])
        return np.frombuffer(self._whole.buffers()[2], np.uint8, count) if count else np.empty(0, dtype=np.uint8)

    @cached_property
    def _header(self) -> npt.NDArray[Any]:
        count, bounds = len(self._chunk), self._bounds
        heads = pc.binary_slice(self._whole, 0, HEADER_BYTES).buffers()[2] if count else b""
        header = np.frombuffer(heads, dtype=_HEADER, count=count)
        if not bool((header["version"] == VERSION).all()):
            raise InvalidMessage(
                f"a stored message is not of version {VERSION}; this reader is older than what wrote it"
            )
        ends = header["body_offset"].astype(np.int64) + header["body_length"]
        if bool((ends > np.diff(bounds)).any()):
            raise InvalidMessage("the body of a stored message reaches beyond its end")
        return header

    def _has(self, flag: int) -> Truths:
        there: Truths = (self._header["flags"] & flag) != 0
        return there

    def _delivery_count(self) -> pa.Array:
        return pa.array((self._chunk.deliveries + self._header["deliveries_before"]).astype(np.int32))

    def _time_to_live_ms(self) -> pa.Array:
        return pa.array(self._header["time_to_live_ms"].astype(np.int64), mask=~self._has(HAS_TIME_TO_LIVE))

    def _scheduled_enqueue_time(self) -> pa.Array:
        there = self._has(IS_SCHEDULED)
        if not bool(there.any()):
            return pa.nulls(len(self._chunk), pa.timestamp("us", tz="UTC"))
        return _times(np.where(there, self._header["scheduled_enqueue_time_ms"], 0), ~there)

    def _enqueued_sequence_number(self) -> pa.Array:
        first = self._header["enqueued_sequence_number"].astype(np.int64)
        if not bool(first.any()):
            return pa.nulls(len(self._chunk), pa.int64())
        return pc.if_else(pa.array(first > 0), self._queue_wide(first), None)

    def _dead_letter_source(self) -> pa.Array:
        source = self._shape.dead_letter_source
        if source is None:
            return pa.nulls(len(self._chunk), pa.string())
        return pa.repeat(pa.scalar(source, pa.string()), len(self._chunk))

    def _text_in_the_header(self, name: str, flag: int) -> pa.Array:
        starts = self._bounds[:-1] + self._header[f"{name}_offset"]
        return _strings(self._data, starts, self._header[f"{name}_length"], self._has(flag))

    # ---- out of the sections

    def _body(self) -> pa.Array:
        offsets = self._header["body_offset"].astype(np.int64)
        ends, sizes = offsets + self._header["body_length"], np.diff(self._bounds)
        # A body that is last in every message, behind sections of one size: one cut through the column.
        if len(offsets) and bool((offsets == offsets[0]).all()) and bool((ends == sizes).all()):
            # With no end, Arrow takes a negative size for it wherever there are two messages.
            return pc.binary_slice(self._whole, int(offsets[0]), int(sizes.max()))
        cuts = zip(self._chunk.stored, offsets.tolist(), ends.tolist(), strict=True)
        return pa.array([message[start:end] for message, start, end in cuts], type=pa.binary())

    @cached_property
    def _places(self) -> dict[str, Places]:
        starts = self._bounds[:-1]
        bodies = starts + self._header["body_offset"]
        return places_of(self._data, starts, bodies, [name for name in self._shape.columns if name in FIELDS])

    def _field(self, name: str) -> pa.Array:
        count, places = len(self._chunk), self._places.get(name)
        if places is None:
            return pa.nulls(count, pa.string())
        starts, lengths, others = text_extents(self._data, places)
        there, extents = np.zeros(count, dtype=np.bool_), np.zeros((2, count), dtype=np.int64)
        there[places.rows], extents[:, places.rows] = True, (starts, lengths)
        there[places.rows[others]] = False
        texts = _strings(self._data, extents[0], extents[1], there)
        if not len(others):
            return texts
        values: list[str | None] = texts.to_pylist()
        for place in others.tolist():  # a correlation id may be a number, a UUID or bytes, as a message id
            row, at = int(places.rows[place]), int(places.at[place])
            value, _ = decode_value(self._chunk.stored[row], at - int(self._bounds[row]))
            values[row] = value.hex() if isinstance(value, bytes) else str(value)
        return pa.array(values, type=pa.string())

    @cached_property
    def _texts_of_properties(self) -> dict[int, dict[str, str | None]]:
        """The application properties of the rows that have some, as texts."""
        offsets = self._header["application_properties_offset"]
        found = {}
        for row in np.flatnonzero((offsets != 0) | self._has(HAS_CHANGES)).tolist():
            properties = decode_application_properties(self._chunk.stored[row], int(offsets[row]))
            found[row] = {str(name): text_of(value) for name, value in properties.items()}
        return found

    def _application_properties(self) -> pa.Array:
        kind = pa.map_(pa.string(), pa.string())
        if not self._texts_of_properties:
            return pa.nulls(len(self._chunk), kind)
        rows: list[list[tuple[str, str | None]] | None] = [None] * len(self._chunk)
        for row, properties in self._texts_of_properties.items():
            rows[row] = list(properties.items())
        return pa.array(rows, type=kind)

    def _reason(self, name: str) -> pa.Array:
        if not self._texts_of_properties:
            return pa.nulls(len(self._chunk), pa.string())
        none: dict[str, str | None] = {}
        reasons = [self._texts_of_properties.get(row, none).get(name) for row in range(len(self._chunk))]
        return pa.array(reasons, type=pa.string())


def _times(times_ms: Longs, mask: Truths | None = None) -> pa.Array:
    return pa.array(times_ms * 1000, mask=mask).cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC"))


def _strings(data: Bytes, starts: Longs, lengths: Longs, there: Truths) -> pa.Array:
    """A column of strings gathered from places in `data`; null where `there` is false."""
    count = len(starts)
    if not bool(there.any()):
        return pa.nulls(count, pa.string())
    sizes = np.where(there, lengths, 0).astype(np.int64)
    ends = np.cumsum(sizes)
    if bool((np.where(there, starts, 0) + sizes > len(data)).any()):
        raise InvalidMessage("a text in a stored message reaches beyond its end")
    places = np.repeat(starts - (ends - sizes), sizes) + np.arange(int(ends[-1]))
    offsets = np.zeros(count + 1, dtype=np.int32)
    offsets[1:] = ends
    valid = None if bool(there.all()) else pa.py_buffer(np.packbits(there, bitorder="little").tobytes())
    content = np.ascontiguousarray(data[places])
    texts = pa.Array.from_buffers(pa.string(), count, [valid, pa.py_buffer(offsets), pa.py_buffer(content)])
    if len(content) and int(content.max()) > 127:  # ASCII needs no look at each text
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InvalidMessage("a text in a stored message is not UTF-8") from error
    return texts
