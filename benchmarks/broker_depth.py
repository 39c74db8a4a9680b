"""Does a broker stay as fast with millions of messages, and does any call wait when a million fall due at one instant?

Depth: two queues in one broker, one with a thousand messages, one with five million; both are sent to, received from and
completed in turns, in small steps so that their depth stays. Printed is the deep queue's speed as a fraction of the shallow
one's, medians over all rounds; it may be 1.3 times slower (.77), and .90 was aimed at.

Due at one instant: a million messages are brought to fall due together, nobody calls until then, and from then on one client
sends, receives and sweeps, one call after the other, until nothing is due. Every call is timed, by the server's own clock and
by the client's. No call may take 10 ms: due work is done a bounded part a call. What cannot be repeated in rounds is counted
over all calls. The append-only file is written but synced by the kernel, so that the disk's own moments do not count.

    locks          as many receives of one message each, whose locks end in the order they were taken
    locks, mixed   the same, the later the sooner
    limit          the same, and each was the last delivery allowed: all go to the dead-letter queue
    to dead letter messages whose time to live ends, in a queue that keeps what has expired
    expired        the same, in a queue that does not
    scheduled      messages that become ready
    session        messages held one by one in one session, whose lock ends
    ids            the window of duplicate detection passes over as many message ids
"""

import argparse
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measuring.lanes import Cost, Lane, cpu_s, drive, information, repeated, wire, wire_of
from benchmarks.measuring.messages import batches, received_runs, settlements_of, stored_forms
from benchmarks.measuring.rounds import conclude, median, parser, rounds_of, say, table, take_turns
from benchmarks.measuring.servers import OFF, broker_lanes

from partitionedqueue.broker import calls, replies
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import SessionLock
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model import limits
from partitionedqueue.model.message import Message
from partitionedqueue.model.stored_message import encode

BODY_BYTES = 100
LOCK_MS = 300_000
SLOWEST = 1 / 1.3
CALL_MS_MAX = 10.0

SHALLOW, DEEP = QueueKeys("shallow"), QueueKeys("deep")
DEPTHS = {SHALLOW: 1_000, DEEP: 5_000_000}
STEP_MESSAGES = 500
STEPS_A_ROUND = {1: 12, 10: 40, 100: 80}
FILL_BATCH, FILL_WINDOW = 250, 8

DUE = QueueKeys("due")
DUE_MESSAGES = 1_000_000
CHUNK_CALLS = 2_000  # locks and times to live are reckoned anew so often
LOAD_WINDOW = 128
SETTLED_MS = 300  # from the instant on, until what was reckoned a moment apart has fallen due too
HAMMER_S_MAX = 240.0
WRITTEN_NOT_SYNCED = {"latency-tracking-info-percentiles": "50 99 100", "slowlog-max-len": "1000"}

Round = dict[str, Cost]


# ---------------------------------------------------------------- depth


def fill(lane: Lane, keys: QueueKeys, count: int) -> None:
    """Bring a queue to its depth."""
    pool = batches(stored_forms(FILL_BATCH * 16, BODY_BYTES), FILL_BATCH)
    step = 200_000
    for done in range(0, count, step):
        upcoming = min(step, count - done)
        sends = repeated([wire_of(calls.send(keys, messages)) for messages in pool], upcoming // FILL_BATCH)
        drive([lane], [sends], window=FILL_WINDOW)
        if done % 1_000_000 == 0 and count > step:
            say(f"{done:,} of {count:,} messages stored")


def one_round(lane: Lane, keys: QueueKeys, batch: int, steps: int) -> Round:
    """So many small steps of send, receive and complete."""
    count = STEP_MESSAGES // batch
    pool = batches(stored_forms(STEP_MESSAGES, BODY_BYTES), batch)
    sends = [wire_of(calls.send(keys, messages)) for messages in pool]
    receives = [wire_of(calls.receive(keys, most=batch, lock_ms=LOCK_MS))] * count
    clock: dict[str, float] = defaultdict(float)
    cpu_before = cpu_s([lane])
    for _ in range(steps):
        clock["send"] += drive([lane], [sends])
        clock["receive"] += drive([lane], [receives])
        runs = received_runs(lane.replies, STEP_MESSAGES)
        completes = [wire_of(calls.complete(keys, settlements_of(its))) for its in runs]
        clock["complete"] += drive([lane], [completes])
        if any(lane.replies):
            raise AssertionError("the broker refused to complete a message")
    cpu = cpu_s([lane]) - cpu_before
    costs = {phase: Cost(seconds, cpu) for phase, seconds in clock.items()}
    return costs | {"cycle": Cost(sum(clock.values()), cpu)}


def depth(rounds: int, share: int) -> tuple[dict[str, float], list[list[str]]]:
    """The ratios of the deep queue to the shallow one, and the lines of the table."""
    ratios: dict[str, float] = {}
    rows = []
    with broker_lanes(1, OFF) as (lane,):
        for keys, count in DEPTHS.items():
            fill(lane, keys, max(DEPTHS[SHALLOW], count // share))
        gigabytes = int(information(lane, "memory")["used_memory"]) / 2**30
        print(f"Depth: {DEPTHS[DEEP] // share:,} messages of {BODY_BYTES} B against {DEPTHS[SHALLOW]:,}; {gigabytes:.2f} GB")
        for batch, steps in STEPS_A_ROUND.items():
            say(f"depth, batch {batch}")
            turns = {keys.name: partial(one_round, lane, keys, batch, max(2, steps // share)) for keys in DEPTHS}
            seen = take_turns(turns, rounds)
            fractions = {
                phase: median(costs[SHALLOW.name][phase].clock_s / costs[DEEP.name][phase].clock_s for costs in seen)
                for phase in ("send", "receive", "complete", "cycle")
            }
            cpu = median(costs[SHALLOW.name]["cycle"].cpu_s / costs[DEEP.name]["cycle"].cpu_s for costs in seen)
            ratios |= {f"depth_{phase}_b{batch}": value for phase, value in fractions.items()}
            ratios[f"depth_cycle_cpu_b{batch}"] = cpu
            rows.append([str(batch), *(f"{value:.2f}" for value in fractions.values()), f"{cpu:.2f}"])
    return ratios, rows


# ---------------------------------------------------------------- a million due at one instant


class Case(NamedTuple):
    """What falls due: the queue's settings, and how to bring so many messages to one instant (ms, server's clock)."""

    settings: BrokerSettings
    load: Callable[[Lane, int], int]


def server_ms(lane: Lane) -> int:
    """The server's clock."""
    seconds, microseconds = lane.ask(wire("TIME"))
    return int(seconds) * 1000 + int(microseconds) // 1000


def send_all(lane: Lane, count: int, *, session_id: str | None = None) -> None:
    """Store plain messages."""
    pool = [encode(Message(body=os.urandom(BODY_BYTES), session_id=session_id)) for _ in range(FILL_BATCH)]
    drive([lane], [[wire_of(calls.send(DUE, pool))] * (count // FILL_BATCH)], window=FILL_WINDOW)


def chunks(count: int, a_chunk: int) -> Iterator[int]:
    """The sizes of the parts of a load."""
    for done in range(0, count, a_chunk):
        yield min(a_chunk, count - done)


def load_locks(lane: Lane, count: int, *, later_sooner: bool = False) -> int:
    """Lock every message by itself; the locks end within a moment, in order or against it."""
    send_all(lane, count)
    first = wire_of(calls.receive(DUE, most=1, lock_ms=LOCK_MS))
    sample_s = drive([lane], [[first] * CHUNK_CALLS], window=LOAD_WINDOW)
    instant = server_ms(lane) + int(2_000 + 1_600 * sample_s * count / CHUNK_CALLS)
    if instant > server_ms(lane) + LOCK_MS:
        raise SystemExit("this machine locks too slowly for so many messages: fewer than a lock's longest time allow")
    # Those of the sample are completed and stored anew, so that all locks are of the same kind.
    runs = received_runs(lane.replies, CHUNK_CALLS)
    drive([lane], [[wire_of(calls.complete(DUE, settlements_of(its))) for its in runs]])
    send_all(lane, CHUNK_CALLS)
    for number, size in enumerate(chunks(count, CHUNK_CALLS)):
        # A chunk takes some tens of ms; what is received later in it has a lock that ends as much later.
        lock_ms = instant - server_ms(lane) - (number if later_sooner else 0)
        if lock_ms < 1_000:
            raise SystemExit("this machine was slower than it had been at first: try again when it is quiet")
        receive = wire_of(calls.receive(DUE, most=1, lock_ms=lock_ms))
        drive([lane], [[receive] * size], window=LOAD_WINDOW)
        received_runs(lane.replies, size)
    return instant


def load_ttl(lane: Lane, count: int) -> int:
    """Messages with a time to live of their own, reckoned so that all end together."""
    instant = server_ms(lane) + 20_000 + count // 20
    for size in chunks(count, CHUNK_CALLS):
        left = instant - server_ms(lane)
        pool = [encode(Message(body=os.urandom(BODY_BYTES), time_to_live_ms=left)) for _ in range(FILL_BATCH)]
        drive([lane], [[wire_of(calls.send(DUE, pool))] * (size // FILL_BATCH)], window=FILL_WINDOW)
    return instant


def load_scheduled(lane: Lane, count: int) -> int:
    """Messages that are scheduled for the very same millisecond."""
    instant = server_ms(lane) + 20_000 + count // 20
    pool = [
        encode(Message(body=os.urandom(BODY_BYTES), scheduled_enqueue_time_ms=instant)) for _ in range(FILL_BATCH)
    ]
    drive([lane], [[wire_of(calls.send(DUE, pool))] * (count // FILL_BATCH)], window=FILL_WINDOW)
    return instant


def load_session(lane: Lane, count: int) -> int:
    """One session whose receiver holds everything, message by message."""
    send_all(lane, count, session_id="one")
    accept = calls.accept_session(DUE, "one", lock_ms=LOCK_MS)
    session = replies.accepted_session(lane.ask(wire_of(accept))).session
    assert session is not None
    receive = wire_of(calls.receive(DUE, most=1, session=session))
    for size in chunks(count, CHUNK_CALLS):
        drive([lane], [[receive] * size], window=LOAD_WINDOW)
        received_runs(lane.replies, size)
    return int(lane.ask(wire_of(calls.renew_session(DUE, SessionLock("one", session.lock), lock_ms=5_000))))


def load_ids(lane: Lane, count: int) -> int:
    """Messages with ids; they are taken out again, so that only the ids are left."""
    pool = [encode(Message(body=b"", message_id="1")) for _ in range(FILL_BATCH)]
    for size in chunks(count, CHUNK_CALLS * 10):
        sends = [
            wire_of(calls.send(DUE, pool, fingerprints=os.urandom(limits.FINGERPRINT_BYTES * FILL_BATCH)))
            for _ in range(size // FILL_BATCH)
        ]
        drive([lane], [sends], window=FILL_WINDOW)
        drive([lane], [[wire_of(calls.receive(DUE, most=FILL_BATCH, lock_ms=0))] * len(sends)], window=FILL_WINDOW)
    return server_ms(lane) + 2 * IDS_WINDOW_MS


IDS_WINDOW_MS = limits.DUPLICATE_DETECTION_WINDOW_MS_MIN
SESSION_SHARE = 10  # of the session's case: one receiver that holds so many one by one is rare already
CASES = {
    "locks": Case(BrokerSettings(max_deliveries=10), load_locks),
    "locks, mixed": Case(BrokerSettings(max_deliveries=10), partial(load_locks, later_sooner=True)),
    "limit": Case(BrokerSettings(max_deliveries=1), load_locks),
    "to dead letter": Case(BrokerSettings(dead_letter_expired=True), load_ttl),
    "expired": Case(BrokerSettings(dead_letter_expired=False), load_ttl),
    "scheduled": Case(BrokerSettings(), load_scheduled),
    "session": Case(BrokerSettings(sessions=True), load_session),
    "ids": Case(BrokerSettings(dedupe_ms=IDS_WINDOW_MS), load_ids),
}


class Times(NamedTuple):
    """How long calls took, in ms: the middle, the longest but one in a hundred, the longest."""

    p50: float
    p99: float
    p100: float

    def __str__(self) -> str:
        """As a table shows it."""
        return f"{self.p50:.2f} / {self.p99:.2f} / {self.p100:.2f}"


class Found(NamedTuple):
    """One case, measured."""

    calls: int
    took_s: float
    server: Times
    client: Mapping[str, Times]
    slowest: str


def times_of(seconds: Sequence[float]) -> Times:
    """The figures of one kind of call."""
    ordered = sorted(seconds)
    return Times(*(1000 * ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.99, 1.0)))


def hammer(lane: Lane) -> tuple[dict[str, list[float]], float]:
    """Call after call until nothing is due; how long each took, in seconds, and all together."""
    session_queue = bool(lane.ask(wire_of(calls.totals(DUE)))) and SESSION_QUEUE in lane_settings(lane)
    message = encode(Message(body=os.urandom(BODY_BYTES), session_id="one"))
    kinds = {
        "send": wire_of(calls.send(DUE, [message])),
        "sweep": wire_of(calls.sweep(DUE)),
        "receive": wire_of(calls.receive(DUE, most=1, lock_ms=0)),
        "receive 100": wire_of(calls.receive(DUE, most=100, lock_ms=0)),
    }
    if session_queue:
        kinds = {name: command for name, command in kinds.items() if not name.startswith("receive")}
        kinds["list sessions"] = wire_of(calls.list_sessions(DUE))
    seen: dict[str, list[float]] = {name: [] for name in kinds}
    started = time.perf_counter()
    while True:
        for name, command in kinds.items():
            before = time.perf_counter()
            reply = lane.ask(command)
            seen[name].append(time.perf_counter() - before)
            if name == "sweep":
                next_due = reply
        if next_due < 0 or next_due > server_ms(lane):
            return seen, time.perf_counter() - started
        if time.perf_counter() - started > HAMMER_S_MAX:
            raise TimeoutError(f"not everything was done within {HAMMER_S_MAX:.0f} s")
