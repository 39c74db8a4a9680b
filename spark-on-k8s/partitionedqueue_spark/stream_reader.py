"""`spark.readStream`: consumes a queue by claim logs, so that a batch read again is the same batch.

Spark's calls, in order: latestOffset claims, partitions plans, read (on executors, perhaps several times) fetches, and
the next latestOffset acknowledges its `start`: by then Spark has written the commit of the batch that ended there.
commit() says the same, but after the last batch of Trigger.AvailableNow it never comes.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_spark.claims import ClaimLogs, new_group
from partitionedqueue_spark.fetching import Span, broker_at, fetch, keep_modules_out_of_collections, spans
from partitionedqueue_spark.malformed import rows_of
from partitionedqueue_spark.offsets import Position, by_partition, byte_shares, fair_shares, initial_offset
from partitionedqueue_spark.options import SourceOptions
from partitionedqueue_spark.partition import (
    ClaimedPartition,
    ClaimsLost,
    PartitionUnreadable,
    claimed_in_tasks,
    claims_lost,
    unreadable,
)
from partitionedqueue_spark.standing import all_standing


class PartitionedQueueStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One query's reader. On the driver it holds the claim logs; what is sent to executors has only the options."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._partitions = len(options.brokers)
        self._logs: ClaimLogs | None = None
        self._next: list[int] = []  # how far the logs reached when they were opened
        self._position: Position | None = None  # how far this query has claimed
        self._acknowledged: Position | None = None
        self._ready_at_start: list[int] | None = None  # Trigger.AvailableNow: what was ready when the query began
        self._bounds: list[int] | None = None  # and the ordinals that it therefore does not go beyond

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._options,)

    # ---- on the driver

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 -- Spark's name
        """Where a new query begins: a constant."""
        return initial_offset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 -- Spark's name
        """What maxMessagesPerTrigger and maxBytesPerTrigger say; Spark carries one limit, the other is looked up."""
        most, bytes_most = self._options.max_messages_per_trigger, self._options.max_bytes_per_trigger
        if most is not None:
            return ReadMaxRows(most)
        return ReadAllAvailable() if bytes_most is None else ReadMaxBytes(bytes_most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 -- Spark's name
        """Remember what is ready now; the query ends when it has read as many."""
        self._ready_at_start = [totals.ready for totals in all_standing(self._options).values()]

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 -- Spark's name
        """Acknowledge `start`, then claim the next batch, within `limit`, spread fairly over the partitions."""
        position = Position.parse(start, self._partitions)
        logs = self._logs_of(position.group)
        if position.group is None and not logs.opened and not any(totals.ready for totals in logs.totals()):
            return start  # nothing to claim: leave no group behind
        self._open(logs, position.ordinals)
        try:
            return self._advance(logs, position, limit)
        except ClaimsLost:
            if self._options.fail_on_lock_lost:
                raise
        logs.opened = False
        self._open(logs, position.ordinals)
        return self._advance(logs, position, limit)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 -- Spark's name
        """How far this query would be if it read what is ready now: the backlog in the query's progress."""
        if self._logs is None or not self._logs.opened or self._position is None:
            return None
        ready = [totals.ready for totals in self._logs.totals()]
        ahead = (ordinal + more for ordinal, more in zip(self._position.ordinals, ready, strict=True))
        return Position(self._logs.group, tuple(ahead)).offset() | {
            "backlog": sum(ready),
            "backlogByPartition": by_partition(ready),
        }

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One task or more for each partition that has something in this batch; one where there are sessions."""
        first, last = Position.parse(start, self._partitions), Position.parse(end, self._partitions)
        if last.group is None:
            return []
        logs = self._logs_of(last.group)
        self._open(logs, first.ordinals)
        self._position = last
        tasks = 1 if logs.sessions else self._options.max_tasks_per_partition
        ranges = zip(self._options.brokers, first.ordinals, last.ordinals, strict=True)
        return [
            task
            for partition, (address, begin, stop) in enumerate(ranges)
            if stop > begin
            for task in claimed_in_tasks(ClaimedPartition(partition, address, last.group, begin, stop), tasks)
        ]

    def commit(self, end: dict[str, Any]) -> None:
        """Spark has committed everything up to `end`."""
        position = Position.parse(end, self._partitions)
        if self._logs is None or not self._logs.opened or position.group is None:
            return
        try:
            self._acknowledge(self._logs, position)
        except ClaimsLost:
            if self._options.fail_on_lock_lost:
                raise

    def stop(self) -> None:
        """End what runs on the driver. Claims stay: the next start from the checkpoint goes on with them."""
        logs, self._logs = self._logs, None
        if logs is not None:
            logs.close()

    def _logs_of(self, group: str | None) -> ClaimLogs:
        """The claim logs of a group; of a new one where there is none yet. Nothing is sent."""
        if self._logs is not None and group not in (None, self._logs.group):
            self.stop()
        if self._logs is None:
            self._logs = ClaimLogs(self._options, group or new_group())
        return self._logs

    def _open(self, logs: ClaimLogs, start: tuple[int, ...]) -> None:
        """Become the owner, once."""
        if not logs.opened:
            self._next = [log.next for log in logs.open(start)]

    def _advance(self, logs: ClaimLogs, position: Position, limit: ReadLimit) -> dict[str, Any]:
        if position.group is not None:
            self._acknowledge(logs, position)
        ordinals = self._claimed(logs, position.ordinals, limit)
        if ordinals == position.ordinals:
            return position.offset()
        self._position = Position(logs.group, ordinals)
        return self._position.offset()

    def _acknowledge(self, logs: ClaimLogs, position: Position) -> None:
        if position != self._acknowledged:
            logs.acknowledge(position.ordinals)
            self._acknowledged = position

    def _claimed(self, logs: ClaimLogs, start: tuple[int, ...], limit: ReadLimit) -> tuple[int, ...]:
        if self._ready_at_start is not None and self._bounds is None:
            self._bounds = [next_ + ready for next_, ready in zip(self._next, self._ready_at_start, strict=True)]
        held = [max(0, end - begin) for end, begin in zip(self._next, start, strict=True)]
        standing = logs.totals()
        available = [more + totals.ready for more, totals in zip(held, standing, strict=True)]
        if self._bounds is not None:
            available = [
                min(count, max(0, bound - begin))
                for count, bound, begin in zip(available, self._bounds, start, strict=True)
            ]
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else sum(available)
        bytes_most = self._options.max_bytes_per_trigger
        if bytes_most is None or isinstance(limit, ReadAllAvailable):
            return tuple(logs.claim(start, fair_shares(most, available)))
        sizes = [totals.bytes // max(1, totals.messages) for totals in standing]
        shares = byte_shares(bytes_most, available, sizes, turn=sum(start))
        chosen = [count if share else 0 for count, share in zip(available, shares, strict=True)]
        return tuple(logs.claim(start, fair_shares(most, chosen), shares))

    # ---- on executors

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one partition's part of a batch; the same rows each time."""
        keep_modules_out_of_collections()
        if not isinstance(partition, ClaimedPartition):
            return
        keys, shape = self._options.keys, self._options.shape
        try:
            with broker_at(partition.address, self._options) as broker:
                wanted, count = self._wanted(broker, keys, partition)
                fetched = fetch(broker, keys, wanted, self._options.fetch_size, with_messages=shape.needs_messages)
                for chunk in fetched:
                    count -= len(chunk)
                    yield from rows_of(partition.partition, chunk, shape, self._options.on_malformed)
                # Claims that were lost while they were read: others may have received, or completed, what was read.
                self._wanted(broker, keys, partition)
        except (ClaimsLost, PartitionUnreadable):
            raise
        except PartitionedQueueError as error:
            raise unreadable(partition.partition, error) from error
        if count and self._options.fail_on_lock_lost:
            raise PartitionUnreadable(
                f"partition {partition.partition}: {count} claimed messages are not there any more"
            )

    def _wanted(self, broker: BlockingBroker, keys: QueueKeys, partition: ClaimedPartition) -> tuple[list[Span], int]:
        """Where the messages of a range are, and how many. Lost claims are an error, or left out."""
        found = broker.call(calls.claimed(keys, partition.group, partition.start, partition.end))
        start = partition.start
        if found.lost > start:
            if self._options.fail_on_lock_lost:
                raise claims_lost(partition.partition, partition.group, start, min(found.lost, partition.end))
            start = min(found.lost, partition.end)
            found = broker.call(calls.claimed(keys, partition.group, start, partition.end))
        if start < found.base and start < partition.end:
            raise PartitionUnreadable(
                f"partition {partition.partition}: the range [{start}, {partition.end}) of group {partition.group} was "
                "acknowledged before; the checkpoint is older than the queue"
            )
        count = sum(entry.count for entry in found.entries)
        if count != partition.end - start:
            raise PartitionUnreadable(
                f"partition {partition.partition}: the checkpoint is ahead of the broker, whose claim log ends at "
                f"{found.next}, before {partition.end}"
            )
        wanted = [span for entry in found.entries for span in spans(entry.first, entry.count, entry.deliveries + 1)]
        return wanted, count
