"""A broker and the model of it: each command is given to both, and what they say is compared."""

from collections.abc import Sequence

from harness import stored_forms
from harness.agreement import PATHS, Agreement
from harness.deliveries import placed
from harness.message_life import ROOT, Kept, Refused
from partitionedqueue.broker import calls
from partitionedqueue.broker.operations import Operation, SendOperation, dead_letter_changes
from partitionedqueue.broker.replies import Received, ReceivedPlaces, Run, SessionLock, Settlement
from partitionedqueue.model.lifecycle import Move
from partitionedqueue.model.limits import RECEIVE_BYTES_DEFAULT
from partitionedqueue.model.stored_message import enqueued_times


class SideBySide(Agreement):
    """The commands."""

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
            times = enqueued_times(run.first, len(run.messages), run.marks)
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
            times = enqueued_times(run.first, len(run.messages), run.marks)
            for place, one in enumerate(run.messages):
                kept = self.model.queues[path].messages[run.first + place]
                assert (one, times[place]) == (kept.stored, kept.enqueued_ms)
                assert run.delivery_count == kept.deliveries + 1
                if lock_ms == 0:
                    self.model.delete(path, kept)
                else:
                    self.model.hold(kept, run.lock, reply.locked_until_ms, session)
        return got

    def accept(self, session_id: str | None, lock_ms: int) -> SessionLock | None:
        """Accept a session, or the next one."""
        code, reply = self._outcome(calls.accept_session(self.keys[ROOT], session_id, lock_ms=lock_ms))
        self._shown(ROOT)  # what has come to its place in this very call is told to the model
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

    def peek(self, path: str, states: str, session: str | None, start: int, bytes_most: int) -> None:
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

    def cancel_scheduled(self, sequences: Sequence[int]) -> None:
        def cancelled() -> int:
            self.model.cancel_scheduled(sequences)
            return 1

        self.both(calls.cancel_scheduled(self.keys[ROOT], sequences), cancelled)

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
                while (session := self.accept(None, 1000)) is not None:
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
