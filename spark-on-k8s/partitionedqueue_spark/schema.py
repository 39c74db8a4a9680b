"""The columns of a message, and which of them are asked for."""

from typing import Final

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_TIME: Final = (TimestampType(), pa.timestamp("us", tz="UTC"))
_TEXT: Final = (StringType(), pa.string())
_LONG: Final = (LongType(), pa.int64())
_INTEGER: Final = (IntegerType(), pa.int32())
_TYPES: Final[dict[str, tuple[DataType, pa.DataType]]] = {
    "partition": _INTEGER,
    "sequence_number": _LONG,
    "enqueued_time": _TIME,
    "delivery_count": _INTEGER,
    "state": _TEXT,
    "message_id": _TEXT,
    "session_id": _TEXT,
    "partition_key": _TEXT,
    "content_type": _TEXT,
    "subject": _TEXT,
    "correlation_id": _TEXT,
    "to": _TEXT,
    "reply_to": _TEXT,
    "reply_to_session_id": _TEXT,
    "time_to_live_ms": _LONG,
    "scheduled_enqueue_time": _TIME,
    "enqueued_sequence_number": _LONG,
    "dead_letter_reason": _TEXT,
    "dead_letter_error_description": _TEXT,
    "dead_letter_source": _TEXT,
    "body": (BinaryType(), pa.binary()),
    "application_properties": (MapType(StringType(), StringType()), pa.map_(pa.string(), pa.string())),
}
COLUMNS: Final = tuple(_TYPES)
BESIDE_THE_MESSAGE: Final = frozenset({"partition", "sequence_number", "enqueued_time", "state"})
"""Columns that are kept beside messages: where no others are asked for, no message is fetched."""


def schema_of(columns: tuple[str, ...]) -> StructType:
    """What Spark is told."""
    return StructType([StructField(name, _TYPES[name][0]) for name in columns])


def arrow_schema_of(columns: tuple[str, ...]) -> pa.Schema:
    """What record batches have."""
    return pa.schema([(name, _TYPES[name][1]) for name in columns])


SCHEMA: Final = schema_of(COLUMNS)
