"""How does the time of a fixed read change with the number of partitions it is spread over: 1, 4, 16, 80?

The same messages, 200 B each, are in one broker, in four, sixteen or eighty, and Spark reads them two tasks at a time
to its `noop` sink, every row with every column: once in batch (`browse`), once as a whole stream that ends with
Trigger.AvailableNow (`consume`; filled anew for each round, which is not measured). On a machine with two processors
more partitions cannot be faster than two; what is asked is what each further one costs. Ratios are times over that of
sixteen partitions, in the same round; `ms_a_partition` is what a partition more than sixteen adds.
"""

import sys
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measuring.rounds import conclude, median, parser, rounds_of, say, table, take_turns
from benchmarks.measuring.servers import OFF, brokers, temporary_folder
from benchmarks.measuring.spark_reading import Queue, session, streamed, timed_read
from pyspark.sql import SparkSession

PARTITIONS = (1, 4, 16, 80)
USUAL = 16
BODY_BYTES = 200
MESSAGES, MESSAGES_QUICK = 960_000, 80_000
RUNS = count()


def browsed(spark: SparkSession, queue: Queue) -> float:
    """Seconds of one batch read."""
    return timed_read(spark.read.format("partitionedqueue").options(**queue.options).load())


def consumed(spark: SparkSession, queue: Queue, folder: Path, messages: int) -> float:
    """Fill the queue; seconds to read it empty."""
    queue.fill(messages, BODY_BYTES)
    stream = spark.readStream.format("partitionedqueue").options(**queue.options).load()
    return streamed(stream, folder / f"checkpoint-{next(RUNS)}", messages)


def measure(rounds: int, messages: int) -> list[dict[str, float]]:
    """Seconds of every way over every number of partitions, round by round."""
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        spark = session()
        stack.callback(spark.stop)
        sides = {}
        for partitions in PARTITIONS:
            say(f"starting {partitions} brokers")
            started = stack.enter_context(brokers(partitions, OFF))
            standing, passing = Queue(started, "standing"), Queue(started, "passing")
            standing.fill(messages, BODY_BYTES)
            sides[f"browse_{partitions}"] = partial(browsed, spark, standing)
            sides[f"consume_{partitions}"] = partial(consumed, spark, passing, folder, messages)
        say("reading")
        return take_turns(sides, rounds)


def main() -> int:
    """Measure; print the JSON line."""
    arguments = parser("The time of a fixed read against the number of partitions.").parse_args()
    messages = MESSAGES_QUICK if arguments.quick else MESSAGES
    seen = measure(rounds_of(arguments), messages)
    seconds = {name: median(each[name] for each in seen) for name in seen[0]}
    print(f"{messages:,} messages of {BODY_BYTES} B; medians of {len(seen)} rounds, in seconds")
    rows = [(str(n), f"{seconds[f'browse_{n}']:.2f}", f"{seconds[f'consume_{n}']:.2f}") for n in PARTITIONS]
    table(("partitions", "browse", "consume"), rows)
    ratios, added = {}, {}
    for way in ("browse", "consume"):
        for partitions in PARTITIONS:
            times = (each[f"{way}_{partitions}"] / each[f"{way}_{USUAL}"] for each in seen)
            ratios[f"{way}_{partitions}_vs_{USUAL}"] = median(times)
        more_s = (each[f"{way}_{PARTITIONS[-1]}"] - each[f"{way}_{USUAL}"] for each in seen)
        added[way] = round(1000 * median(more_s) / (PARTITIONS[-1] - USUAL), 1)
    del ratios[f"browse_{USUAL}_vs_{USUAL}"], ratios[f"consume_{USUAL}_vs_{USUAL}"]
    return conclude("spark_scaling", ratios, messages=messages, ms_a_partition=added)


if __name__ == "__main__":
    sys.exit(main())
