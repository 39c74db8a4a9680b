"""Spark in this process, queues for it to read, and the ways to read them that several questions share.

Tasks find this module by its name (PYTHONPATH), so what they prepare is prepared once a worker, not once a task.
"""

import itertools
import os
import pickle
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

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
from partitionedqueue_spark import PartitionedQueueDataSource, register

ROOT = Path(__file__).resolve().parents[2]
TASKS_AT_ONCE = 2
ROUND_MESSAGES = 10_240
"""What the source asks for at once: its option fetchSize, unless somebody sets it."""
BATCHES_LOOKED_AT = 3
"""The source's first batch is small: it does not know yet how large messages are."""
CALL_MESSAGES = 1_000
STREAM_S_MAX = 600


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


def streamed(stream: DataFrame, checkpoint: Path, messages: int) -> float:
    """Seconds of a whole query, from its start to its end, over all that is there."""
    begun = time.perf_counter()
    query = (
        stream.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        if not query.awaitTermination(STREAM_S_MAX):
            raise TimeoutError(f"the query has not ended within {STREAM_S_MAX} s")
    finally:
        query.stop()
    took_s = time.perf_counter() - begun
    came = sum(int(progress["numInputRows"]) for progress in query.recentProgress)
    if came != messages:
        raise AssertionError(f"{messages:,} messages were there, and {came:,} came")
    return took_s


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
    """The source's own rows out of batches that are ready before they are asked for: no I/O, no decoding.

    Options: the source's, and `rowsEach`: how many a task gives.
    """

    @classmethod
    def name(cls) -> str:
        """What `format(...)` is given."""
        return "floor"

    def schema(self) -> StructType | str:
        """The source's."""
        return self._ours().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """As many tasks as the source has."""
        return FloorReader(self._ours().reader(schema), int(self.options["rowsEach"]))

    def _ours(self) -> PartitionedQueueDataSource:
        return PartitionedQueueDataSource({n: v for n, v in self.options.items() if n.lower() != "rowseach"})


class FloorReader(DataSourceReader):
    """Each task gives the first whole batch of the source's first task that it sees, again and again."""

    def __init__(self, ours: DataSourceReader, rows_each: int) -> None:
        self._ours, self._rows_each = ours, rows_each

    def partitions(self) -> Sequence[InputPartition]:
        """The source's."""
        return self._ours.partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Made once a worker; the warming round is there for that."""
        key = pickle.dumps(self._ours)
        if key not in _READY:
            found = (batch for batch in self._ours.read(partition) if isinstance(batch, pa.RecordBatch))
            _READY[key] = max(itertools.islice(found, BATCHES_LOOKED_AT), key=lambda batch: batch.num_rows)
        batch, left = _READY[key], self._rows_each
        while left > 0:
            yield batch.slice(0, min(left, batch.num_rows))
            left -= batch.num_rows


_READY: dict[bytes, pa.RecordBatch] = {}


# ---------------------------------------------------------------- the raw read


def raw_read(port: int, queue: str) -> int:
    """Read all bodies of one broker as the source asks for them, 40 segments a round, and drop them; how many."""
    keys, found = QueueKeys(queue), 0
    with BlockingBroker(BrokerAddress("127.0.0.1", port)) as broker:
        (segments,) = broker.raw(("ZRANGE", keys.segments, 0, -1))
        wanted = [("LRANGE", keys.segment(int(segment)), 0, -1) for segment in segments]
        step = ROUND_MESSAGES // limits.SEGMENT_MESSAGES
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
