"""`spark.read`: a snapshot browse. Every message there when the query was planned, locked ones too; none is taken.

With mode receiveAndDelete a batch takes what is ready when it is planned, once and for all.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_spark.connection import InvalidOption
from partitionedqueue_spark.fetching import broker_at, browsed, fetch, keep_modules_out_of_collections
from partitionedqueue_spark.malformed import rows_of
from partitionedqueue_spark.options import CONSUME, RECEIVE_AND_DELETE, SourceOptions
from partitionedqueue_spark.partition import (
    BrowsedPartition,
    PartitionUnreadable,
    ReceivedPartition,
    browsed_in_tasks,
    unreadable,
)
from partitionedqueue_spark.pushdown import Pushed
from partitionedqueue_spark.receiving import received
from partitionedqueue_spark.standing import all_standing


class PartitionedQueueReader(DataSourceReader):
    """Plans one task or more for each partition that holds messages, and reads it."""

    def __init__(self, options: SourceOptions) -> None:
        if options.mode == CONSUME:
            raise InvalidOption(
                "option 'mode' is 'consume', which a batch read cannot promise, because it has no commit: use "
                "spark.readStream with trigger(availableNow=True), which ends as a batch does; or mode receiveAndDelete"
            )
        self._options = options
        self._pushed = Pushed()  # everything

    def partitions(self) -> Sequence[InputPartition]:
        """Where each partition that is asked for ends at this moment."""
        brokers, pushed = self._options.brokers, self._pushed
        wanted = {n: one for n in range(len(brokers)) if (one := pushed.of_partition(n)) is not None}
        totals = all_standing(self._options, wanted)
        if self._options.mode == RECEIVE_AND_DELETE:
            return [ReceivedPartition(n, brokers[n], its.ready) for n, its in totals.items() if its.ready]
        tasks, most = [], self._options.max_tasks_per_partition
        for n, its in totals.items():
            if its.messages:
                tasks += browsed_in_tasks(BrowsedPartition(n, brokers[n], its.last, wanted[n]), its.messages, most)
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one partition, up to where it ended when the query was planned."""
        keep_modules_out_of_collections()
        if isinstance(partition, ReceivedPartition):
            yield from received(self._options, partition)
        elif isinstance(partition, BrowsedPartition):  # Spark has a stand-in where there is nothing to read
            yield from read_browsed(self._options, partition)


class FilteringReader(PartitionedQueueReader):
    """Does not read what filters leave out (option filterPushdown).

    A class of its own, because Spark refuses a reader that takes filters in unless its configuration allows it; and
    an option, because what was pushed for one query stays with Spark's data frame for the next (4.1 to 4.3 at least),
    which then misses rows.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 -- Spark's name
        """Note what need not be read; Spark filters what is read once more."""
        self._pushed = Pushed.of(filters)
        return filters


def read_browsed(options: SourceOptions, task: BrowsedPartition) -> Iterator[pa.RecordBatch]:
    """The rows of a task that browses."""
    shape = options.shape
    try:
        with broker_at(task.address, options) as broker:
            spans = browsed(broker, options.keys, task.last, task.wanted)
            for chunk in fetch(broker, options.keys, spans, options.fetch_size, with_messages=shape.needs_messages):
                yield from rows_of(task.partition, chunk, shape, options.on_malformed)
    except PartitionUnreadable:
        raise
    except PartitionedQueueError as error:
        raise unreadable(task.partition, error) from error
