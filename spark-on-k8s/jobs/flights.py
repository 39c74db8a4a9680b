"""Flights from a queue, aggregated by Spark: one message is one flight, as a JSON object with the columns of the CSV.

Run it with spark-submit, or with Python alone:

    python flights.py --queue flights --data-dir DIR --checkpoint DIR --output DIR [--available-now]

In a cluster it is `--namespace NAME` instead of `--data-dir`, and the brokers' password comes by PQ_BROKER_PASSWORD.

Under --output it keeps two Parquet results, each replaced whole after every batch: `by_carrier` and `by_origin_hour`.
For each batch that has been committed it prints one line of JSON. SIGTERM ends it in good order, with exit code 0; it
goes on from its checkpoint.
"""

import argparse
import json
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from pyspark import SparkConf
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from partitionedqueue_spark import register

FLIGHT: Final = "carrier string, origin string, hour int, dep_delay double"
TRIGGER: Final = "1 second"
POLL_S: Final = 0.2
SHUFFLE_PARTITIONS: Final = "4"  # a few hundred groups; Spark's own 200 would be 200 state stores


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--queue", required=True)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--namespace", help="the cluster's namespace that the queue is in")
    where.add_argument("--brokers", help="host:port,host:port in partition order")
    where.add_argument("--data-dir", help="the folder of an embedded namespace")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--max-messages-per-trigger", type=int)
    parser.add_argument("--available-now", action="store_true", help="read what is there, and end")
    return parser.parse_args(argv)


def session() -> SparkSession:
    """The session; what spark-submit was told goes first."""
    conf = SparkConf().setIfMissing("spark.master", "local[*]").setIfMissing("spark.app.name", "flights")
    conf.setIfMissing("spark.sql.shuffle.partitions", SHUFFLE_PARTITIONS)
    conf.setIfMissing("spark.ui.showConsoleProgress", "false")
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    register(spark)
    return spark


def flights(spark: SparkSession, options: argparse.Namespace) -> DataFrame:
    """The stream of flights. A message that is no JSON stops the job: nothing is left out in silence."""
    reader = spark.readStream.format("partitionedqueue").option("queue", options.queue)
    for name, value in (("namespace", options.namespace), ("brokers", options.brokers), ("dataDir", options.data_dir)):
        if value:
            reader = reader.option(name, value)
    if options.max_messages_per_trigger:
        reader = reader.option("maxMessagesPerTrigger", options.max_messages_per_trigger)
    flight = f.from_json(f.col("body").cast("string"), FLIGHT, {"mode": "FAILFAST"})
    return reader.load().select(flight.alias("flight")).select("flight.*")


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


class Report:
    """One line of JSON for each committed batch."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._last = -1

    def print_new(self, query: StreamingQuery) -> None:
        """Print the batches that have ended since the last time."""
        for progress in query.recentProgress:
            batch = int(progress["batchId"])
            if batch <= self._last or batch not in self._results.totals:
                continue
            rows, took_ms = int(progress["numInputRows"]), int(progress["durationMs"]["triggerExecution"])
            if rows == 0:
                continue
            self._last = batch
            line = {
                "batch": batch,
                "rows": rows,
                "rows_total": self._results.totals.pop(batch),
                "rows_per_second": round(rows * 1000 / max(1, took_ms), 1),
            }
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Run until the end of what is there, or SIGTERM."""
    options = arguments(argv)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    spark = session()
    results = Results(options.output)
    report = Report(results)
    writer = (
        grouped(flights(spark, options))
        .writeStream.queryName("flights")
        .outputMode("complete")
        .option("checkpointLocation", options.checkpoint)
        .foreachBatch(results.write)
    )
    trigger = writer.trigger(availableNow=True) if options.available_now else writer.trigger(processingTime=TRIGGER)
    query = trigger.start()
    try:
        while query.isActive and not stopping.wait(POLL_S):
            report.print_new(query)
        if stopping.is_set():
            query.stop()
        else:
            query.awaitTermination()  # raises what ended it
        report.print_new(query)
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
