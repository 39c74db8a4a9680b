"""Spark's door to a partitioned queue: `spark.read` browses it, `spark.readStream` consumes it, one task a partition.

Executors speak to the brokers directly. What is pickled holds no socket and no thread; those live in `claims` (driver)
and for the length of one `read` (executors).
"""

from typing import TYPE_CHECKING

from partitionedqueue_spark.source import PartitionedQueueDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PartitionedQueueDataSource", "register"]


def register(spark: "SparkSession") -> None:
    """Make `format("partitionedqueue")` known to a session."""
    spark.dataSource.register(PartitionedQueueDataSource)
