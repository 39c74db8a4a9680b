"""A query of its own process, to be killed: consumes a queue into a Parquet folder until nothing is left."""

import sys

from pyspark.sql import SparkSession

from partitionedqueue_spark import register


def main(brokers: str, checkpoint: str, output: str) -> None:
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    register(spark)
    stream = (
        spark.readStream.format("partitionedqueue")
        .options(queue="flights", brokers=brokers, maxMessagesPerTrigger=600)
        .load()
    )
    query = (
        stream.selectExpr("cast(body as string) as body", "sequence_number", "delivery_count")
        .writeStream.format("parquet")
        .option("path", output)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
