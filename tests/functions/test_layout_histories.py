"""Chance histories under a released library, then the same calls to it and to today's over its data: the same replies.

0.1.0's words differ from today's, so they stand here; what the two reply is compared message by message.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness import layouts
from harness.clock import START_MS, Clock, clocked_library
from harness.deliveries import stored
from harness.redis_servers import running_broker
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Run, Settlement
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.stored_message import enqueued_times

RELEASE = "0.1.0"
KEYS = QueueKeys("history")
KEY = KEYS.state
SENDER_KNOWN_MS = 900_000
HISTORIES, CALLS_BEFORE, CALLS_AFTER = 25, 60, 60


def settled(triples: list[Settlement]) -> list[int]:
    return [number for one in triples for number in one]


class Side:
    """A broker, and the locks that its receivers hold: message, its lock."""

    def __init__(self, broker: BlockingBroker) -> None:
        self.broker, self.clock = broker, Clock(broker)
        self.locks: dict[int, int] = {}

    def triples(self, numbers: list[int]) -> list[Settlement]:
        return [Settlement(self.locks[number], number, number) for number in numbers]

    def told(self, runs: list[Run], locked: bool) -> list[tuple[int, int, int, bytes]]:
        """What a receive gave, without what a library may choose: the runs and their numbers."""
        found = []
        for run in runs:
            times = enqueued_times(run.first, len(run.messages), run.marks)
            for i, one in enumerate(run.messages):
                found.append((run.first + i, run.delivery_count, times[i], one))
                if locked:
                    self.locks[run.first + i] = run.lock
        return found

    def ask(self, *words: Any) -> Any:
        """One command, and what it said, its refusals too."""
        try:
            return self.broker.raw(("FCALL", words[0], 1, KEY, *words[1:]))[0]
        except PartitionedQueueError as error:
            return type(error).__name__


class Old(Side):
    """What 0.1.0 understands."""

    def send(self, messages: list[bytes], sender: str, number: int) -> Any:
        return self.ask("pq_send", sender, number, *messages)

    def receive(self, most: int, lock_ms: int) -> Any:
        reply = self.ask("pq_receive", most, lock_ms)
        return reply[:2], self.told([Run(*run) for run in reply[2:]], lock_ms > 0)

    def complete(self, numbers: list[int]) -> Any:
        return self.ask("pq_complete", *settled(self.triples(numbers)))

    def abandon(self, numbers: list[int], how: str) -> Any:
        return self.ask("pq_abandon", how, *settled(self.triples(numbers)))

    def renew(self, numbers: list[int], lock_ms: int) -> Any:
        return self.ask("pq_renew_lock", lock_ms, *settled(self.triples(numbers)))

    def totals(self) -> Any:
        reply = self.broker.raw(("FCALL_RO", "pq_totals", 1, KEY))[0]
        return {reply[i].decode(): reply[i + 1] for i in range(0, len(reply), 2)}


class New(Side):
    """The same, as today's library understands it."""

    def ask(self, *words: Any) -> Any:
        """What 0.1.0 said as well; claims have more to tell since."""
        reply = super().ask(*words)
        return reply[: {"pq_claim": 2, "pq_claim_open": 3}.get(words[0])] if isinstance(reply, list) else reply

    def send(self, messages: list[bytes], sender: str, number: int) -> Any:
        return self.ask("pq_send", sender, number, "", *messages)

    def receive(self, most: int, lock_ms: int) -> Any:
        received = self.broker.call(calls.receive(KEYS, most=most, lock_ms=lock_ms))
        return [received.now_ms, received.locked_until_ms], self.told(received.runs, lock_ms > 0)

    def complete(self, numbers: list[int]) -> Any:
        return self.broker.call(calls.complete(KEYS, self.triples(numbers)))

    def abandon(self, numbers: list[int], how: str) -> Any:
        return self.broker.call(calls.abandon(KEYS, self.triples(numbers), counted=how == "counted"))

    def renew(self, numbers: list[int], lock_ms: int) -> Any:
        renewed = self.broker.call(calls.renew_lock(KEYS, self.triples(numbers), lock_ms=lock_ms))
        return [renewed.locked_until_ms, *renewed.refused]

    def totals(self) -> Any:
        return self.broker.call(calls.totals(KEYS))


@dataclass
class History:
    """Draws calls by chance and makes them to each side."""

    sides: list[Any]
    chance: random.Random
    numbers: dict[str, int] = field(default_factory=dict)
    ordinals: dict[str, list[int]] = field(default_factory=dict)
    last: int = 0

    def step(self) -> None:
        steps = (self.send, self.receive, self.receive, self.settle, self.settle, self.renew, self.claim, self.let_pass)
        self.chance.choice(steps)()

    def each(self, call: str, *arguments: Any) -> Any:
        """Make a call to each side; all say the same."""
        replies = [getattr(side, call)(*arguments) for side in self.sides]
        for reply in replies[1:]:
            assert reply == replies[0], f"{call} {arguments}"
        return replies[0]

    def send(self) -> None:
        count = self.chance.choice((1, 1, 3, 40, 256, 300))
        sender = self.chance.choice(("", "a", "b"))
        number = 0
        if sender:
            # How long beyond twenty minutes a sender is remembered is a library's own choice.
            sender = f"{sender}{self.sides[0].clock.now_ms // SENDER_KNOWN_MS}"
            number = max(1, self.numbers.get(sender, 0) + self.chance.choice((-3, 0, 1, 1, 1, 2)))
            self.numbers[sender] = max(number, self.numbers.get(sender, 0))
        reply = self.each("send", [stored(b"%d" % (self.last + i)) for i in range(count)], sender, number)
        if isinstance(reply, list) and reply[0] > 0:
            self.last += count

    def receive(self) -> None:
        most = self.chance.choice((1, 2, 10, 100, 300))
        self.each("receive", most, self.chance.choice((0, 500, 5000, 60_000, 300_000)))

    def held(self) -> list[int]:
        locks = sorted(self.sides[0].locks)
        if not locks:
            return []
        first = self.chance.randrange(len(locks))
        # Few: how much due work one call does is a library's own choice as well.
        return locks[first : first + self.chance.choice((1, 2, 5, 20)) : self.chance.choice((1, 1, 2, 3))]

    def settle(self) -> None:
        if numbers := self.held():
            how = self.chance.choice(("complete", "counted", "uncounted"))
            if how == "complete":
                self.each("complete", numbers)
            else:
                self.each("abandon", numbers, how)

    def renew(self) -> None:
        if numbers := self.held():
            self.each("renew", numbers, 300_000)  # never for less than is left: part of a run would keep what it has

    def claim(self) -> None:
        group = self.chance.choice(("spark", "other"))
        lease = self.chance.choice((1000, 100_000, 10_000_000))
        if group not in self.ordinals or self.chance.random() < 0.2:
            log = self.each("ask", "pq_claim_open", group, "owner", lease)
            if isinstance(log, list):
                self.ordinals[group] = log[:2]
            return
        base, following = self.ordinals[group]
        if self.chance.random() < 0.6:
            claimed = self.each("ask", "pq_claim", group, "owner", lease, following, self.chance.choice((1, 20, 50)))
            if isinstance(claimed, list):
                self.ordinals[group][1] = claimed[0]
        elif following > base:
            self.each("ask", "pq_claim_acknowledge", group, "owner", self.chance.randint(base, following))
        self.each("ask", "pq_claimed", group, base, self.ordinals[group][1])

    def let_pass(self) -> None:
        ms = self.chance.choice((1, 400, 2000, 40_000, 700_000))
        for side in self.sides:
            side.clock.advance(ms)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BlockingBroker, BlockingBroker]]:
    """One with the released library, one with today's."""
    released = (layouts.FOLDER / RELEASE / "library.lua").read_text(encoding="utf-8")
    with (
        running_broker(tmp_path_factory.mktemp("old"), fsync="no", library=lambda: clocked_library(released)) as old,
        running_broker(tmp_path_factory.mktemp("new"), fsync="no", library=clocked_library) as new,
        BlockingBroker(old.address) as its,
        BlockingBroker(new.address) as ours,
    ):
        yield its, ours


def copy(old: BlockingBroker, new: BlockingBroker) -> None:
    """Give all that one broker holds to the other, as its folder would."""
    names = old.raw(("KEYS", "*"))[0]
    for name, dump in zip(names, old.raw(*(("DUMP", name) for name in names)), strict=True):
        new.raw(("RESTORE", name, 0, dump))


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_what_a_history_has_left_goes_on_as_if_nothing_had_happened(
    brokers: tuple[BlockingBroker, BlockingBroker], seed: int
) -> None:
    its, ours = brokers
    for broker in brokers:
        broker.raw(("FLUSHALL",))
    old = Old(its)
    history = History([old], random.Random(seed))
    if seed % 4:
        old.ask("pq_configure", 3, 16)
    for _ in range(CALLS_BEFORE):
        history.step()
    before = old.totals()
    copy(its, ours)
    new = New(ours)
    new.clock.set(old.clock.now_ms)
    new.locks = dict(old.locks)
    assert old.clock.now_ms >= START_MS
    after = new.totals()
    for name in ("messages", "bytes", "last", "partition", "partitions"):
        assert getattr(after, name) == before[name], name
    history.sides.append(new)
    for _ in range(CALLS_AFTER):
        history.step()
        assert old.totals()["bytes"] == new.totals().bytes
        assert old.totals()["messages"] == new.totals().messages
