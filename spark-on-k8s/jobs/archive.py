"""Archives a queue: every message becomes a row of Parquet, in folders by the day (UTC) it was enqueued.

    python archive.py --queue flights --data-dir DIR --checkpoint DIR --output DIR [--available-now]

In a cluster it is `--namespace NAME` instead of `--data-dir`, and the brokers' password comes by PQ_BROKER_PASSWORD.

Each message is in the archive exactly once, whatever is killed in between, for readers that go by the log which Spark
keeps in OUTPUT/_spark_metadata, as spark.read.parquet(OUTPUT) does: others may find files of an unfinished batch, too.
For each batch that has been committed it prints one line of JSON. SIGTERM ends it in good order, with exit code 0; it
goes on from its checkpoint. A batch makes a file for each task and day: a longer --trigger makes fewer, larger files.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from partitionedqueue_spark import job

TRIGGER: Final = "1 minute"


def interval(text: str) -> str:
    """How often a batch begins, for argparse."""
    if not re.fullmatch(r"[1-9][0-9]{0,5} (second|minute|hour)s?", text):
        raise argparse.ArgumentTypeError(f"{text!r} must be like '30 seconds' or '5 minutes'")
    return text


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = job.parser(__doc__)
    job.add_stream_arguments(made)
    made.add_argument("--trigger", type=interval, default=TRIGGER, help=f"how often a batch begins ({TRIGGER})")
    return made


def by_day(messages: DataFrame) -> DataFrame:
    """Messages with the column that the folders are named by."""
    return messages.withColumn("date", f.to_date("enqueued_time"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run until the end of what is there, or SIGTERM."""
    made = parser()
    given = made.parse_args(argv)
    options = job.options_of(given, made)
    stopping = job.stop_on_sigterm()
    spark = job.session(f"archive-{given.queue}", spark_sql_session_timeZone="UTC")
    try:
        stream = spark.readStream.format("partitionedqueue").options(**options).load()
        writer = (
            by_day(stream)
            .writeStream.queryName(f"archive-{given.queue}")
            .format("parquet")
            .partitionBy("date")
            .option("path", given.output)
            .option("checkpointLocation", given.checkpoint)
        )
        trigger = (
            writer.trigger(availableNow=True) if given.available_now else writer.trigger(processingTime=given.trigger)
        )
        job.run(trigger.start(), stopping, job.print_batch)
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
