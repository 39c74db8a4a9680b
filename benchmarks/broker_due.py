"""Does any call wait when a million messages fall due at one instant?

A million are brought to fall due together and nobody calls until then. From then on one client sends, receives and sweeps,
one call after the other, until nothing is due. Every call is timed, by the server's own clock and by the client's. No call
may take 10 ms: what is due is done a bounded part a call. Nothing is repeated in rounds: the figures are of all calls, and
the longest is what counts. The append-only file is written, and synced when the kernel likes, so that the disk's own moments
do not count.

    locks           every message received by itself, and all locks end, in the order they were taken
    locks mixed     the same against that order
    last delivery   the same, and it was the last that is allowed: all go to the dead-letter queue
    to dead letters messages expire in a queue that keeps what has expired
    expired         the same in a queue that does not
    scheduled       messages come
    session         messages received one by one in one session, whose lock ends
    ids             as many message ids leave the window of duplicate detection
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
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
from partitionedqueue.model.message import Message
from partitionedqueue.model.stored_message import encode

KEYS = QueueKeys("due")
MESSAGES, MESSAGES_QUICK = 1_000_000, 100_000
BODY_BYTES = 100
BATCH = 250
SEND_WINDOW, RECEIVE_WINDOW = 8, 128
CHUNK = 2_500  # messages; times are reckoned anew for each, and what is due together is so within its length
LOAD_S_MAX = 200.0
DONE_S_MAX = 240.0
CALL_MS_MAX = 10.0
SYNCED_BY_KERNEL = "no"
MEASURING = {"latency-tracking-info-percentiles": "50 99 100", "slowlog-log-slower-than": "2000"}
SHARES = (0.50, 0.99, 1.00)
IDS_WINDOW_MS = limits.DUPLICATE_DETECTION_WINDOW_MS_MIN
IN_SESSION = "one"


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


def chunks(count: int, what: str) -> Iterator[int]:
    """The number of each chunk, and how far it is said now and then. Raises TimeoutError where it takes too long."""
    started = time.monotonic()
    for number in range(count // CHUNK):
        if time.monotonic() - started > LOAD_S_MAX:
            raise TimeoutError(f"this machine is too slow or too busy: {count:,} were not {what} in {LOAD_S_MAX:.0f} s")
        if number and number * CHUNK % (count // 4) == 0:
            say(f"{number * CHUNK:,} of {count:,} {what}")
        yield number


def load_locks(lane: Lane, count: int, *, later_ends_sooner: bool = False) -> int:
    """Every message locked by itself; gives when the last lock ends."""
    send_all(lane, [message() for _ in range(BATCH)], count)
    lock_ms = limits.LOCK_DURATION_MS_MAX
    drive([lane], [[wire_of(calls.receive(KEYS, most=1, lock_ms=lock_ms))] * CHUNK], window=RECEIVE_WINDOW)
    held = received_runs(lane.replies, CHUNK)
    last = server_ms(lane) + lock_ms
    ends = last - lock_ms + expected_ms
    return ends
