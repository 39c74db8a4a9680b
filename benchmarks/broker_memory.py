"""How many bytes of a broker's memory does a message take above its own, in each state?

Each case is loaded into an empty broker and the difference of used_memory (jemalloc's size classes are in it) is
divided by the messages; medians over all rounds. Beside it stands what the broker itself charges its quota with: no
less than what it takes, or a full broker would not refuse in time. Layout G, bodies in hashes of 4096 and one
sorted-set entry a receive, was the best of those tried before this one; it is loaded here with Redis' own commands, the
same bytes, as the measure: 1.00 is as much as G takes, and less is better.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measuring.lanes import Lane, connect, drive, information, wire, wire_of
from benchmarks.measuring.messages import batches, received_runs, settlements_of
from benchmarks.measuring.rounds import conclude, median, parser, rounds_of, say, table
from benchmarks.measuring.servers import OFF, brokers

from partitionedqueue.broker import calls, replies
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Run
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model import limits
from partitionedqueue.model.message import Message
from partitionedqueue.model.stored_message import encode

KEYS = QueueKeys("memory")
BODY_BYTES = 200
MESSAGES, MESSAGES_QUICK = 51_200, 10_240  # whole segments, and whole hashes of layout G
BATCH = 100
HOUR_MS = 3_600_000
FAR_MS = 4_000_000_000_000  # a time in the next century
LOCK_MS = limits.LOCK_DURATION_MS_MAX
G_HASH = 4_096
SETTLE_S, SETTLE_S_MAX = 0.2, 10.0

Load = Callable[[Lane, Sequence[bytes]], None]


class Case(NamedTuple):
    """A state that messages may be in: how to bring them there, in what kind of queue, and what it is measured by."""

    load: Load
    measure: str
    settings: BrokerSettings = BrokerSettings()
    properties: Callable[[int], dict[str, Any]] = lambda _: {}


class Taken(NamedTuple):
    """Bytes for each message: above its stored form, and what the quota is charged with above it."""

    used: float
    charged: float


# ---------------------------------------------------------------- states


def ready(lane: Lane, messages: Sequence[bytes], *, batch: int = BATCH) -> None:
    """Stored, and received by nobody."""
    drive([lane], [[wire_of(calls.send(KEYS, each)) for each in batches(messages, batch)]])


def receive(lane: Lane, count: int, batch: int) -> list[list[Run]]:
    """All of them under locks."""
    drive([lane], [[wire_of(calls.receive(KEYS, most=batch, lock_ms=LOCK_MS))] * -(-count // batch)])
    return received_runs(lane.replies, count)


def locked(lane: Lane, messages: Sequence[bytes], *, batch: int) -> None:
    """Received, `batch` at a time, and not settled."""
    ready(lane, messages)
    receive(lane, len(messages), batch)


def deferred(lane: Lane, messages: Sequence[bytes], *, batch: int) -> None:
    """Received and put aside."""
    ready(lane, messages)
    drive([lane], [[wire_of(calls.defer(KEYS, settlements_of(its))) for its in receive(lane, len(messages), batch)]])


def returned(lane: Lane, messages: Sequence[bytes], *, batch: int) -> None:
    """Received and given back; all of them were received first, so that none is received twice."""
    ready(lane, messages)
    drive([lane], [[wire_of(calls.abandon(KEYS, settlements_of(its))) for its in receive(lane, len(messages), batch)]])


def half_settled(lane: Lane, messages: Sequence[bytes]) -> None:
    """Received a hundred at a time, every second one completed by itself: what these leave is charged to the others."""
    ready(lane, messages)
    runs = [run for its in receive(lane, len(messages), BATCH) for run in its]
    places = [(run.lock, run.first + i) for run in runs for i in range(0, len(run.messages), 2)]
    drive([lane], [[wire_of(calls.complete(KEYS, [replies.Settlement(lock, at, at)])) for lock, at in places]])


def held_in_sessions(lane: Lane, messages: Sequence[bytes]) -> None:
    """Sessions of one message, accepted, and received from."""
    ready(lane, messages, batch=1)
    drive([lane], [[wire_of(calls.accept_session(KEYS, lock_ms=LOCK_MS))] * len(messages)])
    sessions = [replies.accepted_session(raw).session for raw in lane.replies]
    drive([lane], [[wire_of(calls.receive(KEYS, most=1, session=session)) for session in sessions]])
    received_runs(lane.replies, len(messages))


def remembered(lane: Lane, messages: Sequence[bytes]) -> None:
    """Stored, with an id each that the queue remembers."""
    sends = [
        wire_of(calls.send(KEYS, each, fingerprints=os.urandom(limits.FINGERPRINT_BYTES * len(each))))
        for each in batches(messages, BATCH)
    ]
    drive([lane], [sends])


def in_layout_g(lane: Lane, messages: Sequence[bytes], *, batch: int | None = None) -> None:
    """Bodies in hashes of 4096 sequence numbers; locked: a range and its expiry in a sorted set."""
    hashes = batches([word for pair in enumerate(messages) for word in (str(pair[0] + 1).encode(), pair[1])], 2 * BATCH)
    drive([lane], [[wire("HSET", f"g:{i * BATCH // G_HASH}", *each) for i, each in enumerate(hashes)]])
    if batch is not None:
        now_ms = int(time.time() * 1000)
        ranges = [f"{i + 1}-{i + batch}" for i in range(0, len(messages), batch)]
        drive([lane], [[wire("ZADD", "g:locks", (now_ms + i) * 1024 + 1, each) for i, each in enumerate(ranges)]])


G_READY, G_LOCKED_1, G_LOCKED_100 = "G, ready", "G, locked by 1", "G, locked by 100"
G_CASES = (G_READY, G_LOCKED_1, G_LOCKED_100)
IN_SESSIONS = BrokerSettings(sessions=True)
CASES = {
    G_READY: Case(in_layout_g, G_READY),
    G_LOCKED_1: Case(partial(in_layout_g, batch=1), G_LOCKED_1),
    G_LOCKED_100: Case(partial(in_layout_g, batch=100), G_LOCKED_100),
    "ready": Case(ready, G_READY),
    "ready, sent by 1": Case(partial(ready, batch=1), G_READY),
    "locked by 1": Case(partial(locked, batch=1), G_LOCKED_1),
    "locked by 100": Case(partial(locked, batch=100), G_LOCKED_100),
    "returned by 1": Case(partial(returned, batch=1), G_LOCKED_1),
    "deferred by 1": Case(partial(deferred, batch=1), G_READY),
    "deferred by 100": Case(partial(deferred, batch=100), G_READY),
    "every second completed": Case(half_settled, G_LOCKED_100),
    "scheduled": Case(ready, G_READY, properties=lambda i: {"scheduled_enqueue_time_ms": FAR_MS + i}),
    "time to live, alike": Case(ready, G_READY, properties=lambda _: {"time_to_live_ms": HOUR_MS}),
    "time to live, each its own": Case(ready, G_READY, properties=lambda i: {"time_to_live_ms": HOUR_MS + 1000 * i}),
    "in sessions of 100": Case(
        ready, G_READY, IN_SESSIONS, properties=lambda i: {"session_id": f"session-{i // BATCH:06}"}
    ),
    "in sessions of 1": Case(
        partial(ready, batch=1), G_READY, IN_SESSIONS, properties=lambda i: {"session_id": f"session-{i:06}"}
    ),
    "held in sessions of 1": Case(
        held_in_sessions, G_LOCKED_1, IN_SESSIONS, properties=lambda i: {"session_id": f"session-{i:06}"}
    ),
    "with an id remembered": Case(remembered, G_READY, BrokerSettings(dedupe_ms=HOUR_MS)),
}


# ---------------------------------------------------------------- measuring


def used_bytes(lane: Lane) -> int:
    """What the server has in use, once it has finished what it does in the background."""
    deadline = time.monotonic() + SETTLE_S_MAX
    before = -1
    while True:
        told = information(lane, "memory")
        used = int(told["used_memory"])
        if (used == before and told["lazyfree_pending_objects"] == "0") or time.monotonic() > deadline:
            return used
        before = used
        time.sleep(SETTLE_S)


def taken(port: int, case: Case, messages: Sequence[bytes]) -> Taken:
    """Load one case into the broker, emptied, over a connection whose buffers are gone by the time of the reading."""
    with_reading, loading = connect(port), connect(port)
    try:
        with_reading.ask(wire("FLUSHALL", "SYNC"))
        configure = calls.configure(KEYS, partition=0, partitions=1, settings=case.settings)
        with_reading.ask(wire_of(configure))
        before = used_bytes(with_reading)
        case.load(loading, messages)
        loading.socket.close()
        grown = used_bytes(with_reading) - before
        totals = calls.totals(KEYS).parse(with_reading.ask(wire_of(calls.totals(KEYS))))
    finally:
        loading.socket.close()
        with_reading.socket.close()
    if totals.messages == 0:  # layout G
        return Taken((grown - sum(map(len, messages))) / len(messages), 0.0)
    return Taken((grown - totals.bytes) / totals.messages, (totals.charge - totals.bytes) / totals.messages)


def main() -> int:
    """Measure every case; print the table and the JSON line."""
    arguments = parser("Bytes of memory for each message above its own.").parse_args()
    rounds, count = rounds_of(arguments), MESSAGES_QUICK if arguments.quick else MESSAGES
    found: dict[str, Taken] = {}
    above: dict[str, float] = {}
    for name, case in CASES.items():
        messages = [encode(Message(body=os.urandom(BODY_BYTES), **case.properties(i))) for i in range(count)]
        with brokers(1, OFF) as (broker,):
            seen = [taken(broker.port, case, messages) for _ in range(rounds)]
        found[name] = Taken(median(each.used for each in seen), median(each.charged for each in seen))
        above[name] = sum(map(len, messages)) / count - BODY_BYTES
        say(f"{name}: {found[name].used:.1f} B a message")
    ratios = {name: each.used / found[CASES[name].measure].used for name, each in found.items() if name not in G_CASES}
    print(f"Bytes a message, bodies of {BODY_BYTES} B, medians of {rounds} rounds of {count:,} messages")
    rows = [
        (
            name,
            f"{each.used:.1f}",
            f"{above[name] + each.used:.1f}",
            f"{each.charged:.1f}" + (" <" if each.charged < each.used else "") if name not in G_CASES else "",
            f"{ratios[name]:.2f}" if name in ratios else "",
        )
        for name, each in found.items()
    ]
    table(("state", "above the stored form", "above the body", "charged above the stored form", "of G"), rows)
    return conclude(
        "broker_memory",
        {name.replace(", ", "_").replace(" ", "_"): value for name, value in ratios.items()},
        rounds=rounds,
        bytes_above_stored_form={name: round(each.used, 1) for name, each in found.items()},
        charged_too_little=[n for n, each in found.items() if n not in G_CASES and each.charged < each.used],
    )


if __name__ == "__main__":
    sys.exit(main())
