"""`df.write` and `writeStream`: every row is a message, sent to the partition that the gateway would send it to.

What tasks are sent is what the driver found out: where the brokers are, and what the queue is like. A task's rows are
stored when it ends; there is nothing to commit, and nothing can be taken back. So that a batch which Spark writes again
is stored once, each row has a MessageId that is the same then (`sink_ids`), for queues that detect duplicates.
"""

import asyncio
import dataclasses
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from partitionedqueue.broker import calls
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model.errors import BrokerUnavailable, LoginRefused, PartitionedQueueError
from partitionedqueue.model.queue_spec import QueueStatus
from partitionedqueue_spark.connection import InvalidOption
from partitionedqueue_spark.discovery import located
from partitionedqueue_spark.fetching import broker_at, keep_modules_out_of_collections
from partitionedqueue_spark.partition import in_its_place, unreadable
from partitionedqueue_spark.sink_columns import Queue, Rows, named
from partitionedqueue_spark.sink_ids import DerivedIds
from partitionedqueue_spark.sink_options import SinkOptions
from partitionedqueue_spark.sink_sending import send_all

QUERY_ID: Final = "sql.streaming.queryId"  # Spark's local properties of a stream's tasks; a checkpoint keeps the id
BATCH_ID: Final = "streaming.sql.batchId"


@dataclass
class Written(WriterCommitMessage):
    """What one task has written, and how much of it the queue had already."""

    rows: int
    duplicates: int


@dataclass(frozen=True)
class Destination:
    """A queue to write to, and how its rows look: found out on the driver, pickled to the tasks."""

    options: SinkOptions
    settings: BrokerSettings
    columns: dict[str, int]

    @classmethod
    def found(cls, options: SinkOptions, schema: StructType) -> "Destination":
        """Check the columns, find the brokers, and see that they are this queue's; some may be down.

        Raises InvalidColumn, PartitionUnreadable, InvalidOption.
        """
        columns = named(schema, ignore_unknown=options.ignore_unknown_columns)
        options = located(options)
        settings = _settings(options)
        if settings.status in (QueueStatus.DISABLED, QueueStatus.SEND_DISABLED):
            raise InvalidOption(
                f"option 'queue': {options.queue} takes no messages now; its status is {settings.status}"
            )
        return cls(options, settings, columns)

    def write(self, write_id: str, task: int, batches: Iterator[pa.RecordBatch]) -> Written:
        """Send the rows of one task (the number of its Spark partition), on an executor."""
        keep_modules_out_of_collections()
        queue = Queue(self.options.queue, len(self.options.brokers), bool(self.settings.sessions))
        ids = DerivedIds(write_id, task) if self.options.derives_message_ids else None
        rows = Rows(queue, self.columns, task, ids)
        duplicates = asyncio.run(send_all(self.options, self.settings, task, rows, batches))
        return Written(rows.count, duplicates)


def _settings(options: SinkOptions) -> BrokerSettings:
    """What the queue is like, as the first broker says that answers; those that were given are all asked for theirs.

    Tasks wait for a broker that is down, or go past it: not one that answers is what ends a write here.
    """
    keys, found, away = QueueKeys(options.queue), None, None
    for partition, address in enumerate(options.brokers):
        hasty = dataclasses.replace(options, broker_timeout_ms=0)
        try:
            with broker_at(address, hasty) as broker:
                totals = broker.call(calls.totals(keys))
                found = found or broker.call(calls.settings(keys))
        except PartitionedQueueError as error:
            away = away or unreadable(partition, error)
            if isinstance(error, BrokerUnavailable) and not isinstance(error, LoginRefused):
                continue
            raise away from error
        in_its_place(totals, options.queue, partition, len(options.brokers))
        if options.namespace is not None:
            break
    if found is None:
        raise away or InvalidOption(f"option 'queue': {options.queue} has no partitions")
    return found


def _task() -> TaskContext:
    context = TaskContext.get()
    assert context is not None
    return context


class PartitionedQueueWriter(DataSourceArrowWriter):
    """`df.write`. Rows of retried tasks have the same ids; those of another write have others, but for writeId."""

    def __init__(self, options: SinkOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise InvalidOption('a queue cannot be overwritten: write with mode("append")')
        if options.write_id is None:
            options = dataclasses.replace(options, write_id=uuid.uuid4().hex)
        self._destination = Destination.found(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Send the rows of one task."""
        write_id = self._destination.options.write_id
        assert write_id is not None
        return self._destination.write(write_id, _task().partitionId(), iterator)


class PartitionedQueueStreamWriter(DataSourceStreamArrowWriter):
    """`writeStream`. Rows of a batch that is written again have the same ids."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._destination = Destination.found(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Send the rows of one task of one batch."""
        task, options = _task(), self._destination.options
        query = options.write_id or task.getLocalProperty(QUERY_ID)
        batch = task.getLocalProperty(BATCH_ID)
        assert query is not None
        assert batch is not None
        return self._destination.write(f"{query}/{batch}", task.partitionId(), iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 -- Spark's name
        """Nothing: what is sent is stored."""
