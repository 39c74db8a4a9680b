"""What one partition should do, in plain Python: a list of messages, a dictionary of sessions, and no cleverness.

It shares nothing with the broker but the table of `model/lifecycle.py`, and is what the broker is compared with.
Numbers that the broker is free to choose (of runs and of session locks) are told to it (`hold`, `lock_session`).

Every command is a method that gives what the broker should reply, or raises `Refused` with the code of a refusal.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy

from harness import stored_forms
from harness.message_life import DEAD_LETTERS, HELD, ROOT, TRANSFERS, Kept, MessageLife, Queue, Refused, Session
from partitionedqueue.broker.replies import SessionLock, Settlement
from partitionedqueue.model.lifecycle import LIFECYCLE, Move, State

SHOWN_AS = {State.DEFERRED: 1, State.SCHEDULED: 2}  # in a peek; all others are active: 0
LETTER = {State.READY: "a", State.DEFERRED: "d", State.SCHEDULED: "s"}  # for a purge, which leaves the others
REMEMBERED_SENDS = 64


class PartitionModel(MessageLife):
    """One partition of one queue, and its commands."""

    # ---- sending

    def send(
        self,
        messages: Sequence[bytes],
        first: int,
        *,
        fingerprints: Sequence[bytes] = (),
        sender: str = "",
        number: int = 0,
        path: str = ROOT,
        room: int | None = None,
    ) -> list[int] | None:
        """Store a batch; gives the places of duplicates; None where this very send was carried out before.

        `first` is the number that the broker gave the first of those stored; `room` the bytes that there is room for.
        """
        if self._sent_before(sender, number):
            return None
        self._check_sending(messages, path, room)
        new, duplicates = self._duplicates(fingerprints if path == ROOT else ())
        self.sent_ids |= dict.fromkeys(new, self.now_ms)
        stored = [one for place, one in enumerate(messages) if place not in duplicates]
        for sequence, one in enumerate(stored, first):
            self._store(self.queues[path], one, sequence)
        if sender:
            self.sends.setdefault(sender, []).append(number)
            self.sent_last[sender] = self.now_ms
        return duplicates

    def _store(self, queue: Queue, stored: bytes, sequence: int) -> None:
        kept = Kept(sequence, stored, self.now_ms, session=self.session_of(queue, stored))
        if stored_forms.scheduled_time_ms(stored) > self.now_ms:
            kept.state = State.SCHEDULED
        else:
            kept.expires_ms = self.expiry_of(queue, stored)
        queue.put(kept, sequence)

    def _sent_before(self, sender: str, number: int) -> bool:
        """Whether this send is one that was carried out; of what is too old to tell, that is said."""
        sends = self.sends.get(sender, [])
        if sends and number <= max(sends) - min(REMEMBERED_SENDS, max(sends)):
            raise Refused("SENDFORGOTTEN")
        return number in sends

    def _check_sending(self, messages: Sequence[bytes], path: str, room: int | None) -> None:
        if path == ROOT and self.settings.status in {"Disabled", "SendDisabled"}:
            raise Refused("DISABLED")
        if path == ROOT and self.settings.sessions:
            ids = {stored_forms.session_id(one) for one in messages}
            if None in ids or len(ids) > 1:
                raise Refused("SESSIONREQUIRED")
        if room is not None and sum(map(len, messages)) > room:
            raise Refused("QUOTA")

    def _duplicates(self, fingerprints: Sequence[bytes]) -> tuple[list[bytes], list[int]]:
        """New fingerprints to remember, and the places of duplicates."""
        new: list[bytes] = []
        duplicates: list[int] = []
        if not self.settings.dedupe_ms:
            return new, duplicates
        for place, one in enumerate(fingerprints):
            if one == bytes(12):
                continue
            sent_at = self.sent_ids.get(one)
            if one in new or (sent_at is not None and self.now_ms - sent_at < self.settings.dedupe_ms):
                duplicates.append(place)
            else:
                new.append(one)
        return new, duplicates

    # ---- receiving

    def check_session(self, session: SessionLock | None) -> str:
        """The id of the session that a receiver acts in, '' for none."""
        if session is None:
            return ""
        if not self.settings.sessions:
            raise Refused("NOSESSIONS")
        known = self.sessions.get(session.session_id)
        if known is None or known.lock != session.lock or known.lock == 0 or known.locked_until_ms <= self.now_ms:
            raise Refused("SESSIONLOCKLOST")
        return session.session_id

    def _check_receiving(self, path: str, session: SessionLock | None) -> str:
        """Whether a receiver may ask; gives the id of its session."""
        if path == ROOT and self.settings.status in {"Disabled", "ReceiveDisabled"}:
            raise Refused("DISABLED")
        if path == ROOT and self.settings.sessions and session is None:
            raise Refused("SESSIONREQUIRED")
        return self.check_session(session)

    def receivable(self, path: str = ROOT, session: SessionLock | None = None) -> list[Kept]:
        """What a receive may have, in order."""
        session_id = self._check_receiving(path, session)
        return [kept for kept in self.queues[path].of(State.READY) if kept.session == session_id]

    def deferred(self, sequences: Sequence[int], path: str = ROOT, session: SessionLock | None = None) -> list[Kept]:
        """What a receive of deferred messages gives: all, or none; what has expired goes when it is asked for."""
        session_id = self._check_receiving(path, session)
        found: list[Kept] = []
        for sequence in sequences:
            kept = self.queues[path].messages.get(sequence)
            if kept is None or kept.state is not State.DEFERRED or kept.session != session_id or kept in found:
                raise Refused("NOTFOUND")
            if path == ROOT and self.expire_if_due(kept):
                raise Refused("NOTFOUND")
            found.append(kept)
        return found

    def hold(self, kept: Kept, run: int, locked_until_ms: int, session: SessionLock | None = None) -> None:
        """A receiver has it, under a lock of the broker's number."""
        move = Move.RECEIVE_DEFERRED if kept.state is State.DEFERRED else Move.RECEIVE
        kept.state = LIFECYCLE[kept.state][move]
        kept.run, kept.locked_until_ms = run, locked_until_ms
        kept.session_lock = session.lock if session is not None else 0

    def delete(self, path: str, kept: Kept) -> None:
        """A receiver has it for good."""
        deferred = kept.state is State.DEFERRED
        self.take_out(
            self.queues[path], kept, Move.RECEIVE_DEFERRED_AND_DELETE if deferred else Move.RECEIVE_AND_DELETE
        )

    # ---- settling

    def _held(self, path: str, settlement: Settlement, session: SessionLock | None) -> list[Kept] | None:
        """The messages of a settlement, if its lock holds all of them."""
        lock = session.lock if session is not None else 0
        found: list[Kept] = []
        for sequence in range(settlement.first, settlement.last + 1):
            kept = self.queues[path].messages.get(sequence)
            if kept is None or kept.state not in HELD or kept.run != settlement.lock:
                return None
            if kept.session_lock != lock or not self.lock_holds(kept):
                return None
            found.append(kept)
        return found or None

    def settle(
        self,
        move: Move,
        settlements: Iterable[Settlement],
        *,
        path: str = ROOT,
        session: SessionLock | None = None,
        changes: bytes = b"",
    ) -> list[int]:
        """Complete, abandon, release, defer or dead-letter; gives the places refused."""
        if move is Move.DEAD_LETTER and path.endswith(DEAD_LETTERS):
            raise Refused("NOTFOUND")
        self.check_session(session)
        refused = []
        for place, settlement in enumerate(settlements):
            several = self._held(path, settlement, session)
            if several is None:
                refused.append(place)
                continue
            for kept in several:
                self._settle(self.queues[path], kept, move, changes)
        return refused

    def _settle(self, queue: Queue, kept: Kept, move: Move, changes: bytes) -> None:
        if move is Move.COMPLETE:
            self.take_out(queue, kept, move)
        elif move is Move.DEAD_LETTER:
            self.dead_letter(queue, kept, move, kept.deliveries + 1, changes)
        else:
            kept.stored = stored_forms.with_changes(kept.stored, changes)
            self.give_back(queue, kept, move)

    def renew(self, settlements: Iterable[Settlement], locked_until_ms: int, path: str = ROOT) -> list[int]:
        """Keep messages locked, never for a shorter time than before; gives the places refused."""
        refused = []
        for place, settlement in enumerate(settlements):
            several = self._held(path, settlement, None)
            if several is None:
                refused.append(place)
            for kept in several or ():
                kept.state = LIFECYCLE[kept.state][Move.RENEW_LOCK]
                kept.locked_until_ms = max(kept.locked_until_ms, locked_until_ms)
        return refused

    # ---- claims

    def claim(self, most: int) -> list[Kept]:
        claimed = self.receivable()[:most]
        for kept in claimed:
            kept.state = LIFECYCLE[kept.state][Move.CLAIM]
        return claimed

    def acknowledge(self, several: Iterable[Kept]) -> None:
        for kept in several:
            self.take_out(self.root, kept, Move.ACKNOWLEDGE)

    def lapse(self, several: Iterable[Kept]) -> None:
        for kept in several:
            self.give_back(self.root, kept, Move.CLAIM_LAPSED)

    # ---- transactions

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """What is done inside is undone by a refusal."""
        before = deepcopy(self.__dict__)
        try:
            yield
        except Refused:
            self.__dict__ = before
            raise

    # ---- sessions

    def acceptable(self, session_id: str | None = None) -> str | None:
        """The session that is accepted: the named one, or that whose first ready message is the oldest; or none."""
        if not self.settings.sessions:
            raise Refused("NOSESSIONS")
        if self.settings.status in {"Disabled", "ReceiveDisabled"}:
            raise Refused("DISABLED")
        if session_id is not None:
            if self.sessions.get(session_id, Session()).lock:
                raise Refused("SESSIONLOCKED")
            return session_id
        acceptable = self.acceptable_sessions()
        return next((kept.session for kept in self.root.of(State.READY) if kept.session in acceptable), None)

    def lock_session(self, session: SessionLock, locked_until_ms: int) -> None:
        """The broker has given a receiver a session, under a lock of its number."""
        known = self.sessions.setdefault(session.session_id, Session())
        known.lock, known.locked_until_ms = session.lock, locked_until_ms

    def renew_session(self, session: SessionLock, locked_until_ms: int) -> None:
        self.sessions[self.check_session(session)].locked_until_ms = locked_until_ms

    def release_session(self, session: SessionLock) -> None:
        """What is held in it goes back, uncounted."""
        session_id = self.check_session(session)
        for kept in self.root.of(*HELD):
            if kept.session == session_id and kept.session_lock == session.lock:
                self.give_back(self.root, kept, Move.RELEASE)
        self.sessions[session_id].lock = 0

    def session_state(self, session: SessionLock) -> bytes | None:
        return self.sessions[self.check_session(session)].state

    def keep_session_state(self, session: SessionLock, state: bytes | None) -> None:
        self.sessions[self.check_session(session)].state = state

    def listed_sessions(self) -> set[str]:
        """Those that have ready messages, a state or a lock."""
        if not self.settings.sessions:
            raise Refused("NOSESSIONS")
        known = {name for name, session in self.sessions.items() if session.lock or session.state is not None}
        return known | {kept.session for kept in self.root.of(State.READY)}

    def acceptable_sessions(self) -> set[str]:
        """Those that a receiver who names none may get."""
        ready = {kept.session for kept in self.root.of(State.READY)} if self.settings.sessions else set()
        return {name for name in ready if not self.sessions.get(name, Session()).lock}

    # ---- an owner's commands

    def cancel_scheduled(self, sequences: Sequence[int]) -> None:
        found = [self.root.messages.get(sequence) for sequence in sequences]
        wanted = [kept for kept in found if kept is not None and kept.state is State.SCHEDULED]
        if len(wanted) < len(sequences) or len(set(sequences)) < len(sequences):
            raise Refused("NOTFOUND")
        for kept in wanted:
            self.take_out(self.root, kept, Move.CANCEL_SCHEDULED)

    def purge(self, path: str, states: str, upto: int) -> int:
        """Remove what is in these states; gives how many."""
        queue = self.queues[path]
        purged = [k for k in queue.of(*LETTER) if LETTER[k.state] in states and (upto == 0 or k.sequence <= upto)]
        for kept in purged:
            self.take_out(queue, kept, Move.PURGE)
        return len(purged)

    def resubmit(self, path: str, most: int, sequences: Sequence[int] = ()) -> int:
        """Dead letters go back to where they belong; gives how many."""
        source = self.queues[path]
        to = self.queues[ROOT if path == DEAD_LETTERS else TRANSFERS]
        if sequences:
            found = [source.messages.get(sequence) for sequence in sequences]
            moving = [kept for kept in found if kept is not None and kept.state is State.READY]
            if len(moving) < len(sequences):
                raise Refused("NOTFOUND")
        else:
            moving = source.of(State.READY)[:most]
        for kept in moving:
            kept.state = State.DEAD_LETTERED
            self.move_on(source, kept, Move.RESUBMIT, to, stored_forms.as_resubmitted(kept.stored), self.now_ms)
        return len(moving)

    # ---- what can be seen

    def shown(
        self, path: str = ROOT, states: str = "", session: str | None = None
    ) -> list[tuple[int, int, int, bytes]]:
        """Sequence number, state, enqueued time and stored form of all that a peek shows."""
        wanted = {"ads".index(letter) for letter in states or "ads"}
        return [
            (kept.sequence, SHOWN_AS.get(kept.state, 0), kept.enqueued_ms, kept.stored)
            for kept in self.queues[path].in_order()
            if SHOWN_AS.get(kept.state, 0) in wanted and session in {None, stored_forms.session_id(kept.stored)}
        ]

    def bytes(self) -> int:
        """Of all that is stored."""
        every = [kept for queue in self.queues.values() for kept in (*queue.messages.values(), *queue.arriving)]
        return sum(len(kept.stored) for kept in every)
