"""`spark.read`: a snapshot browse. Every message there when the query was planned, locked ones too; none is taken."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model import limits
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_spark import rows
from partitionedqueue_spark.fetching import Span, broker_at, fetch, keep_modules_out_of_collections
from partitionedqueue_spark.options import SourceOptions
from partitionedqueue_spark.partition import BrowsedPartition, in_its_place, unreadable


class PartitionedQueueReader(DataSourceReader):
    """Plans one task for each partition that holds messages, and reads it."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Where each partition ends at this moment."""
        keys, planned = QueueKeys(self._options.queue), []
        for partition, address in enumerate(self._options.brokers):
            try:
                with broker_at(address, self._options) as broker:
                    totals = broker.call(calls.totals(keys))
            except PartitionedQueueError as error:
                raise unreadable(partition, error) from error
            in_its_place(totals, self._options.queue, partition, len(self._options.brokers))
            if totals.messages:
                planned.append(BrowsedPartition(partition, address, totals.last))
        return planned

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one partition, up to where it ended when the query was planned."""
        keep_modules_out_of_collections()
        if not isinstance(partition, BrowsedPartition):  # Spark's stand-in where there is nothing to read
            return
        keys = QueueKeys(self._options.queue)
        try:
            with broker_at(partition.address, self._options) as broker:
                wanted = _spans(broker, keys, partition.last)
                for chunk in fetch(broker, keys, wanted, self._options.fetch_size, browsing=True):
                    yield rows.record_batch(
                        partition.partition, chunk.sequences, chunk.times_ms, chunk.deliveries, chunk.stored
                    )
        except PartitionedQueueError as error:
            raise unreadable(partition.partition, error) from error


def _spans(broker: BlockingBroker, keys: QueueKeys, last: int) -> Iterator[Span]:
    (segments,) = broker.raw(("ZRANGE", keys.segments, 0, -1), repeatable=True)
    for segment in map(int, segments):
        first = segment * limits.SEGMENT_MESSAGES + 1
        if first <= last:
            yield Span(first, min(limits.SEGMENT_MESSAGES, last - first + 1), 0)
