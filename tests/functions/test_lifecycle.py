"""The lifecycle table and a real broker, side by side: the same state after every move."""

import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from harness.deliveries import HOUR_MS, numbers
from harness.redis_servers import Broker
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Settlement
from partitionedqueue.model.lifecycle import COUNTS_A_DELIVERY, LIFECYCLE, Move, State

KEYS = QueueKeys("model")
SHORT_MS = 4


class Side:
    """One message as the table sees it."""

    def __init__(self, body: bytes) -> None:
        self.state = State.READY
        self.deliveries = 0
        self.body = body
        self.lock = 0

    def move(self, move: Move) -> None:
        if move in COUNTS_A_DELIVERY:
            self.deliveries += 1
        self.state = LIFECYCLE[self.state][move]


class BrokerMachine(RuleBasedStateMachine):
    broker: BlockingBroker

    def __init__(self) -> None:
        super().__init__()
        self.broker.raw(("FLUSHALL",))
        self.broker.call(calls.claim_open(KEYS, "g", "o", HOUR_MS))
        self.messages: dict[int, Side] = {}
        self.dead_locks: list[Settlement] = []
        self.log: list[int] = []
        self.base = 0

    def of(self, state: State) -> list[int]:
        return sorted(n for n, side in self.messages.items() if side.state is state)

    @rule(count=st.integers(1, 300))
    def send(self, count: int) -> None:
        first = len(self.messages) + 1
        stored = [b"message %d" % n for n in range(first, first + count)]
        assert self.broker.call(calls.send(KEYS, stored)).first == first
        self.messages |= {first + i: Side(body) for i, body in enumerate(stored)}

    @rule(most=st.integers(1, 400))
    def receive(self, most: int) -> None:
        received = self.broker.call(calls.receive(KEYS, most=most, lock_ms=HOUR_MS))
        assert numbers(received) == self.of(State.READY)[:most]
        for run in received.runs:
            for n in range(run.first, run.first + len(run.messages)):
                side = self.messages[n]
                assert run.delivery_count == side.deliveries + 1
                side.lock = run.lock
                side.move(Move.RECEIVE)

    @rule(most=st.integers(1, 300))
    def receive_and_delete(self, most: int) -> None:
        received = self.broker.call(calls.receive(KEYS, most=most, lock_ms=0))
        assert numbers(received) == self.of(State.READY)[:most]
        for n in numbers(received):
            self.messages[n].move(Move.RECEIVE_AND_DELETE)

    @rule(most=st.integers(1, 200))  # fewer runs than one call sweeps
    def receive_and_let_the_lock_expire(self, most: int) -> None:
        received = self.broker.call(calls.receive(KEYS, most=most, lock_ms=SHORT_MS))
        for n in numbers(received):
            self.messages[n].move(Move.RECEIVE)
            self.messages[n].move(Move.LOCK_EXPIRED)
        time.sleep(SHORT_MS / 1000 + 0.003)
        self.dead_locks += [Settlement(r.lock, r.first, r.first) for r in received.runs]

    def some_locked(self, data: st.DataObject) -> list[int]:
        locked = self.of(State.LOCKED)
        first = data.draw(st.integers(0, len(locked) - 1))
        return locked[first : first + data.draw(st.integers(1, 20)) : data.draw(st.integers(1, 3))]

    @precondition(lambda self: self.of(State.LOCKED))
    @rule(data=st.data(), move=st.sampled_from([Move.COMPLETE, Move.ABANDON, Move.RELEASE, Move.RENEW_LOCK]))
    def settle_some(self, data: st.DataObject, move: Move) -> None:
        chosen = self.some_locked(data)
        several = [Settlement(self.messages[n].lock, n, n) for n in chosen]
        if move is Move.COMPLETE:
            refused = self.broker.call(calls.complete(KEYS, several))
        elif move is Move.RENEW_LOCK:
            refused = self.broker.call(calls.renew_lock(KEYS, several, lock_ms=HOUR_MS)).refused
        else:
            refused = self.broker.call(calls.abandon(KEYS, several, counted=move is Move.ABANDON))
        assert refused == []
        for n in chosen:
            self.messages[n].move(move)
        if move is not Move.RENEW_LOCK:
            self.dead_locks += several

    @precondition(lambda self: self.dead_locks)
    @rule(data=st.data())
    def settle_with_a_dead_lock(self, data: st.DataObject) -> None:
        dead = data.draw(st.sampled_from(self.dead_locks))
        assert self.broker.call(calls.complete(KEYS, [dead])) == [0]

    @rule(most=st.integers(1, 500))
    def claim(self, most: int) -> None:
        start = self.base + len(self.log)
        ready = self.of(State.READY)[:most]
        end = start
        while end < start + len(ready):
            grown = self.broker.call(calls.claim(KEYS, "g", "o", HOUR_MS, start, most)).end
            assert grown > end
            end = grown
        assert end == start + len(ready)
        for n in ready:
            self.messages[n].move(Move.CLAIM)
        self.log += ready
        entries = self.broker.call(calls.claimed(KEYS, "g", self.base, end)).entries
        assert [n for e in entries for n in range(e.first, e.first + e.count)] == self.log

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(1, len(self.log)))
        while self.broker.call(calls.claim_acknowledge(KEYS, "g", "o", self.base + count)):
            pass
        for n in self.log[:count]:
            self.messages[n].move(Move.ACKNOWLEDGE)
        self.log = self.log[count:]
        self.base += count

    @precondition(lambda self: self.log)
    @rule()
    def let_the_claims_lapse(self) -> None:
        self.broker.call(calls.claim_renew(KEYS, "g", "o", 1))
        time.sleep(0.003)
        received = self.broker.call(calls.receive(KEYS, most=1, lock_ms=HOUR_MS))
        for n in self.log:
            self.messages[n].move(Move.CLAIM_LAPSED)
        (run,) = received.runs
        assert run.first == self.of(State.READY)[0]
        self.messages[run.first].lock = run.lock
        self.messages[run.first].move(Move.RECEIVE)
        opened = self.broker.call(calls.claim_open(KEYS, "g", "o", HOUR_MS))
        assert opened.base == opened.next
        self.base, self.log = opened.base, []

    @invariant()
    def totals_agree(self) -> None:
        totals = self.broker.call(calls.totals(KEYS))
        alive = [side for side in self.messages.values() if side.state is not State.GONE]
        assert totals.messages == len(alive)
        assert totals.bytes == sum(len(side.body) for side in alive)
        assert totals.claimed == len(self.of(State.CLAIMED))
        assert totals.last == len(self.messages)

    @invariant()
    def peek_agrees(self) -> None:
        runs = self.broker.call(calls.peek(KEYS, most=1000, bytes_most=1 << 24))
        shown = [r.first + i for r in runs for i in range(len(r.messages))]
        alive = [n for n in self.messages if self.messages[n].state is not State.GONE]
        assert shown == alive[:1000]


@pytest.fixture
def machine(redis_server: Broker) -> Iterator[type[BrokerMachine]]:
    with BlockingBroker(redis_server.address) as client:
        BrokerMachine.broker = client
        yield BrokerMachine


@pytest.mark.timeout(300)
def test_a_broker_follows_the_lifecycle_table(machine: type[BrokerMachine]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
