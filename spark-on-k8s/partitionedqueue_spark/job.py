"""What jobs have in common: arguments that say where a queue is, a session, a query that ends in good order."""

import argparse
import json
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark import SparkConf
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_spark import register
from partitionedqueue_spark.options import SourceOptions

POLL_S: Final = 0.2


def parser(documentation: str | None) -> argparse.ArgumentParser:
    """A parser for a queue to read and where it is; its help is what the job says of itself."""
    made = argparse.ArgumentParser(
        description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    made.add_argument("--queue", required=True, help="the name of the queue to read")
    where = made.add_mutually_exclusive_group(required=True)
    where.add_argument("--namespace", help="the cluster's namespace that the queue is in")
    where.add_argument("--brokers", help="host:port,host:port in partition order")
    where.add_argument("--data-dir", help="the folder of an embedded namespace")
    return made


def add_stream_arguments(to: argparse.ArgumentParser) -> None:
    """How a stream is read, and where it goes."""
    to.add_argument("--checkpoint", required=True, help="the folder where Spark keeps how far the job is")
    to.add_argument("--output", required=True, help="the folder to write to")
    to.add_argument("--max-messages-per-trigger", type=positive, metavar="N", help="messages in one batch at most")
    to.add_argument("--available-now", action="store_true", help="read what is there, and end")


def positive(text: str) -> int:
    """A whole number from 1, for argparse."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1")
    return int(text)


def options_of(given: argparse.Namespace, made_by: argparse.ArgumentParser, **others: str) -> dict[str, str]:
    """The source's options that the arguments stand for; what cannot be ends the job with its usage."""
    found = {
        "queue": given.queue,
        "namespace": given.namespace,
        "brokers": given.brokers,
        "dataDir": given.data_dir,
        "maxMessagesPerTrigger": getattr(given, "max_messages_per_trigger", None),
        **others,
    }
    options = {name: str(value) for name, value in found.items() if value is not None}
    try:
        SourceOptions.parse(options)
    except PartitionedQueueError as error:
        made_by.error(str(error))
    return options


def session(name: str, **settings: str) -> SparkSession:
    """The session; what spark-submit was told goes before `settings`, whose names have _ for a dot."""
    conf = SparkConf().setIfMissing("spark.master", "local[*]").setIfMissing("spark.app.name", name)
    conf.setIfMissing("spark.ui.showConsoleProgress", "false")
    for setting, value in settings.items():
        conf.setIfMissing(setting.replace("_", "."), value)
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    register(spark)
    return spark


def stop_on_sigterm() -> threading.Event:
    """An event that is set when the job is asked to end."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    return stopping


def run(query: StreamingQuery, stopping: threading.Event, report: Callable[[Mapping[str, Any]], None]) -> None:
    """Wait for the query's end, or end it in good order; `report` is given each batch's progress once.

    Raises what ended the query.
    """
    reported = -1

    def tell() -> None:
        nonlocal reported
        for progress in query.recentProgress:
            batch = int(progress["batchId"])
            if batch > reported and int(progress["numInputRows"]):
                report(progress)
                reported = batch

    while query.isActive and not stopping.wait(POLL_S):
        tell()
    if stopping.is_set():
        query.stop()
    else:
        query.awaitTermination()
    tell()


def print_batch(progress: Mapping[str, Any], **more: object) -> None:
    """One line of JSON for a committed batch."""
    rows, took_ms = int(progress["numInputRows"]), int(progress["durationMs"]["triggerExecution"])
    line = {"batch": int(progress["batchId"]), "rows": rows, **more}
    sys.stdout.write(json.dumps(line | {"rows_per_second": round(rows * 1000 / max(1, took_ms), 1)}) + "\n")
    sys.stdout.flush()
