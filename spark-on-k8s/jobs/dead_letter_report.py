"""Says why messages of a queue were dead-lettered: how many for each reason, since when, and where to look.

    python dead_letter_report.py --queue flights --data-dir DIR [--json] [--output DIR]

In a cluster it is `--namespace NAME` instead of `--data-dir`, and the brokers' password comes by PQ_BROKER_PASSWORD.

It looks and takes nothing: messages stay where they are, and locked ones are counted. It prints a table, or with --json
one object a line; with --output the same rows go to Parquet, in place of an older report.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f

from partitionedqueue_spark import job

COLUMNS: Final = "sequence_number,enqueued_time,dead_letter_reason,dead_letter_error_description"
NO_REASON: Final = "(none given)"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = job.parser(__doc__)
    made.add_argument("--transfer", action="store_true", help="what forwarding dead-lettered, instead")
    made.add_argument("--json", action="store_true", help="one JSON object a line instead of a table")
    made.add_argument("--output", help="the folder to write the report to as Parquet")
    return made


def by_reason(dead_letters: DataFrame) -> DataFrame:
    """One row for each reason, the most frequent first. The example is the oldest message's description."""
    oldest = f.struct("enqueued_time", "sequence_number")
    return (
        dead_letters.groupBy(f.coalesce("dead_letter_reason", f.lit(NO_REASON)).alias("reason"))
        .agg(
            f.count("*").alias("messages"),
            f.min("enqueued_time").alias("oldest"),
            f.max("enqueued_time").alias("newest"),
            f.min_by("sequence_number", oldest).alias("oldest_sequence_number"),
            f.min_by("dead_letter_error_description", oldest).alias("example"),
        )
        .orderBy(f.desc("messages"), "reason")
    )


def lines(report: Sequence[Row], queue: str, *, as_json: bool) -> list[str]:
    """The report as it is printed."""
    if as_json:
        return [json.dumps(row.asDict(), default=str, ensure_ascii=False) for row in report]
    if not report:
        return [f"queue {queue} has no dead letters"]
    table = [("REASON", "MESSAGES", "OLDEST", "NEWEST", "SEQUENCE NUMBER", "EXAMPLE")]
    for row in report:
        times = (f"{row.oldest:%Y-%m-%d %H:%M:%S}", f"{row.newest:%Y-%m-%d %H:%M:%S}")
        table.append((row.reason, str(row.messages), *times, str(row.oldest_sequence_number), row.example or ""))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["   ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in table]


def main(argv: Sequence[str] | None = None) -> int:
    """Report, and end."""
    made = parser()
    given = made.parse_args(argv)
    sub_queue = "transferDeadLetter" if given.transfer else "deadLetter"
    options = job.options_of(given, made, subQueue=sub_queue, columns=COLUMNS)
    spark = job.session(f"dead-letters-{given.queue}", spark_sql_session_timeZone="UTC")
    try:
        report = by_reason(spark.read.format("partitionedqueue").options(**options).load()).persist()
        if given.output:
            report.coalesce(1).write.mode("overwrite").parquet(given.output)
        for line in lines(report.collect(), given.queue, as_json=given.json):
            sys.stdout.write(f"{line}\n")
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
