"""Does any call wait when a million messages fall due at one instant?

A million are brought to fall due together and nobody calls until then. From then on one client sends, receives and
sweeps, one call after the other, until nothing is due. Every call is timed three times: by the server's own clock, by
the client's, and by the processor time that the server's thread used, which a busy machine does not make longer. No
call may take 10 ms: what is due is done a bounded part a call. Nothing is repeated in rounds: the figures are of all
calls, and the longest is what counts. The append-only file is written, and synced when the kernel likes, so that the
disk's own moments do not count.

    locks           every message received by itself, and all locks end, in the order they were taken
    locks mixed     the same against that order
    last delivery   the same, and it was the last that is allowed: all go to the dead-letter queue
    to dead letters messages expire in a queue that keeps what has expired
    expired         the same in a queue that does not
    scheduled       messages come
    sessions        sessions with one message each, accepted and received from (a tenth as many)
    ids             as many message ids leave the window of duplicate detection
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measuring.lanes import Lane, drive, information, wire, wire_of
from benchmarks.measuring.messages import received_runs
from benchmarks.measuring.rounds import conclude, parser, say, table
from benchmarks.measuring.servers import broker_lanes

from partitionedqueue.broker import calls, replies
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model import limits
from partitionedqueue.model.duplicates import NOT_DETECTED
from partitionedqueue.model.message import Message
from partitionedqueue.model.stored_message import encode

KEYS = QueueKeys("due")
MESSAGES, MESSAGES_QUICK = 1_000_000, 100_000
BODY_BYTES = 100
BATCH = 250
SEND_WINDOW, RECEIVE_WINDOW = 8, 128
CHUNK = 2_500  # messages; times are reckoned anew for each, and what is due together is so within its length
LOAD_MS_MIN, LOAD_MS_MAX = 8_000, 280_000
LEFT_MS_MIN = 2_000
DONE_S_MAX = 240.0
CALL_MS_MAX = 10.0
SYNCED_BY_KERNEL = "no"
MEASURING = {"latency-tracking-info-percentiles": "50 99 100", "slowlog-log-slower-than": "2000"}
CHUNK_MS_MAX = 3_000  # what is locked late in a chunk ends so much after the time it was reckoned for
PAUSE_S = 0.0001
SHARES = (0.50, 0.99, 1.00)
IDS_WINDOW_MS = limits.DUPLICATE_DETECTION_WINDOW_MS_MIN
SESSIONS_SHARE = 10  # so many fewer sessions: a partition with a hundred thousand of them locked is large already


# ---------------------------------------------------------------- loading


def server_ms(lane: Lane) -> int:
    """The server's clock."""
    seconds, microseconds = lane.ask(wire("TIME"))
    return int(seconds) * 1000 + int(microseconds) // 1000


def message(**properties: int | str) -> bytes:
    """A small message as it is stored."""
    return encode(Message(body=os.urandom(BODY_BYTES), **properties))  # type: ignore[arg-type]


def send_all(lane: Lane, messages: Sequence[bytes], count: int) -> None:
    """Store `count` messages, these ones again and again."""
    drive([lane], [[wire_of(calls.send(KEYS, messages))] * (count // BATCH)], window=SEND_WINDOW)


def chunks(lane: Lane, count: int, what: str, *, before_ms: int) -> Iterator[int]:
    """For each chunk, how many ms are left; ends early where a busy machine does not get ready before it is due."""
    for done in range(0, count, CHUNK):
        left_ms = before_ms - server_ms(lane)
        if left_ms < LEFT_MS_MIN:
            say(f"only {done:,} of {count:,} were {what} in time")
            return
        if done and done % (count // 4) == 0:
            say(f"{done:,} of {count:,} {what}")
        yield left_ms


def sample_ms(lane: Lane, count: int) -> int:
    """How long `count` receives of one message will take, with something to spare."""
    keys = QueueKeys("sample")
    drive([lane], [[wire_of(calls.send(keys, [message()] * CHUNK))]])
    started = time.perf_counter()
    drive([lane], [[wire_of(calls.receive(keys, most=1))] * CHUNK], window=RECEIVE_WINDOW)
    received_runs(lane.replies, CHUNK)
    estimate = LOAD_MS_MIN + int(1_400 * (time.perf_counter() - started) * count / CHUNK)
    return min(estimate, LOAD_MS_MAX)


def load_locks(lane: Lane, count: int, *, in_order: bool) -> int:
    """Every message locked by itself; gives when the last lock ends."""
    send_all(lane, [message() for _ in range(BATCH)], count)
    lock_ms = sample_ms(lane, count)
    ends = server_ms(lane) + lock_ms
    for left_ms in chunks(lane, count, "locked", before_ms=ends):
        # Either all for as long; or until the same time, within a chunk later ones longer, and each chunk begins anew.
        its_ms = lock_ms if in_order else left_ms
        drive([lane], [[wire_of(calls.receive(KEYS, most=1, lock_ms=its_ms))] * CHUNK], window=RECEIVE_WINDOW)
        received_runs(lane.replies, CHUNK)
    return server_ms(lane) + lock_ms if in_order else ends


def load_ttl(lane: Lane, count: int) -> int:
    """Messages with a time to live of their own; gives when the last ends."""
    ends = server_ms(lane) + LOAD_MS_MIN + count // 40
    for left_ms in chunks(lane, count, "stored", before_ms=ends):
        send_all(lane, [message(time_to_live_ms=left_ms) for _ in range(BATCH)], CHUNK)
    return ends


def load_scheduled(lane: Lane, count: int) -> int:
    """Messages for the very same millisecond."""
    at = server_ms(lane) + LOAD_MS_MIN + count // 40
    messages = [message(scheduled_enqueue_time_ms=at) for _ in range(BATCH)]
    for _ in chunks(lane, count, "scheduled", before_ms=at):
        send_all(lane, messages, CHUNK)
    return at


def load_sessions(lane: Lane, count: int) -> int:
    """Sessions of one message, each accepted and its message held; gives when the last lock ends."""
    ends = server_ms(lane) + LOAD_MS_MIN + count // SESSIONS_SHARE // 4
    for left_ms in chunks(lane, count // SESSIONS_SHARE, "held", before_ms=ends):
        sends = [wire_of(calls.send(KEYS, [message(session_id=f"{left_ms}-{i}")])) for i in range(CHUNK)]
        drive([lane], [sends], window=RECEIVE_WINDOW)
        drive([lane], [[wire_of(calls.accept_session(KEYS, lock_ms=left_ms))] * CHUNK], window=RECEIVE_WINDOW)
        held = [replies.accepted_session(raw).session for raw in lane.replies]
        receives = [wire_of(calls.receive(KEYS, most=1, session=session)) for session in held]
        drive([lane], [receives], window=RECEIVE_WINDOW)
        received_runs(lane.replies, CHUNK)
    return ends


def load_ids(lane: Lane, count: int) -> int:
    """Messages with ids; they are taken out again, so that only the ids are left. Gives when none is remembered."""
    messages = [message(message_id="1") for _ in range(BATCH)]
    fingerprints = limits.FINGERPRINT_BYTES * BATCH
    receives = [wire_of(calls.receive(KEYS, most=BATCH, lock_ms=0))] * (CHUNK // BATCH)
    for _ in chunks(lane, count, "remembered", before_ms=server_ms(lane) + LOAD_MS_MAX):
        sends = [wire_of(calls.send(KEYS, messages, fingerprints=os.urandom(fingerprints))) for _ in receives]
        drive([lane], [sends], window=SEND_WINDOW)
        drive([lane], [receives], window=SEND_WINDOW)
    return server_ms(lane) + 2 * IDS_WINDOW_MS


# ---------------------------------------------------------------- measuring


class Case(NamedTuple):
    """What falls due: how to bring so many to one instant, and in what kind of queue."""

    load: Callable[[Lane, int], int]
    settings: BrokerSettings

    @property
    def kinds(self) -> dict[str, bytes]:
        """The calls that are made while it is due."""
        sessions = bool(self.settings.sessions)
        newcomer = message(session_id="another") if sessions else message()
        kinds = {
            "send": wire_of(calls.send(KEYS, [newcomer], fingerprints=NOT_DETECTED)),
            "sweep": wire_of(calls.sweep(KEYS)),
            "totals": wire_of(calls.totals(KEYS)),
        }
        if sessions:
            return kinds | {"sessions": wire_of(calls.list_sessions(KEYS))}
        receive = {
            f"receive {most}": wire_of(calls.receive(KEYS, most=most, lock_ms=limits.LOCK_DURATION_MS_MAX))
            for most in (1, 100)
        }
        return kinds | receive | {"delete 1": wire_of(calls.receive(KEYS, most=1, lock_ms=0))}


CASES = {
    "locks": Case(partial(load_locks, in_order=True), BrokerSettings()),
    "locks mixed": Case(partial(load_locks, in_order=False), BrokerSettings()),
    "last delivery": Case(partial(load_locks, in_order=False), BrokerSettings(max_deliveries=1)),
    "to dead letters": Case(load_ttl, BrokerSettings(dead_letter_expired=True)),
    "expired": Case(load_ttl, BrokerSettings(dead_letter_expired=False)),
    "scheduled": Case(load_scheduled, BrokerSettings()),
    "sessions": Case(load_sessions, BrokerSettings(sessions=True)),
    "ids": Case(load_ids, BrokerSettings(dedupe_ms=IDS_WINDOW_MS)),
}


class Times(NamedTuple):
    """How long calls took, in ms: the middle one, the longest of 99 in a hundred, the longest."""

    p50: float
    p99: float
    p100: float

    def __str__(self) -> str:
        """As a table shows them."""
        return " / ".join(f"{each:.2f}" for each in self)


class Found(NamedTuple):
    """One case, measured: how long there was something due, and how long calls took by each clock."""

    done_s: float
    calls: int
    server: Times
    client: Times
    processor: Times
    kind: str


class Timed(NamedTuple):
    """One call: what it was, and how long it took."""

    kind: str
    client_s: float
    processor_s: float


def times(seconds: Iterable[float]) -> Times:
    """The figures of many calls."""
    ordered = sorted(seconds)
    return Times(*(1000 * ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in SHARES))


def call_until_done(lane: Lane, kinds: dict[str, bytes], schedstat: Path) -> list[Timed]:
    """Call after call until nothing is due. Raises TimeoutError."""
    seen: list[Timed] = []
    started = time.perf_counter()
    swept = replies.Swept(0, 0)
    while 0 <= swept.next_due_ms <= swept.now_ms:
        for kind, command in kinds.items():
            used = processor_s(schedstat)
            before = time.perf_counter()
            reply = lane.ask(command)
            took = time.perf_counter() - before
            time.sleep(PAUSE_S)  # until then the server's thread sleeps, and the kernel has reckoned its time
            seen.append(Timed(kind, took, processor_s(schedstat) - used))
            if kind == "sweep":
                swept = replies.swept(reply)
        if time.perf_counter() - started > DONE_S_MAX:
            raise TimeoutError(f"there was still something due after {DONE_S_MAX:.0f} s")
    return seen


def processor_s(schedstat: Path) -> float:
    """What a thread has used of a processor so far: the first number of its schedstat, in ns (Linux)."""
    return int(schedstat.read_bytes().split(maxsplit=1)[0]) / 1e9


def times_by_server(lane: Lane) -> Times:
    """What the server says of all calls since its statistics were reset."""
    line = information(lane, "latencystats")["latency_percentiles_usec_fcall"]
    return Times(*(float(part.split("=")[1]) / 1000 for part in line.split(",")))


def measure(case: Case, count: int) -> Found:
    """Load a new broker, wait for the instant, then call."""
    with broker_lanes(1, SYNCED_BY_KERNEL, MEASURING) as (lane,):
        lane.ask(wire_of(calls.configure(KEYS, partition=0, partitions=1, settings=case.settings)))
        instant = case.load(lane, count)
        say(f"loaded; all of it is due in {max(0, instant - server_ms(lane)) / 1000:.1f} s")
        time.sleep(max(0, instant + CHUNK_MS_MAX - server_ms(lane)) / 1000)
        process = information(lane, "server")["process_id"]
        lane.ask(wire("CONFIG", "RESETSTAT"))
        started = time.perf_counter()
        seen = call_until_done(lane, case.kinds, Path(f"/proc/{process}/task/{process}/schedstat"))
        return Found(
            time.perf_counter() - started,
            len(seen),
            times_by_server(lane),
            times(each.client_s for each in seen),
            times(each.processor_s for each in seen),
            max(seen, key=lambda each: each.processor_s).kind,
        )


def main() -> int:
    """Measure every case; print the table and the JSON line."""
    command_line = parser("The longest call while a million messages fall due at once.")
    command_line.add_argument("--case", choices=CASES, action="append", help="only this one (may be repeated)")
    arguments = command_line.parse_args()
    count = MESSAGES_QUICK if arguments.quick else MESSAGES
    found: dict[str, Found] = {}
    for name in arguments.case or CASES:
        say(name)
        found[name] = measure(CASES[name], count)
        say(f"{name}: done in {found[name].done_s:.1f} s, longest {found[name].processor.p100:.2f} ms")
    print(f"{count:,} due at once; how long calls took, in ms: p50 / p99 / p100; at most {CALL_MS_MAX:.0f}")
    clocks = ("server", "client", "processor")
    rows = [
        (name, f"{each.done_s:.1f}", f"{each.calls:,}", *(str(getattr(each, clock)) for clock in clocks), each.kind)
        for name, each in found.items()
    ]
    table(("what", "done in s", "calls", "server's clock", "client's clock", "processor time", "longest"), rows)
    longest = {
        f"{name.replace(' ', '_')}_{clock}": getattr(each, clock).p100
        for name, each in found.items()
        for clock in clocks
    }
    ratios = {name: each / CALL_MS_MAX for name, each in longest.items()}
    below = [name for name, each in ratios.items() if each > 1]
    return conclude("broker_due", ratios, messages=count, longest_ms=longest, below_target=below)


if __name__ == "__main__":
    sys.exit(main())
