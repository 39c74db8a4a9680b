"""A random history of one queue: every command, at any time, over restarts; after each the two sides agree."""

import sys
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from harness import consistency
from harness.choices import CHANGES, KEYS, LOCKS_MS, SESSION_LOCKS_MS, SESSIONS, SETTLING, Choices, some_time
from harness.deliveries import LOCK_MS, configure
from harness.message_life import DEAD_LETTERS, HELD, ROOT, TRANSFER_DEAD_LETTERS
from harness.waiting import Waiting
from partitionedqueue.broker import calls
from partitionedqueue.broker.operations import Operation
from partitionedqueue.broker.replies import SessionLock, Settlement
from partitionedqueue.model.lifecycle import Move, State
from partitionedqueue.model.queue_spec import QueueStatus

SETTINGS: tuple[dict[str, Any], ...] = (
    {"lock_ms": 1_000},
    {"lock_ms": 60_000},
    {"max_deliveries": 1},
    {"max_deliveries": 0},
    {"ttl_ms": 0},
    {"ttl_ms": 700},
    {"dead_letter_expired": True},
    {"dead_letter_expired": False},
    {"status": QueueStatus.RECEIVE_DISABLED},
    {"status": QueueStatus.SEND_DISABLED},
    *[{"status": QueueStatus.ACTIVE}] * 6,
)


class PartitionMachine(Choices):
    """The rules."""

    def __init__(self) -> None:
        super().__init__()
        self.sends: list[tuple[int, list[bytes], list[bytes]]] = []  # numbered ones, to be repeated
        self.broker.call(calls.claim_open(KEYS, "g", "o", 2**39))
        self.log: list[int] = []
        self.base = 0
        self.waiting = Waiting(self.both, self.server)

    # ---- senders

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

    # ---- receivers

    def some_received(self, data: st.DataObject, path: str, session: SessionLock | None, wait: str) -> list[int]:
        most = data.draw(st.sampled_from([1, 2, 10, 100, 1000]), label="most")
        lock_ms = data.draw(st.sampled_from([*LOCKS_MS, 0]), label="lock")
        bytes_most = data.draw(st.sampled_from([0, 0, 0, 1, 400]), label="bytes")
        by_place = data.draw(st.booleans(), label="by place")
        self.wait(wait)
        return self.both.receive(path, most, lock_ms, bytes_most, session, by_place=by_place)

    @precondition(lambda self: self.something(State.READY) or len(self.model.root.used) % 4 == 0)
    @rule(data=st.data(), wait=some_time)
    def receive(self, data: st.DataObject, wait: str) -> None:
        path = self.queue_with(data, State.READY)
        session = self.session(data, State.READY) if path == ROOT else None
        self.some_received(data, path, session, wait)

    @precondition(lambda self: self.something(State.READY))
    @rule(data=st.data(), wait=some_time, times=st.integers(1, 3))
    def receive_and_settle(self, data: st.DataObject, wait: str, times: int) -> None:
        for _ in range(times):
            self.receive_and_settle_once(data, wait)
            self.agree()

    def receive_and_settle_once(self, data: st.DataObject, wait: str) -> None:
        path = self.queue_with(data, State.READY)
        session = self.session(data, State.READY) if path == ROOT else None
        if session is None and path == ROOT and self.model.settings.sessions:
            if (session := self.both.accept(None, 300_000)) is None:
                return
            self.locks.append(session)
        if self.some_received(data, path, session, "none"):
            self.both.agree()
            self.some_settled(data, path, session, wait)

    def some_settled(self, data: st.DataObject, path: str, session: SessionLock | None, wait: str) -> None:
        if not (held := self.held(path, session)):
            return
        several = self.settlements(data, held)
        move = data.draw(st.sampled_from(SETTLING), label="move")
        changes = data.draw(st.sampled_from(CHANGES), label="changes")
        self.wait(wait)
        self.both.settle(move, path, several, changes, session)
        self.spent += [(path, one) for one in several]

    @precondition(lambda self: self.something(*HELD))
    @rule(data=st.data(), wait=some_time, times=st.integers(1, 3))
    def settle(self, data: st.DataObject, wait: str, times: int) -> None:
        for _ in range(times):
            path = self.queue_with(data, *HELD)
            self.some_settled(data, path, self.session(data, *HELD) if path == ROOT else None, wait)
            self.agree()

    @precondition(lambda self: self.spent)
    @rule(data=st.data(), move=st.sampled_from(SETTLING))
    def settle_what_was_settled(self, data: st.DataObject, move: Move) -> None:
        path, one = data.draw(st.sampled_from(self.spent), label="settlement")
        self.both.settle(move, path, [one, one], b"", self.session(data) if path == ROOT else None)

    @precondition(lambda self: self.something(*HELD))
    @rule(data=st.data(), longer=st.integers(0, 9), wait=some_time)
    def renew_lock(self, data: st.DataObject, longer: int, wait: str) -> None:
        path = self.queue_with(data, *HELD)
        held = self.held(path, None)
        if held:
            several = self.settlements(data, held)
            latest = max(kept.locked_until_ms for kept in held)
            self.wait(wait)
            self.both.renew_lock(path, several, max(1, min(LOCK_MS, latest - self.model.now_ms + longer)))

    @precondition(lambda self: self.something(State.DEFERRED))
    @rule(data=st.data(), lock_ms=st.sampled_from([*LOCKS_MS, 0]), wait=some_time)
    def receive_deferred(self, data: st.DataObject, lock_ms: int, wait: str) -> None:
        path = self.queue_with(data, State.DEFERRED)
        session = self.session(data, State.DEFERRED) if path == ROOT else None
        if chosen := self.numbers(data, path, State.DEFERRED, session):
            self.wait(wait)
            self.both.receive_deferred(path, chosen, lock_ms, session)

    @precondition(lambda self: self.model.root.of(State.SCHEDULED))
    @rule(data=st.data(), wait=some_time)
    def cancel_scheduled(self, data: st.DataObject, wait: str) -> None:
        every = [kept.sequence for kept in self.model.root.of(State.SCHEDULED)]
        chosen = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=9), label="numbers")
        self.wait(wait)
        self.both.agree()  # one that is due may be cancelled until it has been seen to
        self.both.cancel_scheduled(chosen if self.rarely(data, "twice") else list(dict.fromkeys(chosen)))

    @rule(data=st.data(), wait=some_time)
    def apply(self, data: st.DataObject, wait: str) -> None:
        session = self.session(data, *HELD)
        operations: list[Operation] = []
        moves: list[tuple[Move, list[Settlement], bytes]] = []
        for _ in range(data.draw(st.integers(1, 3), label="operations")):
            held = self.held(ROOT, session)
            if not held or data.draw(st.booleans(), label="send"):
                operations.append(self.sending(data))
            else:
                operation, move = self.settling(data, held)
                operations.append(operation)
                moves.append(move)
        self.wait(wait)
        self.both.apply(operations, moves, session)

    # ---- sessions

    @precondition(lambda self: self.model.settings.sessions)
    @rule(
        name=st.sampled_from([None, None, None, *SESSIONS, "dora"]),
        lock_ms=st.sampled_from(SESSION_LOCKS_MS),
        wait=some_time,
    )
    def accept_session(self, name: str | None, lock_ms: int, wait: str) -> None:
        self.wait(wait)
        if (session := self.both.accept(name, lock_ms)) is not None:
            self.locks.append(session)

    @precondition(lambda self: self.locks)
    @rule(data=st.data(), lock_ms=st.sampled_from(SESSION_LOCKS_MS), wait=some_time)
    def renew_session(self, data: st.DataObject, lock_ms: int, wait: str) -> None:
        if (session := self.session(data)) is not None:
            self.wait(wait)
            self.both.renew_session(session, lock_ms)

    @precondition(lambda self: self.locks)
    @rule(data=st.data(), wait=some_time)
    def release_session(self, data: st.DataObject, wait: str) -> None:
        if (session := self.session(data)) is not None:
            self.wait(wait)
            self.both.release_session(session)

    @precondition(lambda self: self.locks)
    @rule(data=st.data(), value=st.sampled_from([None, b"", b"here I am", bytes(500)]), wait=some_time)
    def session_state(self, data: st.DataObject, value: bytes | None, wait: str) -> None:
        if (session := self.session(data)) is not None:
            self.wait(wait)
            self.both.both(calls.get_session_state(KEYS, session), lambda: self.model.session_state(session))
            self.both.keep_session_state(session, value)

    # ---- an owner's commands

    @rule(data=st.data(), what=st.sampled_from(["purge", "resubmit", "resubmit", "resubmit transfers", "peek"]))
    def look_after(self, data: st.DataObject, what: str) -> None:
        if what == "purge":
            states = data.draw(st.sampled_from(["a", "d", "s", "ad", "ads"]), label="states")
            path = self.queue_with(data, State.READY, State.DEFERRED)
            part = data.draw(st.booleans(), label="part")
            self.both.purge(path, states, max(self.model.queues[path].used, default=0) // 2 if part else 0)
        elif what == "resubmit":
            numbers, most = self.dead_letters(data), data.draw(st.sampled_from([1, 3, 1000]), label="most")
            self.both.resubmit(DEAD_LETTERS, most, numbers + ([10_000] if numbers and most == 3 else []))
        elif what == "resubmit transfers":
            self.both.resubmit(TRANSFER_DEAD_LETTERS, 1000, [])
        else:
            states = data.draw(st.sampled_from(["", "a", "d", "s", "ds"]), label="states")
            session = data.draw(st.sampled_from([None, None, *SESSIONS]), label="session")
            start = data.draw(st.sampled_from([1, 2, 200, 257]), label="from")
            bytes_most = data.draw(st.sampled_from([0, 100, 700, 1 << 20]), label="bytes")
            self.both.peek(self.queue_with(data, *State), states, session, start, bytes_most)

    @rule(change=st.sampled_from(SETTINGS))
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

    # ---- after each

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
        self.model.settings.status = QueueStatus.ACTIVE
        if self.log:
            self.both.acknowledge(self.base, self.log)
        self.both.empty()
        consistency.check(self.broker, KEYS.state, sessions=self.model.settings.sessions)
