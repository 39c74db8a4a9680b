"""The data source that Spark knows by the name `partitionedqueue`."""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from partitionedqueue_spark import rows
from partitionedqueue_spark.batch_reader import PartitionedQueueReader
from partitionedqueue_spark.connection import InvalidOption
from partitionedqueue_spark.discovery import located
from partitionedqueue_spark.options import SourceOptions
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
        SourceOptions.parse(self.options)
        return rows.SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Browse: every message that is there, and none is taken."""
        return PartitionedQueueReader(located(SourceOptions.parse(self.options)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 -- Spark's signature
        """Consume: messages are claimed, and gone when Spark has committed them."""
        return PartitionedQueueStreamReader(located(SourceOptions.parse(self.options)))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Send every row of a frame."""
        return PartitionedQueueWriter(SinkOptions.parse(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 -- Spark's signature
        """Send every row of a stream's batches."""
        if overwrite:
            raise InvalidOption('a queue cannot be overwritten: outputMode("complete") is for other sinks')
        return PartitionedQueueStreamWriter(SinkOptions.parse(self.options), schema)
