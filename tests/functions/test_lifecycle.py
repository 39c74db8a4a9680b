"""The model of a partition and a real broker, side by side: the same after every command, at any time, over restarts.

    PQ_SEARCH=500 pytest tests/functions/test_lifecycle.py

searches for longer, at random; without it the same few hundred examples run each time.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from harness import consistency, stored_forms
from harness.agreement import PATHS
from harness.clock import Clock, clocked_library
from harness.deliveries import LOCK_MS, configure
from harness.message_life import DEAD_LETTERS, ROOT, TRANSFER_DEAD_LETTERS, TRANSFERS, Kept, Settings
from harness.partition_model import PartitionModel
from harness.redis_servers import Broker, running_broker
from harness.side_by_side import SideBySide
from harness.stored_forms import HAS_TIME_TO_LIVE, IS_SCHEDULED
from harness.waiting import Waiting
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.operations import (
    AbandonOperation,
    CompleteOperation,
    DeadLetterOperation,
    DeferOperation,
    Operation,
    SendOperation,
)
from partitionedqueue.broker.replies import SessionLock, Settlement
from partitionedqueue.model.duplicates import fingerprint
from partitionedqueue.model.lifecycle import Move, State
from partitionedqueue.model.message import Message
from partitionedqueue.model.queue_spec import QueueStatus
from partitionedqueue.model.stored_message import encode, encode_changes

KEYS = QueueKeys("model")
SEARCH = int(os.environ.get("PQ_SEARCH", "0"))
SESSIONS = ("anna", "bert", "carl")
NOBODY = SessionLock("nobody", 1)
LOCKS_MS = (1, 10, 500, 5_000, -1)
FAR_MS = 400_000
SETTLING = (Move.COMPLETE, Move.ABANDON, Move.RELEASE, Move.DEFER, Move.DEAD_LETTER)
CHANGES = (b"", b"", encode_changes({"tried": True}), encode_changes({"tried": None, "n": 300}))

some_time = st.sampled_from([*["none"] * 6, *["due", "just before", "a little", "far"] * 2, "set back"])
some_queue = st.sampled_from([*[ROOT] * 6, DEAD_LETTERS, DEAD_LETTERS, TRANSFERS, TRANSFER_DEAD_LETTERS])


class PartitionMachine(RuleBasedStateMachine):
    """One example: a queue from its beginning."""

    server: ClassVar[Broker]
    broker: ClassVar[BlockingBroker]
    settings_of_queue: ClassVar[dict[str, Any]] = {}
    bodies: ClassVar[tuple[int, ...]] = (0, 10, 300)
    most_at_once: ClassVar[int] = 300

    def __init__(self) -> None:
        super().__init__()
        self.broker.raw(("FLUSHALL",))
        clock = Clock(self.broker)
        told = dict(self.settings_of_queue)
        configure(self.broker, KEYS, **told)
        quota = told.pop("quota_bytes", 0)
        model = PartitionModel(clock.now_ms, Settings(**told))
        self.both = SideBySide(self.broker, KEYS, clock, model, quota)
        self.sent = 0
        self.sends: list[tuple[int, list[bytes], list[bytes]]] = []  # numbered ones, to be repeated
        self.spent: list[tuple[str, Settlement]] = []  # tokens that were given once
        self.locks: list[SessionLock] = []
        self.broker.call(calls.claim_open(KEYS, "g", "o", 2**39))
        self.log: list[int] = []
        self.base = 0
        self.waiting = Waiting(self.both, self.server)

    # ---- what the rules choose from

    @property
    def model(self) -> PartitionModel:
        return self.both.model

    def wait(self, how: str) -> None:
        """Let time pass, and nobody knows yet but the next command."""
        event = self.model.next_event(PATHS)
        until_due = max(0, event - self.model.now_ms) if event is not None else 0
        steps = {"due": until_due, "just before": until_due - 1, "a little": 7, "far": FAR_MS}
        if (step := steps.get(how, 0)) > 0:
            self.both.let_time_pass(step)
        if how == "set back" and not self.model.settings.dedupe_ms:  # ids would be remembered a little longer
            self.both.let_time_pass(-3)

    def message(self, data: st.DataObject, session: str | None) -> Message:
        """A new message, of a kind that this queue knows."""
        self.sent += 1
        detects = self.model.settings.dedupe_ms > 0
        kinds = data.draw(st.integers(0, 9), label="kind")
        return Message(
            body=b"%d." % self.sent + bytes(data.draw(st.sampled_from(self.bodies), label="size")),
            session_id=session,
            message_id=f"id {self.sent % 7}" if detects and kinds % 3 else None,
            time_to_live_ms=(5, 600, 50_000)[self.sent % 3] if kinds in (4, 5) else None,
            scheduled_enqueue_time_ms=(
                self.model.now_ms + (0, 3, 800, 60_000)[self.sent % 4] if kinds in (5, 6, 7) else None
            ),
            application_properties={"n": self.sent, "tried": False} if kinds == 8 else {},
        )

    def batch(self, data: st.DataObject) -> tuple[list[bytes], list[bytes]]:
        """Stored forms and fingerprints of some new messages: many alike, or a few of any kind."""
        sessions = self.model.settings.sessions
        session = data.draw(st.sampled_from(SESSIONS), label="session") if sessions else None
        few = [self.message(data, session) for _ in range(data.draw(st.integers(1, 4), label="messages"))]
        if data.draw(st.integers(0, 5), label="many") == 0:
            few *= data.draw(st.integers(1, self.most_at_once // len(few)), label="times")
        if sessions and data.draw(st.integers(0, 15), label="of two sessions") == 0:
            few.append(self.message(data, "dora"))
        detects = self.model.settings.dedupe_ms > 0
        return [encode(one) for one in few], [fingerprint(one) for one in few] if detects else []

    def guess(self, data: st.DataObject, messages: Sequence[bytes]) -> int | None:
        """What the last number is thought to be by a sender past Lua; None for one that goes through it."""
        with_a_time = any(stored_forms.flags_of(one) & (HAS_TIME_TO_LIVE | IS_SCHEDULED) for one in messages)
        alike = len({stored_forms.session_id(one) for one in messages}) == 1
        if with_a_time or not alike or data.draw(st.booleans(), label="through Lua"):
            return None
        last = max(self.model.root.used, default=0)
        return max(0, last + data.draw(st.sampled_from([0, 0, 0, -1, 1, 256, -256, -10_000]), label="wrong by"))

    def held(self, path: str, session: SessionLock | None) -> list[Kept]:
        lock = session.lock if session is not None else 0
        held = self.model.queues[path].of(State.LOCKED, State.DEFERRED_LOCKED)
        return [kept for kept in held if kept.session_lock == lock]

    def settlements(self, data: st.DataObject, held: Sequence[Kept]) -> list[Settlement]:
        """Some of what is held: one by one, or as many at once as have one lock and follow each other."""
        start = data.draw(st.integers(0, len(held) - 1), label="from")
        step = data.draw(st.sampled_from([1, 1, 2, 3]), label="step")
        chosen = held[start : start + data.draw(st.sampled_from([1, 2, 20, 500]), label="count") : step]
        if data.draw(st.booleans(), label="one by one"):
            return [Settlement(kept.run, kept.sequence, kept.sequence) for kept in chosen]
        found: list[Settlement] = []
        for kept in chosen:
            if found and found[-1].lock == kept.run and found[-1].last + 1 == kept.sequence:
                found[-1] = found[-1]._replace(last=kept.sequence)
            else:
                found.append(Settlement(kept.run, kept.sequence, kept.sequence))
        return found

    def session(self, data: st.DataObject) -> SessionLock | None:
        """A session that is held, or sometimes one that was; none where the queue has none."""
        if not self.model.settings.sessions:
            return NOBODY if data.draw(st.integers(0, 30), label="names a session") == 30 else None
        if not self.locks or data.draw(st.integers(0, 20), label="names no session") == 20:
            return None
        return data.draw(st.sampled_from(self.locks[-4:]), label="session")

    # ---- the commands

    @rule(data=st.data(), wait=some_time)
    def send(self, data: st.DataObject, wait: str) -> None:
        messages, fingerprints = self.batch(data)
        guess = self.guess(data, messages)
        self.wait(wait)
        self.both.send(messages, fingerprints, guess=guess)

    @rule(data=st.data(), skip=st.sampled_from([1, 1, 1, 2, 40]))
    def send_under_a_number(self, data: st.DataObject, skip: int) -> None:
        number = (self.sends[-1][0] if self.sends else 0) + skip
        messages, fingerprints = self.batch(data)
        self.sends.append((number, messages, fingerprints))
        self.both.send(messages, fingerprints, sender="s", number=number, guess=self.guess(data, messages))

    @precondition(lambda self: self.sends)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        number, messages, fingerprints = data.draw(st.sampled_from(self.sends), label="send")
        self.both.send(messages, fingerprints, sender="s", number=number, guess=self.guess(data, messages))

    @rule(
        data=st.data(),
        path=some_queue,
        most=st.sampled_from([1, 2, 10, 100, 1000]),
        lock_ms=st.sampled_from([*LOCKS_MS, *LOCKS_MS, 0]),
        wait=some_time,
    )
    def receive(self, data: st.DataObject, path: str, most: int, lock_ms: int, wait: str) -> None:
        session = self.session(data) if path == ROOT else None
        bytes_most = data.draw(st.sampled_from([0, 0, 0, 1, 400]), label="bytes")
        by_place = data.draw(st.booleans(), label="by place")
        self.wait(wait)
        self.both.receive(path, most, lock_ms, bytes_most, session, by_place=by_place)

    @rule(
        data=st.data(),
        path=some_queue,
        move=st.sampled_from(SETTLING),
        changes=st.sampled_from(CHANGES),
        wait=some_time,
    )
    def settle(self, data: st.DataObject, path: str, move: Move, changes: bytes, wait: str) -> None:
        session = self.session(data) if path == ROOT else None
        held = self.held(path, session)
        if not held:
            return
        several = self.settlements(data, held)
        self.wait(wait)
        self.both.settle(move, path, several, changes, session)
        self.spent += [(path, one) for one in several]

    @precondition(lambda self: self.spent)
    @rule(data=st.data(), move=st.sampled_from(SETTLING))
    def settle_what_was_settled(self, data: st.DataObject, move: Move) -> None:
        path, one = data.draw(st.sampled_from(self.spent), label="settlement")
        self.both.settle(move, path, [one, one], b"", self.session(data) if path == ROOT else None)

    @rule(data=st.data(), path=some_queue, longer=st.integers(0, 9), wait=some_time)
    def renew_lock(self, data: st.DataObject, path: str, longer: int, wait: str) -> None:
        held = self.held(path, None)
        if not held:
            return
        several = self.settlements(data, held)
        latest = max(kept.locked_until_ms for kept in held)
        self.wait(wait)
        self.both.renew_lock(path, several, max(1, min(LOCK_MS, latest - self.model.now_ms + longer)))

    @rule(
        data=st.data(),
        path=some_queue,
        lock_ms=st.sampled_from([*LOCKS_MS, 0]),
        wait=some_time,
    )
    def receive_deferred(self, data: st.DataObject, path: str, lock_ms: int, wait: str) -> None:
        there = [kept.sequence for kept in self.model.queues[path].of(State.DEFERRED)]
        wrong = data.draw(st.integers(0, 9), label="wrong") == 0
        if not there and not wrong:
            return
        chosen = data.draw(st.lists(st.sampled_from(there), min_size=1, max_size=9), label="numbers") if there else []
        chosen = (chosen if wrong else list(dict.fromkeys(chosen))) + ([1] if wrong else [])
        session = self.session(data) if path == ROOT else None
        self.wait(wait)
        self.both.receive_deferred(path, chosen, lock_ms, session)

    @rule(data=st.data(), wait=some_time)
    def cancel_scheduled(self, data: st.DataObject, wait: str) -> None:
        there = [kept.sequence for kept in self.model.root.of(State.SCHEDULED)]
        wrong = data.draw(st.integers(0, 9), label="wrong") == 0
        chosen = data.draw(st.lists(st.sampled_from(there), min_size=1, max_size=9), label="numbers") if there else []
        chosen = [*chosen, 1] if wrong else list(dict.fromkeys(chosen))
        if not chosen:
            return
        self.wait(wait)
        self.both.agree()  # one that is due may be cancelled until it has been seen to

        def cancelled() -> int:
            self.model.cancel_scheduled(chosen)
            return 1

        self.both.both(calls.cancel_scheduled(KEYS, chosen), cancelled)

    # ---- sessions

    @rule(
        name=st.sampled_from(["", "", "", *SESSIONS, "dora"]),
        lock_ms=st.sampled_from([5, 700, 20_000, -1]),
        wait=some_time,
    )
    def accept_session(self, name: str, lock_ms: int, wait: str) -> None:
        self.wait(wait)
        if (session := self.both.accept(name, lock_ms)) is not None:
            self.locks.append(session)

    @precondition(lambda self: self.locks)
    @rule(data=st.data(), lock_ms=st.sampled_from([5, 700, 20_000, -1]), wait=some_time)
    def renew_session(self, data: st.DataObject, lock_ms: int, wait: str) -> None:
        session = data.draw(st.sampled_from(self.locks[-4:]), label="session")
        self.wait(wait)
        self.both.renew_session(session, lock_ms)

    @precondition(lambda self: self.locks)
    @rule(data=st.data(), wait=some_time)
    def release_session(self, data: st.DataObject, wait: str) -> None:
        session = data.draw(st.sampled_from(self.locks[-4:]), label="session")
        self.wait(wait)
        self.both.release_session(session)

    @precondition(lambda self: self.locks)
    @rule(data=st.data(), value=st.sampled_from([None, b"", b"here I am", bytes(500)]), wait=some_time)
    def session_state(self, data: st.DataObject, value: bytes | None, wait: str) -> None:
        session = data.draw(st.sampled_from(self.locks[-4:]), label="session")
        self.wait(wait)
        self.both.both(calls.get_session_state(KEYS, session), lambda: self.model.session_state(session))
        self.both.keep_session_state(session, value)

    # ---- an owner's commands

    @rule(
        path=some_queue,
        states=st.sampled_from(["a", "d", "s", "ad", "ads"]),
        part=st.booleans(),
    )
    def purge(self, path: str, states: str, part: bool) -> None:
        upto = max(self.model.queues[path].used, default=0) // 2 if part else 0
        self.both.purge(path, states, upto)

    @rule(
        data=st.data(),
        path=st.sampled_from([DEAD_LETTERS, DEAD_LETTERS, TRANSFER_DEAD_LETTERS]),
        most=st.sampled_from([1, 3, 1000]),
        chosen=st.booleans(),
    )
    def resubmit(self, data: st.DataObject, path: str, most: int, chosen: bool) -> None:
        there = [kept.sequence for kept in self.model.queues[path].of(State.READY)]
        if chosen and there:
            numbers = data.draw(st.lists(st.sampled_from(there), min_size=1, max_size=5, unique=True), label="numbers")
            self.both.resubmit(path, most, numbers + ([10_000] if most == 3 else []))
        else:
            self.both.resubmit(path, most, [])

    @rule(
        path=some_queue,
        states=st.sampled_from(["", "a", "d", "s", "ds"]),
        session=st.sampled_from(["", "", *SESSIONS]),
        start=st.sampled_from([1, 2, 200, 257]),
        bytes_most=st.sampled_from([0, 100, 700, 1 << 20]),
    )
    def peek(self, path: str, states: str, session: str, start: int, bytes_most: int) -> None:
        self.both.peek(path, states, session, start, bytes_most)

    @rule(data=st.data(), wait=some_time)
    def apply(self, data: st.DataObject, wait: str) -> None:
        session = self.session(data)
        operations: list[Operation] = []
        moves: list[tuple[Move, Sequence[Settlement], bytes]] = []
        for _ in range(data.draw(st.integers(1, 4), label="operations")):
            held = self.held(ROOT, session)
            if not held or data.draw(st.booleans(), label="send"):
                target = data.draw(st.sampled_from([ROOT, ROOT, TRANSFERS]), label="target")
                messages, fingerprints = self.batch(data)
                if target == TRANSFERS:
                    messages = [encode(Message(body=b"away"))] * len(messages)
                operations.append(SendOperation(messages, b"".join(fingerprints) if target == ROOT else b"", target))
                continue
            several = self.settlements(data, held)
            move, changes = data.draw(st.sampled_from(SETTLING)), data.draw(st.sampled_from(CHANGES))
            counted = move is Move.ABANDON
            operation: Operation
            if move is Move.COMPLETE:
                operation = CompleteOperation(several)
            elif move is Move.DEFER:
                operation = DeferOperation(several, changes)
            elif move is Move.DEAD_LETTER:
                operation = DeadLetterOperation(several, changes={"n": 1})
                changes = encode_changes({"n": 1})
            else:
                operation = AbandonOperation(several, counted, changes)
            operations.append(operation)
            moves.append((move, several, changes))
        self.wait(wait)
        self.both.apply(operations, moves, session)

    @rule(status=st.sampled_from([*QueueStatus, QueueStatus.ACTIVE, QueueStatus.ACTIVE]))
    def change_status(self, status: QueueStatus) -> None:
        configure(self.broker, KEYS, status=status)
        self.model.settings.status = status.value

    @rule(
        change=st.sampled_from(
            [
                {"lock_ms": 1_000},
                {"lock_ms": 60_000},
                {"max_deliveries": 1},
                {"max_deliveries": 0},
                {"ttl_ms": 0},
                {"ttl_ms": 700},
                {"dead_letter_expired": True},
                {"dead_letter_expired": False},
            ]
        )
    )
    def change_a_setting(self, change: dict[str, Any]) -> None:
        configure(self.broker, KEYS, **change)
        for name, value in change.items():
            setattr(self.model.settings, name, value)

    # ---- claim logs

    @precondition(lambda self: not self.model.settings.sessions)
    @rule(most=st.integers(1, 500), wait=some_time)
    def claim(self, most: int, wait: str) -> None:
        self.wait(wait)
        self.both.agree()  # a claim that meets much due work gives less than there is, and does not say so
        self.base, self.log = self.both.claim(self.base, self.log, most)

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(1, len(self.log)), label="count")
        self.both.acknowledge(self.base, self.log[:count])
        self.base, self.log = self.base + count, self.log[count:]

    @precondition(lambda self: self.log)
    @rule()
    def let_the_claims_lapse(self) -> None:
        self.base = self.both.lapse(self.log)
        self.log = []

    # ---- time, and ends of the server

    @rule(how=st.sampled_from(["due", "just before", "a little", "far", "set back"]))
    def let_time_pass(self, how: str) -> None:
        self.wait(how)

    @rule(how=st.sampled_from([*["load the library", "load the file"] * 8, "kill", "stop"]))
    def restart(self, how: str) -> None:
        if how == "load the library":
            self.server.load_library()
        elif how == "load the file":  # as a server that starts does, without the wait
            self.broker.raw(("DEBUG", "LOADAOF"))
        else:
            self.server.kill() if how == "kill" else self.server.stop()
            self.broker.close()
            self.server.start()
            self.waiting.close()
            self.waiting = Waiting(self.both, self.server)  # whoever was cut off asks again

    @invariant()
    def agree(self) -> None:
        self.both.agree()
        self.waiting.look()
        consistency.check(self.broker, KEYS.state, sessions=self.model.settings.sessions)

    def teardown(self) -> None:
        """Everything can still be had, in order, and then nothing is left."""
        self.waiting.close()
        if sys.exc_info()[0] is not None:
            return  # the example has failed; what is left tells nothing new
        configure(self.broker, KEYS, status=QueueStatus.ACTIVE)
        self.model.settings.status = QueueStatus.ACTIVE.value
        if self.log:
            self.both.acknowledge(self.base, self.log)
        self.both.empty()


class Plain(PartitionMachine):
    settings_of_queue: ClassVar[dict[str, Any]] = {"lock_ms": 30_000}


class FewDeliveries(PartitionMachine):
    settings_of_queue: ClassVar[dict[str, Any]] = {"max_deliveries": 2}


class TimeToLive(PartitionMachine):
    settings_of_queue: ClassVar[dict[str, Any]] = {"ttl_ms": 1_000, "dead_letter_expired": True, "max_deliveries": 3}


class Sessions(PartitionMachine):
    settings_of_queue: ClassVar[dict[str, Any]] = {"sessions": True}
    most_at_once: ClassVar[int] = 80


class SessionsOfAllKinds(PartitionMachine):
    settings_of_queue: ClassVar[dict[str, Any]] = {
        "sessions": True,
        "max_deliveries": 2,
        "ttl_ms": 5_000,
        "dead_letter_expired": True,
        "dedupe_ms": 30_000,
    }
    most_at_once: ClassVar[int] = 80


class Duplicates(PartitionMachine):
    settings_of_queue: ClassVar[dict[str, Any]] = {"dedupe_ms": 30_000, "max_deliveries": 5}


class Large(PartitionMachine):
    """Bodies of which a few are a megabyte: what has gone is blanked where others stay."""

    settings_of_queue: ClassVar[dict[str, Any]] = {"max_deliveries": 3}
    bodies: ClassVar[tuple[int, ...]] = (0, 60_000, 200_000)
    most_at_once: ClassVar[int] = 30


class TinyQuota(PartitionMachine):
    settings_of_queue: ClassVar[dict[str, Any]] = {"quota_bytes": 12_000, "max_deliveries": 3}
    bodies: ClassVar[tuple[int, ...]] = (0, 300, 3_000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    folder = tmp_path_factory.mktemp("lifecycle")
    more = ("--enable-debug-command", "yes", "--auto-aof-rewrite-min-size", "1mb")  # a library for each load is in it
    with running_broker(folder, settings=more, library=clocked_library) as running:
        yield running


@pytest.mark.timeout(300 if not SEARCH else 100_000)
@pytest.mark.parametrize(
    "kind", [Plain, FewDeliveries, TimeToLive, Sessions, SessionsOfAllKinds, Duplicates, Large, TinyQuota]
)
def test_a_broker_does_what_the_model_does(server: Broker, kind: type[PartitionMachine]) -> None:
    with BlockingBroker(server.address) as client:
        kind.server, kind.broker = server, client
        run_state_machine_as_test(
            kind,
            settings=settings(
                max_examples=SEARCH or 25,
                stateful_step_count=40,
                deadline=None,
                derandomize=not SEARCH,
                database=None,
                print_blob=True,
                suppress_health_check=list(HealthCheck),
            ),
        )
