"""Spark in this process, queues for it to read, and the ways to read them that several questions share.

Tasks find this module by its name (PYTHONPATH), so what they prepare is prepared once a worker, not once a task.
"""

import functools
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from benchmarks.measuring.cycle import Sender, send
from benchmarks.measuring.lanes import Lane, connect, wire_of
from benchmarks.measuring.messages import POOL_CALLS, batches, stored_forms
from benchmarks.measuring.servers import Broker
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model import limits
from partitionedqueue.model.placement import BrokerAddress
from partitionedqueue_spark import register, rows

ROOT = Path(__file__).resolve().parents[2]
TASKS_AT_ONCE = 2
BATCH_ROWS = 10_240
"""Rows of one Arrow batch: what the source's option fetchSize is unless somebody sets it."""
CALL_MESSAGES = 1_000


def session(jars: Sequence[Path] = ()) -> SparkSession:
    """Spark with two tasks at a time, on loopback, with the source and the floor."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    made = (
        SparkSession.builder.master(f"local[{TASKS_AT_ONCE}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.jars", ",".join(map(str, jars)))
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    register(made)
    made.dataSource.register(Floor)
    return made


def timed_read(frame: DataFrame) -> float:
    """Seconds to bring every row and column into Spark, and to do nothing with them."""
    begun = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun


class Queue:
    """A queue of this many brokers, filled from outside."""

    def __init__(self, brokers: Sequence[Broker], name: str) -> None:
        self.keys = QueueKeys(name)
        self.options = {"queue": name, "brokers": ",".join(f"127.0.0.1:{broker.port}" for broker in brokers)}
        self._brokers = brokers
        self._lanes: list[Lane] = []

    def fill(self, messages: int, body_bytes: int) -> None:
        """Send so many messages, the same number to each broker."""
        if not self._lanes:
            self._lanes = [connect(broker.port) for broker in self._brokers]
            for partition, lane in enumerate(self._lanes):
                lane.ask(wire_of(calls.configure(self.keys, partition=partition, partitions=len(self._lanes))))
        count = messages // len(self._lanes) // CALL_MESSAGES
        pool = batches(stored_forms(min(POOL_CALLS, count) * CALL_MESSAGES, body_bytes), CALL_MESSAGES)
        send(self._lanes, Sender(self.keys), pool, count)

    def left(self) -> int:
        """How many messages are there."""
        totals = calls.totals(self.keys)
        return sum(totals.parse(lane.ask(wire_of(totals))).messages for lane in self._lanes)


# ---------------------------------------------------------------- the floor


class Floor(DataSource):
    """Rows of the source's own columns out of batches that are ready before they are asked for: no I/O, no decoding.

    Options: `rows`, `tasks`, `bodyBytes`.
    """

    @classmethod
    def name(cls) -> str:
        """What `format(...)` is given."""
        return "floor"

    def schema(self) -> StructType:
        """The source's."""
        return rows.SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """The same for everybody."""
        tasks = int(self.options["tasks"])
        return FloorReader(int(self.options["rows"]) // tasks, tasks, int(self.options["bodyBytes"]))


class FloorReader(DataSourceReader):
    """As many rows a task."""

    def __init__(self, rows_each: int, tasks: int, body_bytes: int) -> None:
        self._rows_each, self._tasks, self._body_bytes = rows_each, tasks, body_bytes

    def partitions(self) -> list[InputPartition]:
        """Tasks differ in nothing."""
        return [InputPartition(number) for number in range(self._tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The same batch again and again."""
        batch, left = ready_batch(self._body_bytes), self._rows_each
        while left > 0:
            yield batch.slice(0, min(left, BATCH_ROWS))
            left -= BATCH_ROWS


@functools.cache
def ready_batch(body_bytes: int) -> pa.RecordBatch:
    """One batch, as the source makes them."""
    numbers = np.arange(1, BATCH_ROWS + 1, dtype=np.int64)
    return rows.record_batch(0, numbers, numbers, np.ones_like(numbers), stored_forms(BATCH_ROWS, body_bytes))


# ---------------------------------------------------------------- the raw read


def raw_read(port: int, queue: str) -> int:
    """Read all bodies of one broker as the source asks for them, 40 segments a round, and drop them; how many."""
    keys, found = QueueKeys(queue), 0
    with BlockingBroker(BrokerAddress("127.0.0.1", port)) as broker:
        (segments,) = broker.raw(("ZRANGE", keys.segments, 0, -1))
        wanted = [("LRANGE", keys.segment(int(segment)), 0, -1) for segment in segments]
        step = BATCH_ROWS // limits.SEGMENT_MESSAGES
        for start in range(0, len(wanted), step):
            found += sum(map(len, broker.raw(*wanted[start : start + step])))
    return found


# ---------------------------------------------------------------- what it all uses


def processor_s_below(process: int) -> float:
    """Processor time that a process and all below it have used, those that have ended included (Linux)."""
    ticks_a_second = os.sysconf("SC_CLK_TCK")
    parents, used = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        parents[int(stat.parent.name)] = int(fields[1])
        used[int(stat.parent.name)] = sum(map(int, fields[11:15])) / ticks_a_second

    def is_below(one: int) -> bool:
        while one and one != process:
            one = parents.get(one, 0)
        return one == process

    return sum(seconds for one, seconds in used.items() if is_below(one))
