"""The data source that Spark knows by the name `partitionedqueue`."""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from partitionedqueue_spark.batch_reader import FilteringReader, PartitionedQueueReader
from partitionedqueue_spark.connection import InvalidOption
from partitionedqueue_spark.discovery import located
from partitionedqueue_spark.marked_stream import BrowsingStreamReader, DeletingStreamReader
from partitionedqueue_spark.options import BROWSE, RECEIVE_AND_DELETE, SourceOptions
from partitionedqueue_spark.schema import schema_of
from partitionedqueue_spark.sink_options import SinkOptions
from partitionedqueue_spark.stream_reader import PartitionedQueueStreamReader
from partitionedqueue_spark.writer import PartitionedQueueStreamWriter, PartitionedQueueWriter


class PartitionedQueueDataSource(DataSource):
    """Reads and writes a partitioned queue.

    Options are in `options` and `sink_options`, columns in `rows` and `sink_columns`.
    """

    @classmethod
    def name(cls) -> str:
        """What `format(...)` is given."""
        return "partitionedqueue"

    def schema(self) -> StructType:
        """The columns; a wrong option is told here, before anything runs."""
        return schema_of(SourceOptions.parse(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Browse: every message that is there, and none is taken; or receive and delete."""
        options = located(SourceOptions.parse(self.options))
        return (FilteringReader if options.filter_pushdown else PartitionedQueueReader)(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 -- Spark's signature
        """Consume: messages are claimed, and gone when Spark has committed them; or what option mode says."""
        options = located(SourceOptions.parse(self.options))
        readers = {BROWSE: BrowsingStreamReader, RECEIVE_AND_DELETE: DeletingStreamReader}
        return readers.get(options.mode or "", PartitionedQueueStreamReader)(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Send every row of a frame."""
        return PartitionedQueueWriter(SinkOptions.parse(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 -- Spark's signature
        """Send every row of a stream's batches."""
        if overwrite:
            raise InvalidOption('a queue cannot be overwritten: outputMode("complete") is for other sinks')
        return PartitionedQueueStreamWriter(SinkOptions.parse(self.options), schema)
