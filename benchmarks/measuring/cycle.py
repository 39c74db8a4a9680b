"""Send, receive and complete as the library's own clients do it: past Lua where there is much to carry.

The rules are those of the sender's lanes (partitionedqueue.broker.lane) and of the fetcher (…fetching).
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.measuring.lanes import Cost, Lane, Wires, measured, total, wire_of

from partitionedqueue.broker import calls, replies
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Place, Run, SessionLock, Settlement
from partitionedqueue.model import limits, stored_message

LOCK_MS = limits.LOCK_DURATION_MS_MAX
OUTSIDE: Sequence[SessionLock | None] = (None,)

Batch = Sequence[bytes]


@dataclass
class Sends:
    """Sends of one queue, prepared: they must go in this order, to brokers that stand where they were prepared for."""

    wires: list[bytes] = field(default_factory=list)
    replies_each: list[int] = field(default_factory=list)


@dataclass
class Sender:
    """How a queue is sent to: with ids, with numbers."""

    keys: QueueKeys
    detects: bool = False
    numbered: bool = False
    sessions: bool = False
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def prepare(self, tail: int, pool: Sequence[Batch], count: int) -> Sends:
        """`count` sends of these batches in turn, the first of them behind sequence number `tail`."""
        sends = Sends()
        for messages in itertools.islice(itertools.cycle(pool), count):
            call = self._call(tail, messages)
            sends.wires.append(wire_of(call))
            sends.replies_each.append(len(call.commands))
            tail += len(messages)
        return sends

    def _call(self, tail: int, messages: Batch) -> calls.Call[replies.SendResult]:
        sender, number = ("benchmark", next(self._numbers)) if self.numbered else ("", 0)
        prints = os.urandom(limits.FINGERPRINT_BYTES * len(messages)) if self.detects else b""
        if sum(map(len, messages)) < limits.PUSHED_BYTES_MIN or stored_message.are_scheduled(messages):
            return calls.send(self.keys, messages, sender=sender, number=number, fingerprints=prints)
        session = stored_message.decode(messages[0]).session_id or "" if self.sessions else ""
        return calls.send_pushed(
            self.keys, messages, guess=tail, sender=sender, number=number, fingerprints=prints, session=session
        )


def last_number(lane: Lane, keys: QueueKeys) -> int:
    """The sequence number of the last message that was ever stored."""
    totals = calls.totals(keys)
    return totals.parse(lane.ask(wire_of(totals))).last


def send(lanes: Sequence[Lane], sender: Sender, pool: Sequence[Batch], count: int) -> Cost:
    """`count` sends on every lane, to brokers that have stored as many messages as each other."""
    tail = last_number(lanes[0], sender.keys)
    sends = sender.prepare(tail, pool, count)
    cost = measured(lanes, [sends.wires] * len(lanes), replies_each=sends.replies_each)
    sent = sum(len(messages) for messages in itertools.islice(itertools.cycle(pool), count))
    for lane in lanes:
        if last_number(lane, sender.keys) != tail + sent:
            raise AssertionError("the broker did not store all that was sent")
    return cost


def receive(
    lanes: Sequence[Lane],
    keys: QueueKeys,
    pool: Sequence[Batch],
    count: int,
    sessions: Sequence[SessionLock | None] = OUTSIDE,
) -> tuple[Cost, list[list[list[Settlement]]]]:
    """`count` receives on every lane, the sessions in turn; for each lane what each of them gave, to be settled.

    Bodies that are fetched past Lua are fetched after all receives; the cost is of both.
    """
    batch = len(pool[0])
    past_lua = sum(map(len, pool[0])) >= limits.PUSHED_BYTES_MIN
    ask = calls.receive_places if past_lua else calls.receive
    asked = [wire_of(ask(keys, most=batch, lock_ms=LOCK_MS, session=session)) for session in sessions]
    cost = measured(lanes, [list(itertools.islice(itertools.cycle(asked), count))] * len(lanes))
    if past_lua:
        places = [[replies.received_places(raw).places for raw in lane.replies] for lane in lanes]
        came = sum(place.count for its in places for each in its for place in each)
        fetches: list[Wires] = [[wire_of(calls.bodies(keys, p)) for each in its for p in each] for its in places]
        cost = total(cost, measured(lanes, fetches))
        came = min(came, sum(len(bodies) for lane in lanes for bodies in lane.replies))
        held = [[[settlement(place) for place in each] for each in its] for its in places]
    else:
        runs = [[replies.received(raw).runs for raw in lane.replies] for lane in lanes]
        came = sum(len(run.messages) for its in runs for each in its for run in each)
        held = [[[settlement(run) for run in each] for each in its] for its in runs]
    if came != batch * count * len(lanes):
        raise AssertionError(f"{batch * count * len(lanes):,} messages were sent, and {came:,} came")
    return cost, held


def settlement(held: Run | Place) -> Settlement:
    """All of what is held under one lock."""
    count = held.count if isinstance(held, Place) else len(held.messages)
    return Settlement(held.lock, held.first, held.first + count - 1)


def complete(
    lanes: Sequence[Lane],
    keys: QueueKeys,
    held: Sequence[Sequence[Sequence[Settlement]]],
    sessions: Sequence[SessionLock | None] = OUTSIDE,
) -> Cost:
    """One complete for what each receive gave."""
    completes: list[Wires] = [
        [
            wire_of(calls.complete(keys, each, session=session))
            for each, session in zip(its, itertools.cycle(sessions), strict=False)
        ]
        for its in held
    ]
    cost = measured(lanes, completes)
    if any(refused for lane in lanes for refused in lane.replies):
        raise AssertionError("the broker refused to complete a message")
    return cost
