"""The demo: a year of real flights through 16 brokers and Spark, compared with pandas, exactly.

It starts the embedded namespace and Spark's job, sends every flight as one message, waits until Spark has taken them
all, and compares. It ends with 0 only if every message that was acknowledged came out once, nothing is left over and
every figure is equal. Nothing of it stays behind but the picture in demo/out.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from demo.figures import Figures
from demo.producer import Producer
from demo.programs import ROOT, DemoFailed, Namespace, SparkJob
from demo.progress import Progress

from demo import figures, flights_data, report
from partitionedqueue.broker import calls
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Totals
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.placement import BrokerAddress

QUEUE = "flights"
MANIFEST = ROOT / "crds" / "examples" / "flights.yaml"
PICTURE = ROOT / "demo" / "out" / "flights.png"
DEMO_S_MAX = 600.0
TRIGGER_MESSAGES_MAX = 100_000  # so that a batch ends every few seconds, and one sees Spark go on
POLL_S = 0.02
LEFT_OVER_S_MAX = 30.0
STATUS_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for."""

    messages: int | None
    kill: int
    spark_master: str
    spark_heap: str
    picture: Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """What has happened on the way, before the results are compared."""

    expected: Figures
    totals: Sequence[Totals]
    sending_s: float
    spark_s: float
    whole_s: float
    progress: Progress


def parse_options() -> Options:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, metavar="N", help="send only the first N flights")
    parser.add_argument("--kill", type=int, default=0, metavar="N", help="kill -9 N brokers in the middle of sending")
    parser.add_argument("--spark-master", default="local[2]", help="where Spark's tasks run (default %(default)s)")
    parser.add_argument("--spark-heap", default="1g", help="memory of Spark's JVM (default %(default)s)")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="where the picture goes")
    arguments = parser.parse_args()
    if arguments.messages is not None and arguments.messages < 1:
        parser.error("--messages must be at least 1")
    if arguments.kill < 0:
        parser.error("--kill cannot be negative")
    return Options(**vars(arguments))


# ---------------------------------------------------------------- the road


async def drive(options: Options, folder: Path) -> Outcome:
    """Both programs up, every message in and out, both programs down again."""
    started = time.monotonic()
    namespace = Namespace(MANIFEST, QUEUE, folder / "namespace", log=folder / "namespace.log")
    async with namespace:
        await namespace.ready()
        brokers = namespace.brokers()
        print(f"{len(brokers)} brokers are up after {time.monotonic() - started:.1f} s; Spark is starting", flush=True)
        if options.kill > len(brokers):
            raise DemoFailed(f"There are {len(brokers)} brokers; {options.kill} cannot be killed.")
        job = spark_job(options, brokers, folder)
        async with job:
            return await send_and_wait(options, namespace, brokers, job)


def spark_job(options: Options, brokers: Sequence[BrokerAddress], folder: Path) -> SparkJob:
    """The streaming job, told where the brokers are."""
    arguments = ["--queue", QUEUE, "--brokers", ",".join(map(str, brokers))]
    arguments += ["--max-messages-per-trigger", str(TRIGGER_MESSAGES_MAX)]
    arguments += ["--checkpoint", str(folder / "checkpoint"), "--output", str(folder / "results")]
    return SparkJob(arguments, log=folder / "spark.log", heap=options.spark_heap, master=options.spark_master)


async def send_and_wait(
    options: Options, namespace: Namespace, brokers: Sequence[BrokerAddress], job: SparkJob
) -> Outcome:
    """Send everything, wait until Spark has taken it, stop the job, and count what is left."""
    flights = await asyncio.to_thread(flights_data.read_flights, options.messages)
    messages = await asyncio.to_thread(list, flights_data.messages_of(flights))
    keyless = sum(message.partition_key is None for message in messages)
    print(f"{len(messages):,} flights read, {keyless:,} of them without a tail number: those go as keyless messages")
    keys = QueueKeys(QUEUE)
    producer = Producer(brokers, keys)
    progress = Progress(len(messages), lambda: producer.acknowledged, lambda: job.rows)
    progress.start()
    try:
        async with asyncio.TaskGroup() as group:
            watchers = [group.create_task(task) for task in (job.follow(), namespace.watch(), progress.show())]
            if options.kill:
                group.create_task(kill_brokers(options.kill, namespace, producer, progress, len(messages)))
            await producer.send(iter(messages))
            sending_s = progress.elapsed_s
            progress.show_now()
            progress.say(f"Every message is acknowledged after {sending_s:.1f} s.")
            expected = await asyncio.to_thread(figures.figures_of, flights)
            await until(lambda: job.rows >= len(messages))
            whole_s = progress.elapsed_s
            progress.show_now()
            progress.say(f"Spark has committed {job.rows:,} rows after {whole_s:.1f} s.")
            await until_nothing_is_left(brokers, keys)
            for watcher in watchers:
                watcher.cancel()
    finally:
        await producer.close()
    await job.stop()
    return Outcome(expected, await totals_of(brokers, keys), sending_s, job.busy_s, whole_s, progress)


async def kill_brokers(count: int, namespace: Namespace, producer: Producer, progress: Progress, messages: int) -> None:
    """Kill -9 on `count` brokers, spread over the partitions and over the middle third of the sending."""
    partitions = len(namespace.pids())
    for number in range(count):
        enough = messages * (1 + number / count) / 3
        await until(functools.partial(lambda least: producer.acknowledged >= least, enough))
        partition = number * partitions // count
        pid = namespace.pids()[partition]
        os.kill(pid, signal.SIGKILL)
        progress.kills_s.append(progress.elapsed_s)
        progress.say(
            f"kill -9 {pid}: the broker of partition {partition}, {producer.acknowledged:,} acknowledged so far"
        )


async def totals_of(brokers: Sequence[BrokerAddress], keys: QueueKeys) -> list[Totals]:
    """How each partition stands."""
    clients = [BrokerClient(broker) for broker in brokers]
    try:
        return await asyncio.gather(*(client.call(calls.totals(keys)) for client in clients))
    finally:
        for client in clients:
            await client.close()


async def until_nothing_is_left(brokers: Sequence[BrokerAddress], keys: QueueKeys) -> None:
    """Wait until Spark has acknowledged what it has committed; what is left then is told at the end."""
    deadline = time.monotonic() + LEFT_OVER_S_MAX
    while time.monotonic() < deadline:
        if not sum(totals.messages for totals in await totals_of(brokers, keys)):
            return
        await asyncio.sleep(POLL_S)


async def until(reached: Callable[[], bool]) -> None:
    """Wait for a counter; the demo's time bounds it."""
    while not reached():  # noqa: ASYNC110 -- counters of programs that tell by themselves how far they are
        await asyncio.sleep(POLL_S)


# ---------------------------------------------------------------- the verdict


def complaints(outcome: Outcome, spark: Figures) -> list[str]:
    """A sentence for everything that is not as it must be."""
    found = []
    sent = outcome.expected.flights
    stored = sum(totals.last for totals in outcome.totals)
    left = sum(totals.messages for totals in outcome.totals)
    if stored != sent:
        found.append(f"{sent:,} messages were acknowledged, but the brokers gave out {stored:,} sequence numbers.")
    if left:
        found.append(f"{left:,} messages are left over.")
    if spark.flights != sent:
        found.append(f"{sent:,} messages went in, and {spark.flights:,} came out.")
    return found + [f"A figure differs: {difference}." for difference in figures.differences(spark, outcome.expected)]


def tell(outcome: Outcome, spark: Figures, picture: Path) -> None:
    """The spread, the table and the picture."""
    counts = [totals.last for totals in outcome.totals]
    print(f"\nMessages in each of the {len(counts)} partitions:")
    print("\n".join(report.spread_lines(counts)))
    print("\nBy carrier, as Spark has it:")
    print("\n".join(report.carrier_lines(spark)))
    progress = outcome.progress
    report.draw(picture, counts=counts, figures=spark, samples=progress.samples, kills_s=progress.kills_s)
    print(f"\nThe picture is {picture.relative_to(Path.cwd()) if picture.is_relative_to(Path.cwd()) else picture}")


def last_lines(outcome: Outcome, spark: Figures) -> list[str]:
    """What is true once there are no complaints."""
    sent, kills = outcome.expected.flights, len(outcome.progress.kills_s)
    tables = f"{len(spark.by_carrier)} carriers and {len(spark.by_origin_and_hour)} pairs of origin and hour"
    inwards = f"{sent / outcome.sending_s:,.0f} messages/s in ({outcome.sending_s:.1f} s)"
    outwards = f"{sent / outcome.spark_s:,.0f} messages/s out ({outcome.spark_s:.1f} s of Spark's batches)"
    whole = f"{outcome.whole_s:.1f} s from the first message to the last committed row, Spark's start included"
    killed = f"{kills} brokers were killed with -9 on the way: no acknowledged message was lost, none came twice."
    return [
        *([killed] if kills else []),
        f"{sent:,} messages in, {spark.flights:,} out, 0 left over.",
        f"Spark's figures equal pandas': {tables}, every number exactly.",
        f"{inwards}, {outwards}; {whole}.",
    ]


async def demo(options: Options) -> int:
    """Everything, within its time and with everything cleaned up; the exit status."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    folder = Path(tempfile.mkdtemp(prefix="partitionedqueue-demo-"))
    try:
        async with asyncio.timeout(DEMO_S_MAX):
            outcome = await drive(options, folder)
        spark = figures.read_figures(folder / "results")
        tell(outcome, spark, options.picture)
        found = complaints(outcome, spark)
        print("\n".join(["", *(found or last_lines(outcome, spark))]), flush=True)
        return 1 if found else 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sentence_of(error: BaseException) -> str:
    """What went wrong, out of as many groups as it is wrapped in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"The demo was not done within {DEMO_S_MAX:.0f} s."
    return str(error) or type(error).__name__


def main() -> int:
    """The exit status: 0 only if everything is equal."""
    try:
        return asyncio.run(demo(parse_options()))
    except asyncio.CancelledError:
        print("\nInterrupted; nothing is left running.", file=sys.stderr)
        return STATUS_INTERRUPTED
    except (DemoFailed, PartitionedQueueError, OSError, BaseExceptionGroup) as error:
        print(f"\nThe demo failed. {sentence_of(error)}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
