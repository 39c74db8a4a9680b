"""Streams that hold nothing in the queue: browse, and receiveAndDelete. Their offsets are `marks`."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from partitionedqueue.broker.replies import Totals
from partitionedqueue_spark.batch_reader import read_browsed
from partitionedqueue_spark.fetching import keep_modules_out_of_collections
from partitionedqueue_spark.marks import Marks
from partitionedqueue_spark.offsets import by_partition, fair_shares, initial_offset
from partitionedqueue_spark.options import BROWSE, EARLIEST, LATEST, RECEIVE_AND_DELETE, SourceOptions
from partitionedqueue_spark.partition import BrowsedPartition, ReceivedPartition, browsed_in_tasks
from partitionedqueue_spark.pushdown import Numbers, Wanted
from partitionedqueue_spark.receiving import received
from partitionedqueue_spark.standing import all_standing

_STATES: Final = b"ald"  # scheduled messages are passed over: when it is their time, they have another number


class MarkedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What both have in common: limits, fair shares, progress."""

    mode: ClassVar[str]

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._partitions = len(options.brokers)
        self._marks: Marks | None = None  # how far this query has come
        self._available_now = False
        self._targets: list[int] | None = None  # Trigger.AvailableNow: the numbers that it does not go beyond

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 -- Spark's name
        """Where a new query begins: a constant."""
        return initial_offset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 -- Spark's name
        """What maxMessagesPerTrigger says."""
        most = self._options.max_messages_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 -- Spark's name
        """The first batch says how far this query goes: up to what is there by then."""
        self._available_now = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 -- Spark's name
        """How far the next batch goes, within `limit`, spread fairly over the partitions."""
        marks, standing = self._parsed(start), self._standing()
        began = None
        if marks.numbers is None:
            began = self.beginning(standing)
            marks = Marks(self.mode, began)
        ahead = self._ahead(marks, standing)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else sum(ahead)
        self._marks = replace(marks.moved(fair_shares(most, ahead)), began=began)
        return self._marks.offset() if began is not None or any(ahead) else start

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 -- Spark's name
        """How far this query would be if it read what is there now: the backlog in the query's progress."""
        if self._marks is None:
            return None
        ahead = self.ahead(self._marks, self._standing())
        told = {"backlog": sum(ahead), "backlogByPartition": by_partition(ahead)}
        return self._marks.moved(ahead).offset() | told

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Tasks for the partitions that have something in this batch."""
        first, last = self._parsed(start), self._parsed(end)
        if last.numbers is None:
            return []
        self._marks = last
        begin = first.numbers or last.began or (0,) * self._partitions
        return [
            task for n, stop in enumerate(last.numbers) if stop > begin[n] for task in self.tasks(n, begin[n], stop)
        ]

    def _parsed(self, offset: dict[str, Any]) -> Marks:
        return Marks.parse(offset, self.mode, self._partitions)

    def _standing(self) -> list[Totals]:
        return list(all_standing(self._options).values())

    def _ahead(self, marks: Marks, standing: list[Totals]) -> list[int]:
        ahead = self.ahead(marks, standing)
        if self._available_now and self._targets is None:
            self._targets = [n + more for n, more in zip(marks.numbers or (), ahead, strict=True)]
        if self._targets is None or marks.numbers is None:
            return ahead
        bounds = zip(ahead, self._targets, marks.numbers, strict=True)
        return [max(0, min(count, target - number)) for count, target, number in bounds]

    @abstractmethod
    def beginning(self, standing: list[Totals]) -> tuple[int, ...]:
        """The numbers that a new query begins with."""

    @abstractmethod
    def ahead(self, marks: Marks, standing: list[Totals]) -> list[int]:
        """How many messages each partition has beyond its number, at most."""

    @abstractmethod
    def tasks(self, partition: int, begin: int, stop: int) -> Sequence[InputPartition]:
        """The tasks of a partition that goes from one number to another."""


class BrowsingStreamReader(MarkedStreamReader):
    """Reads messages as they come and leaves them where they are; numbers are the last sequence numbers read."""

    mode = BROWSE

    def beginning(self, standing: list[Totals]) -> tuple[int, ...]:
        """What startingPosition says; the numbers before the first that is read."""
        position = self._options.starting_position
        if position == EARLIEST:
            return (0,) * self._partitions
        if position == LATEST:
            return tuple(totals.last for totals in standing)
        assert not isinstance(position, str)
        return tuple(position.get(partition, 1) - 1 for partition in range(self._partitions))

    def ahead(self, marks: Marks, standing: list[Totals]) -> list[int]:
        """Sequence numbers have no gaps, so this is how many came; those that have gone since are counted, too."""
        return [max(0, totals.last - number) for totals, number in zip(standing, marks.numbers or (), strict=True)]

    def tasks(self, partition: int, begin: int, stop: int) -> Sequence[InputPartition]:
        """Tasks that browse."""
        address, wanted = self._options.brokers[partition], Wanted(Numbers(begin + 1, stop), _STATES)
        whole = BrowsedPartition(partition, address, stop, wanted)
        return browsed_in_tasks(whole, stop - begin, self._options.max_tasks_per_partition)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What is still there of a part of the batch."""
        keep_modules_out_of_collections()
        if isinstance(partition, BrowsedPartition):
            yield from read_browsed(self._options, partition)


class DeletingStreamReader(MarkedStreamReader):
    """Receives and deletes: at most once. Numbers say how many messages were asked for so far."""

    mode = RECEIVE_AND_DELETE

    def beginning(self, standing: list[Totals]) -> tuple[int, ...]:
        """Nothing was asked for."""
        return (0,) * self._partitions

    def ahead(self, marks: Marks, standing: list[Totals]) -> list[int]:
        """What is ready."""
        return [totals.ready for totals in standing]

    def tasks(self, partition: int, begin: int, stop: int) -> Sequence[InputPartition]:
        """One task: whatever comes first."""
        return [ReceivedPartition(partition, self._options.brokers[partition], stop - begin)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Receive; reading a task again receives other messages."""
        keep_modules_out_of_collections()
        if isinstance(partition, ReceivedPartition):
            yield from received(self._options, partition)
