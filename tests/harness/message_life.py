"""The messages of the model of a partition, and the moves of their life: by the table of `model/lifecycle.py`.

Messages that move to a new place are `arriving` there until `number` tells which sequence number each has been given:
in which order due work is done is the broker's business. That no number is given twice is checked.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from harness import stored_forms
from partitionedqueue.model.lifecycle import COUNTS_A_DELIVERY, LIFECYCLE, Move, State

ROOT, DEAD_LETTERS = "", "/$DeadLetterQueue"
TRANSFERS, TRANSFER_DEAD_LETTERS = "/$Transfer", "/$Transfer/$DeadLetterQueue"
HELD = frozenset({State.LOCKED, State.DEFERRED_LOCKED})
SENDER_KEPT_MS = 1_800_000


class Refused(Exception):
    """A refusal; nothing was changed."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Kept:
    """One message in one queue. `deliveries` are those that count, without the one that is under way."""

    sequence: int
    stored: bytes
    enqueued_ms: int
    state: State = State.READY
    deliveries: int = 0
    expires_ms: int = 0  # 0: never
    session: str = ""
    run: int = 0
    locked_until_ms: int = 0
    session_lock: int = 0  # that it is held under, in place of a time


@dataclass
class Session:
    """What is known of a session beside its messages."""

    lock: int = 0
    locked_until_ms: int = 0
    state: bytes | None = None


@dataclass
class Queue:
    """The queue itself, or one of its sub-queues."""

    path: str
    messages: dict[int, Kept] = field(default_factory=dict)
    arriving: list[Kept] = field(default_factory=list)
    used: set[int] = field(default_factory=set)  # numbers ever given

    def put(self, kept: Kept, sequence: int) -> None:
        assert sequence not in self.used, f"number {sequence} of {self.path!r} is given for the second time"
        self.used.add(sequence)
        self.messages[sequence] = replace(kept, sequence=sequence)

    def in_order(self) -> list[Kept]:
        return [self.messages[sequence] for sequence in sorted(self.messages)]

    def of(self, *states: State) -> list[Kept]:
        return [kept for kept in self.in_order() if kept.state in states]


@dataclass
class Settings:
    """What pq_configure was told."""

    lock_ms: int = 60_000
    max_deliveries: int = 0
    ttl_ms: int = 0
    dead_letter_expired: bool = False
    sessions: bool = False
    dedupe_ms: int = 0
    status: str = "Active"


class MessageLife:
    """The messages of one partition of one queue, at `now_ms`, and what becomes of them."""

    def __init__(self, now_ms: int, settings: Settings | None = None) -> None:
        self.now_ms = now_ms
        self.settings = settings or Settings()
        self.queues = {path: Queue(path) for path in (ROOT, DEAD_LETTERS, TRANSFERS, TRANSFER_DEAD_LETTERS)}
        self.sessions: dict[str, Session] = {}
        self.sent_ids: dict[bytes, int] = {}  # fingerprint → when
        self.sends: dict[str, list[int]] = {}  # sender → the numbers of its sends, as they came
        self.sent_last: dict[str, int] = {}  # sender → when

    @property
    def root(self) -> Queue:
        return self.queues[ROOT]

    # ---- time

    def let_time_pass(self, now_ms: int) -> None:
        """Do all that falls due up to now."""
        self.now_ms = now_ms
        for queue in self.queues.values():
            for kept in queue.of(*HELD):
                if not self.lock_holds(kept):
                    self.give_back(queue, kept, Move.LOCK_EXPIRED)
        self._messages_come_and_go(now_ms)
        for session in self.sessions.values():
            if session.locked_until_ms <= now_ms:
                session.lock = 0
        for sender, sent_ms in self.sent_last.items():
            if sent_ms + SENDER_KEPT_MS <= now_ms:
                self.sends.pop(sender, None)

    def _messages_come_and_go(self, now_ms: int) -> None:
        for kept in self.root.of(State.SCHEDULED):
            if stored_forms.scheduled_time_ms(kept.stored) <= now_ms:
                self.move_on(self.root, kept, Move.SCHEDULED_TIME_CAME, self.root, kept.stored, now_ms)
        for kept in self.root.of(State.READY):
            self.expire_if_due(kept)

    def next_event(self, paths: Iterable[str]) -> int | None:
        """When something falls due next in these queues: a lock, a session's, a schedule or a time to live."""
        held = [kept for path in paths for kept in self.queues[path].of(*HELD)]
        times = [kept.locked_until_ms for kept in held if not kept.session_lock]
        if ROOT not in paths:
            return min(times, default=None)
        times += [session.locked_until_ms for session in self.sessions.values() if session.lock]
        times += [stored_forms.scheduled_time_ms(kept.stored) for kept in self.root.of(State.SCHEDULED)]
        times += [kept.expires_ms for kept in self.root.of(State.READY) if kept.expires_ms]
        return min(times, default=None)

    def lock_holds(self, kept: Kept) -> bool:
        if kept.session_lock:
            session = self.sessions[kept.session]
            return session.lock == kept.session_lock and session.locked_until_ms > self.now_ms
        return kept.locked_until_ms > self.now_ms

    def expire_if_due(self, kept: Kept) -> bool:
        if kept.expires_ms == 0 or kept.expires_ms > self.now_ms:
            return False
        if self.settings.dead_letter_expired:
            self.dead_letter(self.root, kept, Move.EXPIRED_TO_DEAD_LETTERS, kept.deliveries, stored_forms.TTL_EXPIRED)
        else:
            self.take_out(self.root, kept, Move.EXPIRED)
        return True

    # ---- the moves of one message

    def take_out(self, queue: Queue, kept: Kept, move: Move) -> None:
        kept.state = LIFECYCLE[kept.state][move]
        assert kept.state is not State.READY
        del queue.messages[kept.sequence]

    def move_on(self, source: Queue, kept: Kept, move: Move, to: Queue, stored: bytes, enqueued_ms: int) -> None:  # noqa: PLR0917 -- from where, what, how, to where and as what
        """A message leaves one place and arrives at another, as a new one."""
        state = LIFECYCLE[kept.state][move]
        assert state in {State.READY, State.DEAD_LETTERED}
        del source.messages[kept.sequence]
        expires_ms = self.expiry_of(to, stored)
        to.arriving.append(
            Kept(0, stored, enqueued_ms, State.READY, expires_ms=expires_ms, session=self.session_of(to, stored))
        )

    def dead_letter(self, queue: Queue, kept: Kept, move: Move, deliveries: int, why: str | bytes) -> None:
        """`why` is a reason of the broker's own, whose description is its affair, or the changes of a receiver."""
        to = self.queues[DEAD_LETTERS if queue.path == ROOT else TRANSFER_DEAD_LETTERS]
        stored = stored_forms.as_dead_letter(kept.stored, kept.sequence, deliveries)
        stored = stored_forms.with_changes(stored, stored_forms.reason(why) if isinstance(why, str) else why)
        self.move_on(queue, kept, move, to, stored, kept.enqueued_ms)

    def give_back(self, queue: Queue, kept: Kept, move: Move) -> None:
        """Back to where it was received from, unless it has been delivered too often, or has expired meanwhile."""
        if move in COUNTS_A_DELIVERY:
            kept.deliveries += 1
            if queue is self.root and move is not Move.DEFER and 0 < self.settings.max_deliveries <= kept.deliveries:
                exceeded = Move.DELIVERIES_EXCEEDED
                self.dead_letter(queue, kept, exceeded, kept.deliveries, stored_forms.TOO_MANY_DELIVERIES)
                return
        kept.state = LIFECYCLE[kept.state][move]
        kept.run = kept.locked_until_ms = kept.session_lock = 0
        if kept.state is State.READY and queue is self.root:
            self.expire_if_due(kept)

    def expiry_of(self, queue: Queue, stored: bytes) -> int:
        if queue is not self.root:
            return 0
        lives = [ms for ms in (self.settings.ttl_ms, stored_forms.time_to_live_ms(stored)) if ms > 0]
        return self.now_ms + min(lives) if lives else 0

    def session_of(self, queue: Queue, stored: bytes) -> str:
        return (stored_forms.session_id(stored) or "") if queue is self.root and self.settings.sessions else ""

    def number(self, path: str, sequence: int, stored: bytes, enqueued_ms: int) -> None:
        """The broker shows a message under a number that is new: it must be one of those that are arriving."""
        queue = self.queues[path]
        for kept in queue.arriving:
            if kept.stored == stored and kept.enqueued_ms == enqueued_ms:
                queue.arriving.remove(kept)
                queue.put(kept, sequence)
                return
        raise AssertionError(f"{path!r} has a message that nobody sent there, at {sequence}: {stored!r}, {enqueued_ms}")
