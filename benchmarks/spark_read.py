"""How fast does Spark read a queue of sixteen brokers, and what is between that and the fastest it could be?

The same number of messages is read to Spark's `noop` sink, every row with every column, two tasks at a time:

- `floor`: Arrow batches that are ready before they are asked for. What Spark's Python data sources cost by themselves.
- `raw`: the same bytes out of the same brokers, LRANGE by LRANGE through hiredis, in two Python processes; no Spark.
- `browse`: `spark.read` of the queue.
- `consume`: `spark.readStream` with Trigger.AvailableNow: claims, a checkpoint, and acknowledgements on top of that.
  The queue is filled anew for each round, which is not measured.
- `kafka`, `kafka_stream`: Spark's own source for Kafka, which is Java from end to end, on one real broker with as many
  partitions, read in batch and in a stream with Trigger.AvailableNow.

Servers run on the same machine and take part of it: beside the clock stands the processor time of everything together,
servers included; ratios of it are the other's over ours. Kafka and Spark's source for it come from Maven; without them
the rest is measured. spark-redis is not among the sides: its releases are for Scala 2.12, and on Spark 4 `load` ends
with NoClassDefFoundError: scala/Serializable.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measuring import kafka
from benchmarks.measuring.peers import Peer, PeerMissing
from benchmarks.measuring.rounds import conclude, median, parser, rounds_of, say, table, take_turns
from benchmarks.measuring.servers import OFF, Broker, brokers, temporary_folder
from benchmarks.measuring.spark_reading import (
    TASKS_AT_ONCE,
    Queue,
    processor_s_below,
    raw_read,
    session,
    streamed,
    timed_read,
)
from pyspark.sql import SparkSession

BROKERS = 16
BODIES = (200, 1024)
MESSAGES, MESSAGES_QUICK = 1_008_000, 96_000
MESSAGES_MAX = 4_000_000
"""Three copies of a queue of such messages are in the memory of the machine, and one on Kafka's disk."""
AGAINST = ("floor", "raw")
RUNS = count()


class Found(NamedTuple):
    """What one read gave: rows a second, and processor time in microseconds a row."""

    rate: float
    us: float


Side = Callable[[], Found]


def found(messages: int, read: Callable[[], float]) -> Found:
    """Measure one read, which tells its own seconds."""
    before = processor_s_below(os.getpid())
    took_s = read()
    return Found(messages / took_s, 1e6 * (processor_s_below(os.getpid()) - before) / messages)


# ---------------------------------------------------------------- the sides


def raw(pool: ProcessPoolExecutor, ports: Sequence[int], queue: str, messages: int) -> float:
    """Seconds to read all brokers, as many at a time as Spark has tasks."""
    begun = time.perf_counter()
    came = sum(pool.map(partial(raw_read, queue=queue), ports))
    took_s = time.perf_counter() - begun
    if came != messages:
        raise AssertionError(f"{messages:,} messages were sent, and {came:,} came")
    return took_s


def consumed(spark: SparkSession, queue: Queue, folder: Path, messages: int, body_bytes: int) -> Found:
    """Fill the queue, then read it empty."""
    queue.fill(messages, body_bytes)
    stream = spark.readStream.format("partitionedqueue").options(**queue.options).load()
    its = found(messages, lambda: streamed(stream, folder / f"checkpoint-{next(RUNS)}", messages))
    if left := queue.left():
        raise AssertionError(f"{left:,} messages are still there")
    return its


def of_kafka(spark: SparkSession, peer: Peer, folder: Path, messages: int, body_bytes: int) -> dict[str, Side]:
    """A topic with messages of that size, and the two ways to read it."""
    topic = f"topic-{body_bytes}"
    kafka.make_topic(peer, topic, BROKERS)
    server = {"kafka.bootstrap.servers": peer.address}
    filled = spark.range(0, messages, 1, BROKERS).selectExpr(
        f"cast(id % {BROKERS} as int) partition", f"cast(rpad(cast(id as string), {body_bytes}, '.') as binary) value"
    )
    filled.write.format("kafka").options(**server, topic=topic).save()
    reading = {**server, "subscribe": topic, "startingOffsets": "earliest"}

    def batch() -> float:
        return timed_read(spark.read.format("kafka").options(**reading).load())

    def stream() -> float:
        stream = spark.readStream.format("kafka").options(**reading).load()
        return streamed(stream, folder / f"checkpoint-{next(RUNS)}", messages)

    return {"kafka": partial(found, messages, batch), "kafka_stream": partial(found, messages, stream)}


def of_ours(
    spark: SparkSession, started: Sequence[Broker], folder: Path, messages: int, body_bytes: int
) -> dict[str, Side]:
    """A queue with messages of that size, and the ways to read it."""
    standing, passing = Queue(started, f"standing-{body_bytes}"), Queue(started, f"passing-{body_bytes}")
    standing.fill(messages, body_bytes)
    floor = {**standing.options, "rowsEach": str(messages // BROKERS)}

    def browse() -> float:
        return timed_read(spark.read.format("partitionedqueue").options(**standing.options).load())

    return {
        "floor": partial(found, messages, lambda: timed_read(spark.read.format("floor").options(**floor).load())),
        "browse": partial(found, messages, browse),
        "consume": partial(consumed, spark, passing, folder, messages, body_bytes),
    }


# ---------------------------------------------------------------- the question


def ratios_of(
    body_bytes: int, seen: Sequence[Mapping[str, Found]], figure: Callable[[Found, Found], float]
) -> dict[str, float]:
    """Each of our ways to the others, round by round."""
    pairs = [(way, other) for way in ("browse", "consume") for other in AGAINST]
    pairs += [("browse", "kafka"), ("consume", "kafka_stream")]
    return {
        f"{way}_{body_bytes}_vs_{other}": median(figure(each[way], each[other]) for each in seen)
        for way, other in pairs
        if other in seen[0]
    }


def measure(
    stack: ExitStack, messages: int, rounds: int, lacking: list[str]
) -> tuple[dict[str, float], dict[str, float]]:
    """Start everything, take turns, print. What there is not is added to `lacking`."""
    folder = stack.enter_context(temporary_folder())
    peer, jars = None, list[Path]()
    try:
        jars = kafka.jars_of_spark()
        peer = stack.enter_context(kafka.kafka())
    except PeerMissing as missing:
        lacking.append(f"kafka: {missing}")
    started = stack.enter_context(brokers(BROKERS, OFF))
    pool = stack.enter_context(ProcessPoolExecutor(TASKS_AT_ONCE, get_context("spawn")))
    spark = session(jars)
    stack.callback(spark.stop)
    ratios, cpu_ratios = dict[str, float](), dict[str, float]()
    for body_bytes in BODIES:
        say(f"filling queues with {messages:,} messages of {body_bytes} B")
        sides = of_ours(spark, started, folder, messages, body_bytes)
        ports, queue = [broker.port for broker in started], f"standing-{body_bytes}"
        sides["raw"] = partial(found, messages, partial(raw, pool, ports, queue, messages))
        if peer:
            sides |= of_kafka(spark, peer, folder, messages, body_bytes)
        say("reading")
        seen = take_turns(sides, rounds)
        show(body_bytes, messages, seen)
        ratios |= ratios_of(body_bytes, seen, lambda ours, other: ours.rate / other.rate)
        cpu_ratios |= ratios_of(body_bytes, seen, lambda ours, other: other.us / ours.us)
    return ratios, cpu_ratios


def show(body_bytes: int, messages: int, seen: Sequence[Mapping[str, Found]]) -> None:
    """The table of one size."""
    print(f"{messages:,} messages of {body_bytes} B in {BROKERS} brokers; medians of {len(seen)} rounds")
    names = sorted(seen[0], key=lambda name: -median(each[name].rate for each in seen))
    rows = [
        (name, f"{median(each[name].rate for each in seen):,.0f}", f"{median(each[name].us for each in seen):.2f}")
        for name in names
    ]
    table(("read", "rows/s", "processor us/row"), rows)


def main() -> int:
    """Measure, or say in words what this machine lacks; print the JSON line."""
    asked = parser("Spark's read of a queue against what is fastest, and against Kafka.")
    asked.add_argument("--messages", type=int, help=f"of each size (default {MESSAGES:,})")
    arguments = asked.parse_args()
    messages = arguments.messages or (MESSAGES_QUICK if arguments.quick else MESSAGES)
    if messages > MESSAGES_MAX or messages % (BROKERS * 1000):
        raise SystemExit(f"--messages must be a multiple of {BROKERS * 1000:,}, and at most {MESSAGES_MAX:,}")
    lacking: list[str] = []
    with ExitStack() as stack:
        ratios, cpu_ratios = measure(stack, messages, rounds_of(arguments), lacking)
    for each in lacking:
        print(f"Not measured: {each}")
    rounded = {name: round(ratio, 3) for name, ratio in cpu_ratios.items()}
    return conclude("spark_read", ratios, messages=messages, cpu_ratios=rounded, not_measured=lacking)


if __name__ == "__main__":
    sys.exit(main())
