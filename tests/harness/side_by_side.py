"""A broker and the model of it: each command is given to both, and what they say is compared."""

from collections.abc import Callable, Sequence
from typing import Any

from harness import stored_forms
from harness.clock import Clock
from harness.consistency import charges
from harness.deliveries import PEEK_BYTES, drain, placed
from harness.partition_model import DEAD_LETTERS, ROOT, TRANSFER_DEAD_LETTERS, TRANSFERS, Kept, PartitionModel, Refused
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.operations import Operation, SendOperation, dead_letter_changes
from partitionedqueue.broker.refusals import REFUSALS
from partitionedqueue.broker.replies import Received, ReceivedPlaces, Run, SessionLock, Settlement
from partitionedqueue.model.errors import BrokerRefusal
from partitionedqueue.model.lifecycle import Move, State
from partitionedqueue.model.limits import RECEIVE_BYTES_DEFAULT
from partitionedqueue.model.stored_message import enqueued_times

PATHS = (ROOT, DEAD_LETTERS, TRANSFERS, TRANSFER_DEAD_LETTERS)
CODE_OF = {kind: code for code, kind in REFUSALS.items() if code != "OOM"}


def _times(first: int, count: int, marks: bytes) -> list[int]:
    return enqueued_times(first, count, marks)


class SideBySide:
    """One partition of one queue, twice."""

    def __init__(
        self, broker: BlockingBroker, keys: QueueKeys, clock: Clock, model: PartitionModel, quota: int
    ) -> None:
        self.broker = broker
        self.model = model
        self.clock = clock
        self.quota = quota
        self.keys = {ROOT: keys, DEAD_LETTERS: keys.dead_letters, TRANSFERS: keys.transfers}
        self.keys[TRANSFER_DEAD_LETTERS] = keys.transfers.dead_letters
        self.runs_given: dict[str, set[int]] = {path: set() for path in PATHS}
        self.deliveries_shown: dict[str, dict[int, int]] = {}

    # ---- asking both

    def _outcome(self, call: Call[Any]) -> tuple[str, Any]:
        try:
            return "", self.broker.call(call)
        except BrokerRefusal as refusal:
            return CODE_OF[type(refusal)], None

    @staticmethod
    def _expected(what: Callable[[], Any]) -> tuple[str, Any]:
        try:
            return "", what()
        except Refused as refused:
            return refused.code, None

    def both(self, call: Call[Any], what: Callable[[], Any]) -> Any:
        """The broker's reply, None for a refusal; the model refuses the same, or gives the same."""
        code, reply = self._outcome(call)
        expected_code, expected = self._expected(what)
        name = call.words[1]
        assert code == expected_code, f"{name!r}: the broker says {code or 'yes'}, the model {expected_code or 'yes'}"
        assert reply == expected, f"{name!r}: the broker says {reply}, the model {expected}"
        return reply

    def let_time_pass(self, ms: int) -> None:
        self.model.let_time_pass(self.clock.advance(ms))

    # ---- commands whose replies have the broker's own numbers in them

    def send(
        self,
        messages: Sequence[bytes],
        fingerprints: Sequence[bytes],
        sender: str = "",
        number: int = 0,
        *,
        guess: int | None = None,
    ) -> None:
        """Fingerprints are those of all messages, or none. With a guess of the last number they go past Lua."""
        room = self._room(len(messages))
        keys, prints = self.keys[ROOT], b"".join(fingerprints)
        if guess is None:
            call = calls.send(keys, messages, sender=sender, number=number, fingerprints=prints)
        else:
            session = stored_forms.session_id(messages[0]) or ""
            call = calls.send_pushed(
                keys, messages, guess=guess, sender=sender, number=number, fingerprints=prints, session=session
            )
        code, reply = self._outcome(call)
        first = reply.first if reply is not None else 0
        expected_code, duplicates = self._expected(
            lambda: self.model.send(messages, first, fingerprints=fingerprints, sender=sender, number=number, room=room)
        )
        assert code == expected_code, f"send: the broker says {code or 'yes'}, the model {expected_code or 'yes'}"
        if reply is None:
            return
        if duplicates is None:
            assert reply.stored_before
            return
        assert (reply.duplicates, reply.enqueued_time_ms) == (duplicates, self.clock.now_ms)
        assert (first == 0) == (len(duplicates) == len(messages))

    def _room(self, messages: int) -> int | None:
        """How many bytes so many messages may have."""
        if not self.quota:
            return None
        return self.quota - self.broker.call(calls.totals(self.keys[ROOT])).charge - charges()["message"] * messages

    def receive(
        self,
        path: str,
        most: int,
        lock_ms: int,
        bytes_most: int = 0,
        session: SessionLock | None = None,
        *,
        by_place: bool = False,
    ) -> list[int]:
        """Gives the numbers of what came. `by_place`: the bodies are fetched past Lua."""
        how = calls.receive_places if by_place and lock_ms else calls.receive
        call = how(self.keys[path], most=most, lock_ms=lock_ms, bytes_most=bytes_most, session=session)
        code, reply = self._outcome(call)
        if isinstance(reply, ReceivedPlaces):
            reply = self._with_bodies(path, reply)
        if reply is not None:
            self._number_those_new(path, reply)
        expected_code, several = self._expected(lambda: self.model.receivable(path, session))
        assert code == expected_code, f"receive: the broker says {code or 'yes'}, the model {expected_code or 'yes'}"
        if reply is None or several is None:
            return []
        fitting = self._fitting(several[:most], bytes_most)
        cut_short = 0 <= reply.ask_again_ms <= self.clock.now_ms
        work_left = 0 <= self.broker.call(calls.next_due(self.keys[path])) <= self.clock.now_ms
        got = self._delivered(path, reply, several[:most], cut_short=work_left, lock_ms=lock_ms, session=session)
        if len(got) < len(several):
            assert len(got) == min(most, len(several)) or cut_short, (
                "fewer came than there are, and more is not told of"
            )
        assert len(got) == len(fitting) or work_left
        if not got and not cut_short:
            self._check_ask_again(path, reply)
        return got

    @staticmethod
    def _fitting(several: Sequence[Kept], bytes_most: int) -> list[Kept]:
        """Those that have so many bytes at most together; the first in any case."""
        found: list[Kept] = []
        for kept in several:
            if found and sum(len(one.stored) for one in (*found, kept)) > (bytes_most or RECEIVE_BYTES_DEFAULT):
                break
            found.append(kept)
        return found

    def _with_bodies(self, path: str, reply: ReceivedPlaces) -> Received:
        runs = [
            Run(
                one.lock, one.first, one.delivery_count, one.marks, self.broker.call(calls.bodies(self.keys[path], one))
            )
            for one in reply.places
        ]
        assert all(len(run.messages) == place.count for run, place in zip(runs, reply.places, strict=True))
        return Received(reply.now_ms, reply.locked_until_ms, reply.ask_again_ms, runs)

    def _check_ask_again(self, path: str, reply: Received) -> None:
        """Whoever asks again then misses nothing."""
        event = self.model.next_event([path])
        assert event is None or 0 <= reply.ask_again_ms <= event

    def receive_deferred(
        self, path: str, sequences: Sequence[int], lock_ms: int, session: SessionLock | None = None
    ) -> list[int]:
        """Gives the numbers of what came."""
        code, reply = self._outcome(
            calls.receive_deferred(self.keys[path], sequences, lock_ms=lock_ms, session=session)
        )
        expected_code, several = self._expected(lambda: self.model.deferred(sequences, path, session))
        assert code == expected_code, f"receive_deferred: {code or 'yes'}, not {expected_code or 'yes'}"
        if reply is None or several is None:
            return []
        got = self._delivered(path, reply, several, cut_short=False, lock_ms=lock_ms, session=session)
        assert sorted(got) == sorted(sequences)
        return got

    def _number_those_new(self, path: str, reply: Received) -> None:
        """What has come to its place in this very call is told to the model."""
        for run in reply.runs:
            times = _times(run.first, len(run.messages), run.marks)
            for place, one in enumerate(run.messages):
                if run.first + place not in self.model.queues[path].used:
                    self.model.number(path, run.first + place, one, times[place])

    def _delivered(
        self,
        path: str,
        reply: Received,
        several: list[Kept],
        *,
        cut_short: bool,
        lock_ms: int,
        session: SessionLock | None,
    ) -> list[int]:
        got = [number for number, _ in placed(reply.runs)]
        wanted = [kept.sequence for kept in several]
        if cut_short:
            assert got == sorted(set(got))
            assert set(got) <= set(wanted)
        else:
            assert got == wanted[: len(got)], f"{got} came, not {wanted}"
        assert reply.locked_until_ms == self._locked_until(lock_ms, session)
        for run in reply.runs:
            assert (run.lock == 0) == (lock_ms == 0)
            assert run.lock not in self.runs_given[path], "a run's number is used again"
            if run.lock:
                self.runs_given[path].add(run.lock)
            times = _times(run.first, len(run.messages), run.marks)
            for place, one in enumerate(run.messages):
                kept = self.model.queues[path].messages[run.first + place]
                assert (one, times[place]) == (kept.stored, kept.enqueued_ms)
                assert run.delivery_count == kept.deliveries + 1
                if lock_ms == 0:
                    self.model.delete(path, kept)
                else:
                    self.model.hold(kept, run.lock, reply.locked_until_ms, session)
        return got

    def _locked_until(self, lock_ms: int, session: SessionLock | None) -> int:
        if lock_ms == 0:
            return 0
        if session is not None:
            return self.model.sessions[session.session_id].locked_until_ms
        return self.clock.now_ms + (self.model.settings.lock_ms if lock_ms < 0 else lock_ms)

    def accept(self, session_id: str, lock_ms: int) -> SessionLock | None:
        """Accept a session, or the next one."""
        code, reply = self._outcome(calls.accept_session(self.keys[ROOT], session_id, lock_ms=lock_ms))
        expected_code, name = self._expected(lambda: self.model.acceptable(session_id))
        assert code == expected_code, f"accept {session_id!r}: {code or 'yes'}, not {expected_code or 'yes'}"
        if reply is None:
            return None
        cut_short = 0 <= self.broker.call(calls.next_due(self.keys[ROOT])) <= self.clock.now_ms
        if reply.session is None:
            assert name is None or 0 <= reply.ask_again_ms <= self.clock.now_ms, f"session {name!r} is to be had"
            return None
        assert reply.session.session_id == name or cut_short, f"{reply.session} was accepted, not {name!r}"
        assert reply.session.lock not in self.runs_given[ROOT]
        self.runs_given[ROOT].add(reply.session.lock)
        assert reply.locked_until_ms == self._locked_until(lock_ms, None)
        accepted: SessionLock = reply.session
        self.model.lock_session(accepted, reply.locked_until_ms)
        return accepted

    def renew_session(self, session: SessionLock, lock_ms: int) -> None:
        until_ms = self._locked_until(lock_ms, None)

        def renewed() -> int:
            self.model.renew_session(session, until_ms)
            return until_ms

        self.both(calls.renew_session(self.keys[ROOT], session, lock_ms=lock_ms), renewed)

    def release_session(self, session: SessionLock) -> None:
        def released() -> int:
            self.model.release_session(session)
            return 1

        self.both(calls.release_session(self.keys[ROOT], session), released)

    def renew_lock(self, path: str, settlements: Sequence[Settlement], lock_ms: int) -> None:
        until_ms = self._locked_until(lock_ms, None)
        reply = self.broker.call(calls.renew_lock(self.keys[path], settlements, lock_ms=lock_ms))
        assert reply.locked_until_ms == until_ms
        assert reply.refused == self.model.renew(settlements, until_ms, path)

    def settle(
        self,
        move: Move,
        path: str,
        settlements: Sequence[Settlement],
        changes: bytes = b"",
        session: SessionLock | None = None,
    ) -> None:
        """Complete, abandon, release, defer or dead-letter."""
        keys = self.keys[path]
        call = {
            Move.COMPLETE: lambda: calls.complete(keys, settlements, session=session),
            Move.ABANDON: lambda: calls.abandon(keys, settlements, changes=changes, session=session),
            Move.RELEASE: lambda: calls.abandon(keys, settlements, counted=False, changes=changes, session=session),
            Move.DEFER: lambda: calls.defer(keys, settlements, changes=changes, session=session),
            Move.DEAD_LETTER: lambda: calls.dead_letter(keys, settlements, reason="told", session=session),
        }[move]()
        if move is Move.DEAD_LETTER:
            changes = dead_letter_changes("told", "", {})
        self.both(call, lambda: self.model.settle(move, settlements, path=path, session=session, changes=changes))

    def apply(
        self,
        operations: Sequence[Operation],
        moves: Sequence[tuple[Move, Sequence[Settlement], bytes]],
        session: SessionLock | None,
    ) -> None:
        """A transaction. `moves` are what operations other than sends do, in their order."""
        sent = sum(len(one.messages) for one in operations if isinstance(one, SendOperation))
        room = self._room(sent)
        code, reply = self._outcome(calls.apply(self.keys[ROOT], operations, session=session))

        def applied() -> None:
            left = list(moves)
            spent = 0
            for place, one in enumerate(operations):
                if isinstance(one, SendOperation):
                    spent += sum(map(len, one.messages))
                    if room is not None and spent > room:
                        raise Refused("QUOTA")
                    prints = [one.fingerprints[i : i + 12] for i in range(0, len(one.fingerprints), 12)]
                    first = reply[place] if reply is not None else -(place + 1) * 10**6
                    self.model.send(one.messages, first, fingerprints=prints, path=one.target)
                    continue
                move, settlements, changes = left.pop(0)
                if self.model.settle(move, settlements, session=session, changes=changes):
                    raise Refused("LOCKLOST")

        def all_or_nothing() -> None:
            self.model.check_session(session)
            with self.model.all_or_nothing():
                applied()

        expected_code, _ = self._expected(all_or_nothing)
        sizes = sum(
            len(one) for operation in operations if isinstance(operation, SendOperation) for one in operation.messages
        )
        if code == "QUOTA" and expected_code and room is not None and sizes > room:
            return  # two reasons to refuse it, and the broker has told the other one
        assert code == expected_code, f"apply: the broker says {code or 'yes'}, the model {expected_code or 'yes'}"

    def peek(self, path: str, states: str, session: str, start: int, bytes_most: int) -> None:
        """All from a number on, in as many calls as it takes, each within the bytes asked for."""
        shown = []
        at = start
        while at:
            call = calls.peek(
                self.keys[path], from_sequence=at, most=50, bytes_most=bytes_most, states=states, session=session
            )
            part = self.broker.call(call)
            sizes = [len(one) for _, one in placed(part.runs)]
            assert len(sizes) <= 1 or sum(sizes) <= bytes_most
            shown += [(run.first + i, int(run.state)) for run in part.runs for i in range(len(run.messages))]
            assert part.next == 0 or part.next > max([at, *(number for number, _ in placed(part.runs))])
            at = part.next
        expected = [(n, state) for n, state, _, _ in self.model.shown(path, states, session) if n >= start]
        assert shown == expected

    # ---- the same in every respect

    def agree(self) -> None:
        """Have all due work done; then everything that can be seen is the same."""
        due = drain(self.broker, self.keys[ROOT], self.clock.now_ms)
        event = self.model.next_event(PATHS)
        assert event is None or 0 <= due <= event, f"pq_sweep would be back at {due}, but something is due at {event}"
        for path in PATHS:
            self._shows_the_same(path)
        totals = self.broker.call(calls.totals(self.keys[ROOT]))
        model = self.model
        assert totals.bytes == model.bytes()
        assert totals.dead_letters == len(model.queues[DEAD_LETTERS].messages)
        assert totals.transfers == len(model.queues[TRANSFERS].messages)
        assert totals.transfer_dead_letters == len(model.queues[TRANSFER_DEAD_LETTERS].messages)
        assert totals.sessions == len(model.acceptable_sessions())
        assert totals.sessions_locked == sum(1 for session in model.sessions.values() if session.lock)
        in_order = model.root.in_order()
        assert totals.oldest == (in_order[0].enqueued_ms if in_order else 0)
        if model.settings.sessions:
            listed = self.broker.call(calls.list_sessions(self.keys[ROOT], most=1000))
            assert len(listed) == len(set(listed))
            assert set(listed) == model.listed_sessions(), f"{listed} are listed, not {model.listed_sessions()}"

    def _shown(self, path: str) -> list[tuple[int, int, int, bytes]]:
        """All that peek shows; what is new there is told to the model."""
        queue, keys, start = self.model.queues[path], self.keys[path], 1
        self.deliveries_shown[path] = {}
        shown: list[tuple[int, int, int, bytes]] = []
        while start:
            part = self.broker.call(calls.peek(keys, from_sequence=start, most=1000, bytes_most=PEEK_BYTES))
            start = part.next
            for run in part.runs:
                times = _times(run.first, len(run.messages), run.marks)
                for place, one in enumerate(run.messages):
                    sequence = run.first + place
                    if sequence not in queue.used:
                        self.model.number(path, sequence, one, times[place])
                    shown.append((sequence, int(run.state), times[place], one))
                    self.deliveries_shown[path][sequence] = run.deliveries
        return shown

    def _shows_the_same(self, path: str) -> None:
        queue, keys = self.model.queues[path], self.keys[path]
        assert self._shown(path) == self.model.shown(path)
        for kept in queue.messages.values():
            known = kept.state is State.DEFERRED or (kept.state is State.READY and not kept.session)
            shown, expected = self.deliveries_shown[path][kept.sequence], kept.deliveries if known else 0
            assert shown == expected, (
                f"{path!r} {kept.sequence} shows {shown} deliveries, not {expected}, as {kept.state}"
            )
        assert not queue.arriving, f"{path!r} lacks {queue.arriving}"
        totals = self.broker.call(calls.totals(keys))
        assert queue.used == set(range(1, totals.last + 1)), "numbers were left out"
        assert totals.messages == len(queue.messages)
        assert totals.ready == len(queue.of(State.READY))
        assert totals.locked == len(queue.of(State.LOCKED, State.DEFERRED_LOCKED))
        assert totals.deferred == len(queue.of(State.DEFERRED))
        assert totals.scheduled == len(queue.of(State.SCHEDULED))
        assert totals.claimed == len(queue.of(State.CLAIMED))

    # ---- commands that are repeated until they have done all

    def purge(self, path: str, states: str, upto: int) -> None:
        moved = self.broker.call(calls.purge(self.keys[path], states=states, upto=upto))
        purged = moved.count
        while moved.more:
            moved = self.broker.call(calls.purge(self.keys[path], states=states, upto=moved.upto, cursor=moved.more))
            purged += moved.count
        assert purged == self.model.purge(path, states, upto)

    def resubmit(self, path: str, most: int, sequences: Sequence[int]) -> None:
        """From a dead-letter queue; without numbers all, `most` a call."""
        keys, upto, left = self.keys[path], 0, True
        while left:
            code, reply = self._outcome(calls.resubmit(keys, most=most, upto=upto, sequences=sequences))
            count = reply.count if reply is not None else 0
            expected_code, moved = self._expected(
                lambda: self.model.resubmit(path, count if not sequences else most, sequences)  # noqa: B023 -- called at once
            )
            assert (code, count) == (expected_code, moved or 0)
            assert count <= most or sequences
            left = bool(reply is not None and reply.more and not sequences)
            upto = reply.upto if reply is not None else 0
            self.agree()

    def keep_session_state(self, session: SessionLock, value: bytes | None) -> None:
        totals = self.broker.call(calls.totals(self.keys[ROOT]))

        def kept() -> int:
            before = self.model.session_state(session)
            sizes = [len(one) + 1 if one is not None else 0 for one in (before, value)]
            if self.quota and sizes[1] > sizes[0] and totals.charge + sizes[1] - sizes[0] > self.quota:
                raise Refused("QUOTA")
            self.model.keep_session_state(session, value)
            return 1

        self.both(calls.set_session_state(self.keys[ROOT], session, value), kept)

    # ---- claim logs

    def claim(self, base: int, log: list[int], most: int) -> tuple[int, list[int]]:
        """Claim up to so many more messages; gives the log as it is then."""
        keys, start = self.keys[ROOT], base + len(log)
        code, reply = self._outcome(calls.claim(keys, "g", "o", 2**39, start, most))
        end = start
        while reply is not None and reply.end > end:
            end = reply.end
            code, reply = self._outcome(calls.claim(keys, "g", "o", 2**39, start, most))
        found = self.broker.call(calls.claimed(keys, "g", start, end)).entries
        claimed = [n for entry in found for n in range(entry.first, entry.first + entry.count)]
        self._shown(ROOT)
        expected_code, several = self._expected(lambda: self.model.claim(most))
        assert code == expected_code
        if code:
            return base, log
        assert claimed == [kept.sequence for kept in several]
        deliveries = [entry.deliveries for entry in found for _ in range(entry.count)]
        assert deliveries == [kept.deliveries for kept in several]
        return base, log + claimed

    def acknowledge(self, base: int, first: Sequence[int]) -> None:
        while self.broker.call(calls.claim_acknowledge(self.keys[ROOT], "g", "o", base + len(first))):
            pass
        self.model.acknowledge([self.model.root.messages[sequence] for sequence in first])

    def lapse(self, log: Sequence[int]) -> int:
        """The lease lapses, and another group's claim gives all back; the log is opened anew, and empty."""
        keys = self.keys[ROOT]
        self.broker.call(calls.claim_renew(keys, "g", "o", 1))
        self.let_time_pass(1)
        self.broker.call(calls.claim_open(keys, "other", "o", 2**39))
        self._outcome(calls.claim(keys, "other", "o", 2**39, 0, 0))
        code, opened = "TRYAGAIN", None
        while code == "TRYAGAIN":
            code, opened = self._outcome(calls.claim_open(keys, "g", "o", 2**39))
        assert opened is not None
        self.model.lapse([self.model.root.messages[sequence] for sequence in log])
        assert opened.base == opened.next
        return int(opened.base)

    # ---- the end

    def empty(self) -> None:
        """Have everything out, in order: then nothing is left."""
        while (event := self.model.next_event(PATHS)) is not None and event > self.clock.now_ms:
            self.let_time_pass(event - self.clock.now_ms)
            self.agree()
        for path in PATHS:
            if path == ROOT and self.model.settings.sessions:
                while (session := self.accept("", 1000)) is not None:
                    while self.receive(path, 1000, 0, 0, session):
                        pass
                    self.release_session(session)
            else:
                while self.receive(path, 1000, 0):
                    pass
            self.purge(path, "ds", 0)
            self.agree()
            totals = self.broker.call(calls.totals(self.keys[path]))
            assert totals.messages == totals.locked == totals.deferred == totals.scheduled == totals.ready == 0
        assert self.broker.call(calls.totals(self.keys[ROOT])).bytes == 0
