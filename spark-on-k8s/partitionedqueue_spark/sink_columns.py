"""Which columns a frame may have, and how its Arrow batches become messages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import pyarrow as pa
from pyspark.sql import types as sql

from partitionedqueue.model import limits
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.message import Message
from partitionedqueue.model.storable import Storable, storable
from partitionedqueue_spark.sink_ids import DerivedIds

TEXTS: Final = (
    "message_id", "session_id", "partition_key", "content_type", "subject", "correlation_id", "to", "reply_to",
    "reply_to_session_id",
)  # fmt: skip
COLUMNS: Final = ("body", *TEXTS, "time_to_live_ms", "scheduled_enqueue_time", "application_properties")
THE_BROKERS: Final = (
    "partition", "sequence_number", "enqueued_time", "delivery_count", "state", "enqueued_sequence_number",
    "dead_letter_reason", "dead_letter_error_description", "dead_letter_source",
)  # fmt: skip
"""Columns of what is read that a sender cannot set."""

_WHOLE: Final = (sql.ByteType, sql.ShortType, sql.IntegerType, sql.LongType)
_PROPERTY: Final = (*_WHOLE, sql.StringType, sql.BinaryType, sql.BooleanType, sql.FloatType, sql.DoubleType)
_PROPERTIES: Final = "string, binary, boolean, a whole number, float or double"
_KINDS: Final[Mapping[str, tuple[tuple[type[sql.DataType], ...], str]]] = {
    "body": ((sql.BinaryType, sql.StringType), "binary or string (to_json(struct(…)) makes a string of columns)"),
    **dict.fromkeys(TEXTS, ((sql.StringType,), "string")),
    "time_to_live_ms": (_WHOLE, "a whole number of milliseconds"),
    "scheduled_enqueue_time": ((sql.TimestampType,), "timestamp (without a time zone it is no moment: cast it)"),
}


class InvalidColumn(PartitionedQueueError):
    """A frame that is no frame of messages; which column, and why."""


class InvalidRow(PartitionedQueueError):
    """A row that is no message; which, and why."""


def named(schema: sql.StructType, *, ignore_unknown: bool = False) -> dict[str, int]:
    """Where each column is, by the names in COLUMNS; case does not matter. Raises InvalidColumn."""
    found: dict[str, int] = {}
    for place, column in enumerate(schema.fields):
        name = column.name.lower()
        if name not in COLUMNS:
            if ignore_unknown:
                continue
            why = (
                "is the broker's to give; drop it"
                if name in THE_BROKERS
                else f"is none of a message's: {', '.join(COLUMNS)}; drop it"
            )
            raise InvalidColumn(f"column '{column.name}' {why}, or set option ignoreUnknownColumns")
        if name in found:
            raise InvalidColumn(f"column '{column.name}' is there twice; drop or rename one")
        _check(column)
        found[name] = place
    if "body" not in found:
        raise InvalidColumn("there is no column 'body', which is what a message says: binary or string")
    return found


def _check(column: sql.StructField) -> None:
    kind, name = column.dataType, column.name.lower()
    if name == "application_properties":
        _check_properties(column.name, kind)
        return
    kinds, words = _KINDS[name]
    if not isinstance(kind, kinds):
        raise InvalidColumn(f"column '{column.name}' is {kind.simpleString()}; it must be {words}")


def _check_properties(name: str, kind: sql.DataType) -> None:
    if isinstance(kind, sql.MapType) and isinstance(kind.keyType, sql.StringType):
        values = [kind.valueType]
    elif isinstance(kind, sql.StructType):
        values = [field.dataType for field in kind.fields]
    else:
        raise InvalidColumn(
            f"column '{name}' is {kind.simpleString()}; it must be map<string, …>, or a struct where values are of "
            "several types"
        )
    for value in values:
        if not isinstance(value, _PROPERTY):
            raise InvalidColumn(f"column '{name}' has values of type {value.simpleString()}; {_PROPERTIES} they can be")


@dataclass(frozen=True, slots=True)
class Queue:
    """What rows are checked against."""

    name: str
    partitions: int
    requires_session: bool

    @property
    def bytes_most(self) -> int:
        """Azure's limit: 256 KB in a partitioned entity, 1 MB in another."""
        return limits.MESSAGE_BYTES_MAX if self.partitions > 1 else limits.MESSAGE_BYTES_MAX_CONVENTIONAL


class Rows:
    """The rows of one task, as messages."""

    def __init__(self, queue: Queue, columns: Mapping[str, int], task: int, ids: DerivedIds | None) -> None:
        self._queue = queue
        self._columns = columns
        self._task = task
        self._ids = ids
        self._others = tuple(name for name in columns if name != "body")
        self.count = 0

    def messages(self, batch: pa.RecordBatch) -> Iterator[Storable]:
        """Each row of a batch, in its stored form. Raises InvalidRow."""
        bodies = _column("body", batch.column(self._columns["body"]))
        columns = [_column(name, batch.column(self._columns[name])) for name in self._others]
        for body, *others in zip(bodies, *columns, strict=True):
            yield self._message(body, tuple(others))
            self.count += 1

    def _message(self, body: Any, others: tuple[Any, ...]) -> Storable:
        given = dict(zip(self._others, others, strict=True))
        if body is None:
            self._refuse(given, "its body is null; filter such rows out, or give them a body (coalesce)")
        if self._queue.requires_session and given.get("session_id") is None:
            self._refuse(given, f"queue {self._queue.name} has sessions, and the row has no session_id")
        if isinstance(body, str):
            body = body.encode()
        try:
            if self._ids is not None and given.get("message_id") is None:
                given["message_id"] = self._ids.next(body, others)
            if (at_ms := given.pop("scheduled_enqueue_time", None)) is not None:
                given["scheduled_enqueue_time_ms"] = at_ms
            if given.get("application_properties", ()) is None:
                del given["application_properties"]
            return storable(Message(body=body, **given), bytes_most=self._queue.bytes_most)
        except PartitionedQueueError as error:
            self._refuse(given, str(error), error)

    def _refuse(self, given: Mapping[str, Any], why: str, error: Exception | None = None) -> NoReturn:
        keys = (given.get("message_id"), given.get("session_id"), given.get("partition_key"))
        raise InvalidRow(f"{row_named(self._task, self.count, *keys)}: {why}") from error


def row_named(task: int, row: int, message_id: str | None, session_id: str | None, partition_key: str | None) -> str:
    """How an error calls a row: where it is, and by what its writer knows it."""
    keys = (("message_id", message_id), ("session_id", session_id), ("partition_key", partition_key))
    known = ", ".join(f"{name} '{value:.60}'" for name, value in keys if value is not None)
    return f"row {row} of Spark partition {task}" + (f" ({known})" if known else "")


def _column(name: str, column: pa.Array) -> Sequence[Any]:
    if name == "scheduled_enqueue_time":  # µs; rounded up, for a message is never there before its time
        micros = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
        return [None if value is None else -(-value // 1000) for value in micros]
    values: list[Any] = column.to_pylist()
    if name != "application_properties":
        return values
    properties: Callable[[Any], dict[str, Any]] = dict
    if pa.types.is_struct(column.type):
        properties = _fields
    return [None if value is None else properties(value) for value in values]


def _fields(struct: Mapping[str, Any]) -> dict[str, Any]:
    """A struct has all of its fields in every row: one that is null is a property that is not there."""
    return {name: value for name, value in struct.items() if value is not None}
