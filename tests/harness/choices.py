"""What a random history of one queue chooses from: messages, settlements, sessions, times."""

from collections.abc import Sequence
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from harness import stored_forms
from harness.agreement import PATHS
from harness.clock import Clock
from harness.deliveries import configure
from harness.message_life import DEAD_LETTERS, HELD, ROOT, TRANSFERS, Kept, Settings
from harness.partition_model import PartitionModel
from harness.redis_servers import Broker
from harness.side_by_side import SideBySide
from harness.stored_forms import IS_SCHEDULED
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
from partitionedqueue.model.stored_message import encode, encode_changes

KEYS = QueueKeys("model")
SESSIONS = ("anna", "bert", "")  # an id may be empty
NOBODY = SessionLock("nobody", 1)
LOCKS_MS = (1, 10, 500, 5_000, 60_000, 300_000, -1, -1)
SESSION_LOCKS_MS = (5, 700, 60_000, 300_000, -1)
FAR_MS = 400_000
SETTLING = (Move.COMPLETE, Move.ABANDON, Move.RELEASE, Move.DEFER, Move.DEFER, Move.DEAD_LETTER)
CHANGES = (b"", b"", encode_changes({"tried": True}), encode_changes({"tried": None, "n": 300}))

some_time = st.sampled_from([*["none"] * 12, *["due", "just before", "a little"] * 2, "far", "set back"])


class Choices(RuleBasedStateMachine):
    """One queue from its beginning; `settings_of_queue` are its own."""

    server: ClassVar[Broker]
    broker: ClassVar[BlockingBroker]
    settings_of_queue: ClassVar[dict[str, Any]] = {}
    examples: ClassVar[int] = 25
    bodies: ClassVar[tuple[int, ...]] = (0, 10, 300)
    most_at_once: ClassVar[int] = 300

    def __init__(self) -> None:
        super().__init__()
        self.broker.raw(("FLUSHALL",))
        clock = Clock(self.broker)
        told = dict(self.settings_of_queue)
        configure(self.broker, KEYS, **told)
        quota = told.pop("quota_bytes", 0)
        self.both = SideBySide(self.broker, KEYS, clock, PartitionModel(clock.now_ms, Settings(**told)), quota)
        self.sent = 0
        self.spent: list[tuple[str, Settlement]] = []  # tokens that were given once
        self.locks: list[SessionLock] = []  # of sessions, those lost too

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

    def rarely(self, data: st.DataObject, what: str) -> bool:
        """One time in twenty."""
        return data.draw(st.integers(0, 19), label=what) == 7

    # ---- messages

    def message(self, data: st.DataObject, session: str | None) -> Message:
        """A new message, of a kind that this queue knows."""
        self.sent += 1
        detects = self.model.settings.dedupe_ms > 0
        kind = data.draw(st.integers(0, 9), label="kind")
        return Message(
            body=b"%d." % self.sent + bytes(data.draw(st.sampled_from(self.bodies), label="size")),
            session_id=session,
            message_id=f"id {self.sent % 5}" if detects and kind in {1, 2, 7} else None,
            time_to_live_ms=(5, 600, 50_000)[self.sent % 3] if kind in {4, 5} else None,
            scheduled_enqueue_time_ms=(
                self.model.now_ms + (0, 3, 800, 60_000)[self.sent % 4] if kind in {5, 6} else None
            ),
            application_properties={"n": self.sent, "tried": False} if kind == 8 else {},
        )

    def batch(self, data: st.DataObject) -> tuple[list[bytes], list[bytes]]:
        """Stored forms and fingerprints of some new messages: a few, or those few many times."""
        sessions = self.model.settings.sessions
        session = data.draw(st.sampled_from(SESSIONS), label="session") if sessions else None
        few = [self.message(data, session) for _ in range(data.draw(st.integers(1, 4), label="messages"))]
        if data.draw(st.integers(0, 5), label="many") == 0:
            few *= data.draw(st.integers(1, self.most_at_once // len(few)), label="times")
        if sessions and self.rarely(data, "of two sessions"):
            few.append(self.message(data, "dora"))
        detects = self.model.settings.dedupe_ms > 0
        return [encode(one) for one in few], [fingerprint(one) for one in few] if detects else []

    def guess(self, data: st.DataObject, messages: Sequence[bytes]) -> int | None:
        """What the last number is thought to be by a sender past Lua; None for one that goes through it."""
        scheduled = any(stored_forms.flags_of(one) & IS_SCHEDULED for one in messages)
        alike = len({stored_forms.session_id(one) for one in messages}) == 1
        if scheduled or not alike or data.draw(st.booleans(), label="through Lua"):
            return None
        last = max(self.model.root.used, default=0)
        return max(0, last + data.draw(st.sampled_from([0, 0, 0, -1, 1, 256, -256, -10_000]), label="wrong by"))

    # ---- what is where

    def something(self, *states: State) -> bool:
        """Whether any queue has messages in these states."""
        return any(queue.of(*states) for queue in self.model.queues.values())

    def queue_with(self, data: st.DataObject, *states: State) -> str:
        """A queue that has messages in these states; now and then any."""
        having = [path for path in PATHS if self.model.queues[path].of(*states)]
        if not having or self.rarely(data, "any queue"):
            return data.draw(st.sampled_from(PATHS), label="queue")
        return data.draw(st.sampled_from(having), label="queue")

    def session(self, data: st.DataObject, *states: State) -> SessionLock | None:
        """A session that is held, and has messages in these states; now and then one that was, or none."""
        if not self.model.settings.sessions:
            return NOBODY if self.rarely(data, "names a session") else None
        if not self.locks or self.rarely(data, "names no session"):
            return None
        having = {kept.session for kept in self.model.root.of(*states)}
        alive = [lock for lock in self.locks if self.model.sessions[lock.session_id].lock == lock.lock]
        wanted = [lock for lock in alive if lock.session_id in having or not states]
        if not wanted or self.rarely(data, "any session"):
            wanted = self.locks[-4:]
        return data.draw(st.sampled_from(wanted), label="session")

    def held(self, path: str, session: SessionLock | None) -> list[Kept]:
        lock = session.lock if session is not None else 0
        return [kept for kept in self.model.queues[path].of(*HELD) if kept.session_lock == lock]

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

    # ---- transactions

    def sending(self, data: st.DataObject) -> SendOperation:
        if data.draw(st.integers(0, 3), label="target") == 0:
            return SendOperation([encode(Message(body=b"away"))] * 2, target=TRANSFERS)
        messages, fingerprints = self.batch(data)
        return SendOperation(messages, b"".join(fingerprints))

    def settling(
        self, data: st.DataObject, held: Sequence[Kept]
    ) -> tuple[Operation, tuple[Move, list[Settlement], bytes]]:
        """An operation, and what it does."""
        several = self.settlements(data, held)
        move = data.draw(st.sampled_from(SETTLING), label="move")
        changes = data.draw(st.sampled_from(CHANGES), label="changes")
        operation: Operation = AbandonOperation(several, move is Move.ABANDON, changes)
        if move is Move.COMPLETE:
            operation = CompleteOperation(several)
        elif move is Move.DEFER:
            operation = DeferOperation(several, changes)
        elif move is Move.DEAD_LETTER:
            operation, changes = DeadLetterOperation(several, changes={"n": 1}), encode_changes({"n": 1})
        return operation, (move, several, changes)

    def dead_letters(self, data: st.DataObject) -> list[int]:
        there = [kept.sequence for kept in self.model.queues[DEAD_LETTERS].of(State.READY)]
        return data.draw(st.lists(st.sampled_from(there), max_size=5, unique=True), label="numbers") if there else []

    def numbers(self, data: st.DataObject, path: str, state: State, session: SessionLock | None = None) -> list[int]:
        """Some in a state, in any order; now and then one twice, or one that is not."""
        name = session.session_id if session is not None and path == ROOT else ""
        there = [kept.sequence for kept in self.model.queues[path].of(state) if kept.session == name]
        chosen = data.draw(st.lists(st.sampled_from(there), min_size=1, max_size=9), label="numbers") if there else []
        return [*chosen, 1] if self.rarely(data, "wrong") else list(dict.fromkeys(chosen))
