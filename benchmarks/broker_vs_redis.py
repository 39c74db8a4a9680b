"""How much of plain Redis' speed is left once messages have locks, sequence numbers and totals?

Both sides are driven by the same loop over the same connections to the same redis-servers, one after the other, in
rounds that swap who goes first. What is printed are the medians of each round's own fraction, so a slow moment of the
machine hurts both sides alike. 1.00 means as fast as plain Redis.

    send      pq_send of b messages                 against RPUSH of b values
    receive   pq_receive of b messages under a lock against LPOP with count b
    complete  pq_complete of what one receive gave  against XACK + XDEL of b entries of a stream
    cycle     all three                             against RPUSH + LPOP

Each number stands twice: by the clock, which contains this driver's own Python, and by the servers' processor time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import hiredis

from partitionedqueue.broker.library import library_text

MESSAGE = os.urandom(1024)
PIPELINE_DEPTH = 16
LOCK_MS = 300_000
QUEUE = "pq:bench"
BATCHES = (1, 10, 100)
MESSAGES_A_ROUND = {1: 8_000, 10: 24_000, 100: 48_000}
START_S_MAX = 10.0
REPLY_S_MAX = 60.0


class Operation(NamedTuple):
    """What is sent at once and how many replies end it."""

    wire: bytes
    replies: int = 1


class Cost(NamedTuple):
    """What one phase took, all brokers together."""

    clock_s: float
    cpu_s: float


Round = dict[str, Cost]
Fractions = dict[str, tuple[float, float]]


def operation(*commands: tuple[str | bytes | int, ...]) -> Operation:
    """Several commands as one operation, packed before the clock starts (hiredis' stub allows a single word)."""
    return Operation(b"".join(hiredis.pack_command(cast("Any", command)) for command in commands), len(commands))


def fcall(name: str, *arguments: str | bytes | int) -> Operation:
    """One call of the library."""
    return operation(("FCALL", name, 1, QUEUE, *arguments))


# ---------------------------------------------------------------- one driver for both sides


@dataclass
class Lane:
    """One connection to one broker, and what is under way on it."""

    socket: socket.socket
    reader: hiredis.Reader = field(default_factory=hiredis.Reader)
    operations: Sequence[Operation] = ()
    started: int = 0
    finished: int = 0
    unsent: bytearray = field(default_factory=bytearray)
    replies: list[Any] = field(default_factory=list)
    awaited: int = 0

    def begin(self, operations: Sequence[Operation]) -> None:
        """Take the next phase's operations."""
        self.operations = operations
        self.started = self.finished = self.awaited = 0
        self.replies = []

    @property
    def done(self) -> bool:
        """Has every operation been answered?"""
        return self.finished == len(self.operations)

    def top_up(self) -> None:
        """Keep PIPELINE_DEPTH operations in flight."""
        while self.started < len(self.operations) and self.started - self.finished < PIPELINE_DEPTH:
            self.unsent += self.operations[self.started].wire
            self.started += 1

    def write(self) -> None:
        """Give the kernel what it takes."""
        if self.unsent:
            try:
                del self.unsent[: self.socket.send(self.unsent)]
            except BlockingIOError:
                return

    def read(self) -> None:
        """Take what has come and count the operations it ends."""
        received = self.socket.recv(1 << 20)
        if not received:
            raise ConnectionError("a redis-server closed its connection")
        self.reader.feed(received)
        while (reply := self.reader.gets()) is not False:
            if isinstance(reply, hiredis.ReplyError):
                raise reply
            self.replies.append(reply)
            self.awaited += 1
            if self.awaited == self.operations[self.finished].replies:
                self.awaited = 0
                self.finished += 1


def drive(lanes: Sequence[Lane], operations: Sequence[Sequence[Operation]]) -> float:
    """Run every lane's operations to their end; how many seconds it took. The replies stay in the lanes."""
    with selectors.DefaultSelector() as selector:
        for lane, its_operations in zip(lanes, operations, strict=True):
            lane.begin(its_operations)
            selector.register(lane.socket, selectors.EVENT_READ, lane)
        busy = sum(not lane.done for lane in lanes)
        started = time.perf_counter()
        for lane in lanes:
            move(lane, selector)
        while busy:
            ready = selector.select(REPLY_S_MAX)
            if not ready:
                raise TimeoutError(f"no redis-server has answered for {REPLY_S_MAX:.0f} s")
            for key, events in ready:
                lane = key.data
                was_done = lane.done
                if events & selectors.EVENT_READ:
                    lane.read()
                move(lane, selector)
                busy -= lane.done and not was_done
        return time.perf_counter() - started


def move(lane: Lane, selector: selectors.BaseSelector) -> None:
    """Send what may be sent, and wait for room only where there was not enough."""
    lane.top_up()
    lane.write()
    events = selectors.EVENT_READ | (selectors.EVENT_WRITE if lane.unsent else 0)
    if selector.get_key(lane.socket).events != events:
        selector.modify(lane.socket, events, lane)


def ask(lanes: Sequence[Lane], *commands: tuple[str | bytes | int, ...]) -> list[Any]:
    """The same few commands on every lane, unmeasured; the last reply of each."""
    drive(lanes, [[operation(*commands)]] * len(lanes))
    return [lane.replies[-1] for lane in lanes]


def cpu_s(lanes: Sequence[Lane]) -> float:
    """Processor time that the servers have used so far."""
    total = 0.0
    for info in ask(lanes, ("INFO", "cpu")):
        lines = dict(line.split(":", 1) for line in info.decode().split("\r\n") if ":" in line)
        total += float(lines["used_cpu_sys"]) + float(lines["used_cpu_user"])
    return total


def measured(lanes: Sequence[Lane], operations: Sequence[Sequence[Operation]]) -> Cost:
    """One phase on both clocks."""
    before = cpu_s(lanes)
    clock = drive(lanes, operations)
    replies = [lane.replies for lane in lanes]
    used = cpu_s(lanes) - before
    for lane, its_replies in zip(lanes, replies, strict=True):
        lane.replies = its_replies  # INFO's reply took their place
    return Cost(clock, used)


# ---------------------------------------------------------------- the two sides


def round_of_broker(lanes: Sequence[Lane], batch: int, calls: int) -> Round:
    """Send, receive and complete through the library; `calls` calls on each lane."""
    send = fcall("pq_send", "", 0, *[MESSAGE] * batch)
    receive = fcall("pq_receive", batch, LOCK_MS)
    costs = {"send": measured(lanes, [[send] * calls] * len(lanes))}
    costs["receive"] = measured(lanes, [[receive] * calls] * len(lanes))
    completes = []
    for lane in lanes:
        if sum(len(run[4]) for _, _, *runs in lane.replies for run in runs) != batch * calls:
            raise AssertionError("the broker did not give back as many messages as were sent")
        completes.append([complete_of(runs) for _, _, *runs in lane.replies])
    costs["complete"] = measured(lanes, completes)
    if any(refused for lane in lanes for refused in lane.replies):
        raise AssertionError("the broker refused to complete a message")
    return costs


def complete_of(runs: Sequence[Any]) -> Operation:
    """One pq_complete for everything that one pq_receive gave."""
    return fcall(
        "pq_complete",
        *itertools.chain.from_iterable((lock, first, first + len(bodies) - 1) for lock, first, _, _, bodies in runs),
    )


def round_of_redis(lanes: Sequence[Lane], batch: int, calls: int) -> Round:
    """The nearest plain commands: a list for send and receive, a stream for complete."""
    push = operation(("RPUSH", "plain", *[MESSAGE] * batch))
    pop = operation(("LPOP", "plain", batch))
    costs = {"send": measured(lanes, [[push] * calls] * len(lanes))}
    costs["receive"] = measured(lanes, [[pop] * calls] * len(lanes))
    add = operation(*[("XADD", "stream", "*", "m", MESSAGE)] * batch)
    read = operation(("XREADGROUP", "GROUP", "g", "c", "COUNT", batch, "STREAMS", "stream", ">"))
    ask(lanes, ("XGROUP", "CREATE", "stream", "g", "$", "MKSTREAM"))
    drive(lanes, [[add] * calls] * len(lanes))
    drive(lanes, [[read] * calls] * len(lanes))
    completes = []
    for lane in lanes:
        batches = [[entry[0] for entry in reply[0][1]] for reply in lane.replies]
        completes.append([operation(("XACK", "stream", "g", *ids), ("XDEL", "stream", *ids)) for ids in batches])
    costs["complete"] = measured(lanes, completes)
    ask(lanes, ("DEL", "stream"))
    return costs


def fractions_of(broker: Round, redis: Round) -> Fractions:
    """Phase → how much of plain Redis the broker reaches, by the clock and by the servers' processor time."""
    phases = {name: (redis[name], broker[name]) for name in ("send", "receive", "complete")}
    phases["cycle"] = (
        total(redis["send"], redis["receive"]),
        total(broker["send"], broker["receive"], broker["complete"]),
    )
    return {name: (of.clock_s / ours.clock_s, of.cpu_s / ours.cpu_s) for name, (of, ours) in phases.items()}


def total(*costs: Cost) -> Cost:
    """Several phases as one."""
    return Cost(sum(cost.clock_s for cost in costs), sum(cost.cpu_s for cost in costs))


# ---------------------------------------------------------------- servers


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody uses at this moment."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def start_server(port: int, folder: Path, appendfsync: str) -> subprocess.Popen[bytes]:
    """A redis-server with its append-only file in `folder`; it is never rewritten while it is measured."""
    folder.mkdir()
    options = {
        "port": str(port),
        "bind": "127.0.0.1",
        "dir": str(folder),
        "save": "",
        "appendonly": "yes",
        "appendfsync": appendfsync,
        "auto-aof-rewrite-percentage": "0",
        "logfile": str(folder / "log"),
    }
    arguments = itertools.chain.from_iterable((f"--{name}", value) for name, value in options.items())
    return subprocess.Popen(["redis-server", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)


def connect(port: int) -> Lane:
    """A lane to a server that may still be starting."""
    deadline = time.monotonic() + START_S_MAX
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=1.0)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        return Lane(connection)


@contextmanager
def servers(count: int, appendfsync: str) -> Iterator[list[Lane]]:
    """`count` brokers with the library, one lane to each; nothing of them is left afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="pq-bench-"))
    children: list[subprocess.Popen[bytes]] = []
    lanes: list[Lane] = []
    try:
        ports = free_ports(count)
        children.extend(start_server(port, folder / str(port), appendfsync) for port in ports)
        lanes.extend(connect(port) for port in ports)
        ask(lanes, ("FUNCTION", "LOAD", "REPLACE", library_text()))
        yield lanes
    finally:
        for lane in lanes:
            lane.socket.close()
        for child in children:
            child.kill()
            child.wait()
        shutil.rmtree(folder, ignore_errors=True)


# ---------------------------------------------------------------- the run


class Scenario(NamedTuple):
    """What one line of the table is about."""

    batch: int
    appendfsync: str
    brokers: int

    def key(self, phase: str) -> str:
        """The name of one ratio in the JSON line."""
        return f"{phase}_b{self.batch}_{self.appendfsync}_x{self.brokers}"


def one_round(lanes: Sequence[Lane], scenario: Scenario, messages: int, *, broker_first: bool) -> tuple[Round, Round]:
    """Both sides once, in this order or the other; (broker, redis)."""
    calls = max(PIPELINE_DEPTH, messages // (scenario.batch * scenario.brokers))
    if broker_first:
        broker = round_of_broker(lanes, scenario.batch, calls)
        return broker, round_of_redis(lanes, scenario.batch, calls)
    redis = round_of_redis(lanes, scenario.batch, calls)
    return round_of_broker(lanes, scenario.batch, calls), redis


def run_scenario(scenario: Scenario, lanes: Sequence[Lane], rounds: int, share: float) -> Fractions:
    """Medians of this scenario's fractions over all rounds; one more round before them warms both sides."""
    messages = int(MESSAGES_A_ROUND[scenario.batch] * share)
    one_round(lanes, scenario, messages // 4, broker_first=True)
    seen: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for number in range(rounds):
        broker, redis = one_round(lanes, scenario, messages, broker_first=number % 2 == 0)
        for phase, both in fractions_of(broker, redis).items():
            seen[phase].append(both)
    return {
        phase: (statistics.median(clock for clock, _ in values), statistics.median(cpu for _, cpu in values))
        for phase, values in seen.items()
    }


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="The broker against plain Redis commands, as fractions.")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each scenario (default 5)")
    parser.add_argument("--quick", action="store_true", help="a quarter of the messages, three rounds")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    return arguments


def main() -> int:
    """Measure every scenario and print the table and the JSON line."""
    arguments = parse_arguments()
    rounds, share = (3, 0.25) if arguments.quick else (arguments.rounds, 1.0)
    ratios: dict[str, float] = {}
    cpu_ratios: dict[str, float] = {}
    print(f"Fractions of plain Redis, medians of {rounds} rounds: by the clock (by the servers' processor time)")
    print(f"{'fsync':>8} {'brokers':>7} {'batch':>5} {'send':>14} {'receive':>14} {'complete':>14} {'cycle':>14}")
    for appendfsync, brokers in itertools.product(("always", "everysec"), (1, 16)):
        with servers(brokers, appendfsync) as lanes:
            for batch in BATCHES:
                scenario = Scenario(batch, appendfsync, brokers)
                medians = run_scenario(scenario, lanes, rounds, share)
                columns = " ".join(f"{clock:>6.2f} ({cpu:>5.2f})" for clock, cpu in medians.values())
                print(f"{appendfsync:>8} {brokers:>7} {batch:>5} {columns}", flush=True)
                ratios |= {scenario.key(phase): round(clock, 3) for phase, (clock, _) in medians.items()}
                cpu_ratios |= {scenario.key(phase): round(cpu, 3) for phase, (_, cpu) in medians.items()}
    print(json.dumps({"benchmark": "broker_vs_redis", "rounds": rounds, "ratios": ratios, "cpu_ratios": cpu_ratios}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
