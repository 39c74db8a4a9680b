"""Is a partitioned queue ahead of other durable queues: a RabbitMQ quorum queue, NATS JetStream that syncs always?

A message of 1 KB is published and confirmed, received and acknowledged; all sides have it on disk (fsync) before they
confirm. One driver, in Go, loads each side over its own protocol with as many messages in flight on each connection:
partitionedqueue over RESP, RabbitMQ over AMQP 0-9-1 with publisher confirms and a prefetch count, NATS with its own
client's asynchronous publishing and pulls. All servers run all the time, and each round measures all sides in turn, in
another order. Printed are messages a second through the whole cycle, and ratios to the peer's best way of the same
round: acknowledgements of each message or of a hundred at once, one queue or one for each connection.

How partitionedqueue is called makes the difference: `joined` is what its clients do with messages that are handed to
them one by one (one send at a time with all that waits, one receive at a time for all there is room for; each message
is completed by itself), b is a call for every so many messages, b=1 the dearest way there is. A peer's messages
travel singly, as their protocols have it, and the peer joins them as it likes. Beside the clock stands the processor
time of the servers, which other work on the same machine does not change; its ratios are the peer's least over ours.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measuring import peers
from benchmarks.measuring.peers import Peer, PeerMissing
from benchmarks.measuring.rounds import conclude, median, parser, rounds_of, say, table, take_turns
from benchmarks.measuring.servers import ALWAYS, brokers, temporary_folder

from partitionedqueue.model.message import Message
from partitionedqueue.model.stored_message import encode

OURS, RABBITMQ, NATS = "partitionedqueue", "rabbitmq", "nats"
BODY_BYTES = 1024
WINDOW = 256
SECONDS, SECONDS_QUICK = 1.5, 0.3
FIRST_MESSAGES = 1_600
DRIVER_S_MAX = 120.0
BATCHES = {"joined": 0, "b1": 1, "b10": 10, "b100": 100}
RUNS = count()


@dataclass(frozen=True)
class Side:
    """One way of passing messages through one kind of broker."""

    name: str
    kind: str
    addresses: tuple[str, ...]
    groups: frozenset[int]
    connections: int
    batch: int
    queues: int = 1
    messages: int = FIRST_MESSAGES


class Found(NamedTuple):
    """What one run of one side gave."""

    rate: float
    publish_rate: float
    consume_rate: float
    server_us: float
    driver_cores: float


Ratios = tuple[dict[str, float], dict[str, float]]


def drive(program: Path, body: Path, side: Side) -> Found:
    """One run: everything published, then everything received."""
    before = peers.processor_s(set(side.groups))
    arguments = {
        "kind": side.kind,
        "addresses": ",".join(side.addresses),
        "body": str(body),
        "connections": side.connections,
        "queues": side.queues,
        "messages": side.messages,
        "batch": side.batch,
        "window": WINDOW,
        "run": f"run{next(RUNS)}",
    }
    done = subprocess.run(
        [str(program), *(f"-{name}={value}" for name, value in arguments.items())],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DRIVER_S_MAX,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{side.name}: {done.stderr.strip()[-1000:]}")
    told = json.loads(done.stdout)
    messages, took_s = told["messages"], told["publish_s"] + told["consume_s"]
    return Found(
        messages / took_s,
        messages / told["publish_s"],
        messages / told["consume_s"],
        1e6 * (peers.processor_s(set(side.groups)) - before) / messages,
        told["driver_cpu_s"] / took_s,
    )


def our_sides(stack: ExitStack) -> list[Side]:
    """One broker and sixteen."""
    sides = []
    for number, connections in ((1, (1, 16)), (16, (16,))):
        started = stack.enter_context(brokers(number, ALWAYS))
        addresses = tuple(f"127.0.0.1:{broker.port}" for broker in started)
        groups = frozenset(broker.process_group for broker in started)
        sides += [
            Side(f"{OURS} x{number} c{each} {name}", OURS, addresses, groups, each, batch)
            for each in connections
            for name, batch in BATCHES.items()
        ]
    return sides


def peer_sides(kind: str, peer: Peer) -> list[Side]:
    """A peer's ways: one queue, or one for each connection; acknowledgements singly, or many at once where it can."""
    batches = (1, 100) if kind == RABBITMQ else (1,)
    return [
        Side(
            f"{kind} c{each} q{queues} a{batch}",
            kind,
            (peer.address,),
            frozenset((peer.process_group,)),
            each,
            batch,
            queues,
        )
        for each, queues in ((1, 1), (16, 1), (16, 16))
        for batch in batches
    ]


def ready(program: Path, bodies: Mapping[str, Path], side: Side, seconds: float) -> Side:
    """The side with as many messages as it passes in that time."""
    rate = drive(program, bodies[side.kind], side).rate
    return replace(side, messages=max(FIRST_MESSAGES, int(rate * seconds / FIRST_MESSAGES) * FIRST_MESSAGES))


def ratios_of(sides: Sequence[Side], seen: Sequence[Mapping[str, Found]]) -> Ratios:
    """Each of our ways to the best of each peer's with as many connections: by the clock, by processor time."""
    ratios, cpu_ratios = {}, {}
    for kind in (RABBITMQ, NATS):
        for ours in (side for side in sides if side.kind == OURS):
            its = [side.name for side in sides if side.kind == kind and side.connections == ours.connections]
            if its:
                name = f"{ours.name.removeprefix(OURS).strip().replace(' ', '_')}_vs_{kind}"
                ratios[name] = median(each[ours.name].rate / max(each[one].rate for one in its) for each in seen)
                least = (min(each[one].server_us for one in its) / each[ours.name].server_us for each in seen)
                cpu_ratios[name] = round(median(least), 3)
    return ratios, cpu_ratios


def show(sides: Sequence[Side], seen: Sequence[Mapping[str, Found]]) -> None:
    """The table of all sides."""
    rows = []
    for side in sides:
        its = [each[side.name] for each in seen]
        cells = [f"{median(getattr(one, name) for one in its):,.0f}" for name in Found._fields[:3]]
        cells.append(f"{median(one.server_us for one in its):.1f}")
        rows.append((side.name, *cells, f"{median(one.driver_cores for one in its):.2f}"))
    table(("side", "cycle/s", "publish/s", "receive + ack/s", "server us/message", "driver's processors"), rows)


def measure(stack: ExitStack, rounds: int, seconds: float, lacking: list[str]) -> Ratios:
    """Start everything, take turns, print; what there is not is added to `lacking`. Raises PeerMissing without Go."""
    folder = stack.enter_context(temporary_folder())
    program = peers.driver(folder)
    body = os.urandom(BODY_BYTES)
    bodies = {kind: folder / kind for kind in (OURS, RABBITMQ, NATS)}
    for kind, path in bodies.items():
        path.write_bytes(encode(Message(body=body)) if kind == OURS else body)
    sides = our_sides(stack)
    for kind, start in ((RABBITMQ, peers.rabbitmq), (NATS, peers.nats)):
        try:
            sides += peer_sides(kind, stack.enter_context(start()))
        except PeerMissing as missing:
            lacking.append(f"{kind}: {missing}")
    for number, side in enumerate(sides):
        sides[number] = ready(program, bodies, side, seconds)
        say(f"{side.name}: {sides[number].messages:,} messages a round")
    turns = {side.name: partial(drive, program, bodies[side.kind], side) for side in sides}
    seen = take_turns(turns, rounds)
    print(f"{BODY_BYTES} B, at most {WINDOW} in flight on a connection, synced to disk; medians of {rounds} rounds")
    print("x brokers, c connections, b messages a call, q queues, a messages an acknowledgement")
    show(sides, seen)
    return ratios_of(sides, seen)


def main() -> int:
    """Measure, or say in words what this machine lacks; print the JSON line."""
    arguments = parser("The broker against RabbitMQ quorum queues and NATS JetStream.").parse_args()
    rounds, seconds = rounds_of(arguments), SECONDS_QUICK if arguments.quick else SECONDS
    lacking: list[str] = []
    with ExitStack() as stack:
        try:
            ratios, cpu_ratios = measure(stack, rounds, seconds, lacking)
        except PeerMissing as missing:
            ratios, cpu_ratios, lacking = {}, {}, [str(missing)]
    for each in lacking:
        print(f"Not measured: {each}")
    behind = [name for name, ratio in ratios.items() if ratio <= 1]
    return conclude(
        "broker_vs_peers", ratios, rounds=rounds, cpu_ratios=cpu_ratios, not_measured=lacking, behind=behind
    )


if __name__ == "__main__":
    sys.exit(main())
