"""Flights from a queue, aggregated by Spark: one message is one flight, as a JSON object with the columns of the CSV.

Run it with spark-submit, or with Python alone:

    python flights.py --queue flights --data-dir DIR --checkpoint DIR --output DIR [--available-now]

In a cluster it is `--namespace NAME` instead of `--data-dir`, and the brokers' password comes by PQ_BROKER_PASSWORD.

Under --output it keeps two Parquet results, each replaced whole after every batch: `by_carrier` and `by_origin_hour`.
For each batch that has been committed it prints one line of JSON. SIGTERM ends it in good order, with exit code 0; it
goes on from its checkpoint.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from partitionedqueue_spark import job

FLIGHT: Final = "carrier string, origin string, hour int, dep_delay double"
TRIGGER: Final = "1 second"
SHUFFLE_PARTITIONS: Final = "4"  # a few hundred groups; Spark's own 200 would be 200 state stores


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = job.parser(__doc__)
    job.add_stream_arguments(made)
    return made


def flights(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """The stream of flights. A message that is no JSON stops the job: nothing is left out in silence."""
    messages = spark.readStream.format("partitionedqueue").options(**options).load()
    flight = f.from_json(f.col("body").cast("string"), FLIGHT, {"mode": "FAILFAST"})
    return messages.select(flight.alias("flight")).select("flight.*")


def grouped(stream: DataFrame) -> DataFrame:
    """Flights, and departures with their delays in whole minutes, by carrier, origin and hour."""
    return stream.groupBy("carrier", "origin", "hour").agg(
        f.count("*").alias("flights"),
        f.count("dep_delay").alias("departed"),
        f.sum(f.col("dep_delay").cast("long")).alias("delay_minutes"),
    )


def figures(groups: DataFrame, *by: str) -> DataFrame:
    """The figures of coarser groups. A flight without a departure was cancelled."""
    flown, all_of = f.sum("departed"), f.sum("flights")
    minutes: Column = f.coalesce(f.sum("delay_minutes"), f.lit(0).cast("long"))
    return (
        groups.groupBy(*by)
        .agg(
            all_of.alias("flights"),
            flown.alias("departed"),
            minutes.alias("delay_minutes"),
            f.when(flown > 0, minutes / flown).alias("mean_departure_delay"),
            (all_of - flown).alias("cancelled"),
        )
        .orderBy(*by)
    )


def replace(frame: DataFrame, target: str) -> None:
    """Write beside the target, then rename: a reader never sees half of a result, and doing it twice does no harm."""
    place = PurePosixPath(target)
    beside = f"{target.removesuffix(place.name)}_{place.name}.new"
    frame.coalesce(1).write.mode("overwrite").parquet(beside)
    jvm: Any = frame.sparkSession._jvm
    hadoop = jvm.org.apache.hadoop.fs
    files = hadoop.Path(target).getFileSystem(frame.sparkSession._jsc.hadoopConfiguration())
    files.delete(hadoop.Path(target), True)
    if not files.rename(hadoop.Path(beside), hadoop.Path(target)):
        raise OSError(f"{beside} cannot be renamed to {target}")


class Results:
    """What is written after every batch, and how many flights it stands on."""

    def __init__(self, output: str) -> None:
        self._output = output.rstrip("/")
        self.totals: dict[int, int] = {}

    def write(self, groups: DataFrame, batch: int) -> None:
        """Replace both results by those of this batch."""
        groups = groups.persist()
        try:
            self.totals[batch] = int(groups.agg(f.coalesce(f.sum("flights"), f.lit(0))).collect()[0][0])
            replace(figures(groups, "carrier"), f"{self._output}/by_carrier")
            replace(figures(groups, "origin", "hour"), f"{self._output}/by_origin_hour")
        finally:
            groups.unpersist()


def main(argv: Sequence[str] | None = None) -> int:
    """Run until the end of what is there, or SIGTERM."""
    made = parser()
    given = made.parse_args(argv)
    options = job.options_of(given, made)
    stopping = job.stop_on_sigterm()
    spark = job.session("flights", spark_sql_shuffle_partitions=SHUFFLE_PARTITIONS)
    results = Results(given.output)

    def report(progress: Mapping[str, Any]) -> None:
        job.print_batch(progress, rows_total=results.totals.pop(int(progress["batchId"])))

    try:
        writer = (
            grouped(flights(spark, options))
            .writeStream.queryName("flights")
            .outputMode("complete")
            .option("checkpointLocation", given.checkpoint)
            .foreachBatch(results.write)
        )
        trigger = writer.trigger(availableNow=True) if given.available_now else writer.trigger(processingTime=TRIGGER)
        job.run(trigger.start(), stopping, report)
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
