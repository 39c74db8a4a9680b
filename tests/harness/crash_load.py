"""Clients that send, receive and settle at once while their broker is killed, and a ledger of what they were promised.

A promise is a reply. What was asked for without one may have happened or not: a send or a transaction is asked for
again under its number until the broker tells; of a settlement both outcomes are possible until the message is seen.
"""

import contextlib
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

from harness import stored_forms
from harness.deliveries import body_of, placed, stored
from harness.ledger import ACTIVE, DEAD, DEFERRED, GONE, LOCK_MS, NEVER_STORED, Ledger
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.operations import CompleteOperation, Operation, SendOperation
from partitionedqueue.broker.replies import Received, SessionLock, Settlement
from partitionedqueue.model.errors import BrokerRefusal, BrokerUnavailable, LockLost, SessionLockLost
from partitionedqueue.model.placement import BrokerAddress

LATEST_S = 1.0  # scheduled messages come within so long


class Client(threading.Thread):
    """One client, for one round: it ends when its broker does."""

    def __init__(self, number: int, address: BrokerAddress, keys: QueueKeys, ledger: Ledger, *, sessions: bool) -> None:
        super().__init__(name=f"client {number}")
        self.number = number
        self.address = address
        self.keys = keys
        self.ledger = ledger
        self.sessions = sessions
        self.random = random.Random(number)
        self.sender = f"client {number}"
        self.sends = 0
        self.made = 0
        self.done = 0  # calls that were answered
        self.unsettled: Callable[[BlockingBroker], None] | None = None  # asked for, and not answered
        self.fault: BaseException | None = None

    def again(self) -> "Client":
        """The same client in the next round."""
        new = Client(self.number, self.address, self.keys, self.ledger, sessions=self.sessions)
        new.__dict__.update({name: getattr(self, name) for name in ("random", "sends", "made", "done", "unsettled")})
        return new

    def run(self) -> None:
        try:
            with BlockingBroker(self.address) as broker:
                self.settle_accounts(broker)
                while True:
                    self._turn(broker)
        except BrokerUnavailable:
            pass
        except BaseException as error:  # noqa: BLE001 -- told by whoever waits for this thread
            self.fault = error

    def settle_accounts(self, broker: BlockingBroker) -> None:
        """Ask again for what was asked for under a number and not answered."""
        if self.unsettled is not None:
            self.unsettled(broker)
            self.unsettled = None

    def _turn(self, broker: BlockingBroker) -> None:
        turns = [self._send, self._schedule, self._transaction]
        turns += [self._in_a_session] * 4 if self.sessions else [self._receive] * 3 + [self._receive_deferred]
        self.random.choice(turns)(broker)
        self.done += 1

    def _new(self, count: int, **fields: object) -> list[bytes]:
        if self.sessions:
            fields["session_id"] = f"session {self.random.randrange(24)}"
        bodies = [b"%d of client %d" % (self.made + i, self.number) for i in range(count)]
        self.made += count
        with self.ledger.lock:
            self.ledger.places |= {body: {NEVER_STORED, ACTIVE} for body in bodies}
        return [stored(body, **fields) for body in bodies]

    def _until_told(self, broker: BlockingBroker, ask: Callable[[BlockingBroker], None]) -> None:
        self.unsettled = ask
        self.settle_accounts(broker)

    # ---- what a client does

    def _send(self, broker: BlockingBroker) -> None:
        messages = self._new(self.random.randint(1, 8))
        self.sends += 1
        number, pushed = self.sends, self.random.random() < 0.4
        session = stored_forms.session_id(messages[0]) or ""

        def ask(broker: BlockingBroker) -> None:
            if pushed:
                guess = max(self.ledger.numbers, default=0) + self.random.randint(-2, 2)
                call = calls.send_pushed(
                    self.keys, messages, guess=max(0, guess), sender=self.sender, number=number, session=session
                )
            else:
                call = calls.send(self.keys, messages, sender=self.sender, number=number)
            self._stored(messages, broker.call(call).first)

        self._until_told(broker, ask)

    def _stored(self, messages: Sequence[bytes], first: int) -> None:
        """They are stored now; `first` is 0 where that is all that is known."""
        with self.ledger.lock:
            for place, one in enumerate(messages):
                body = body_of(one)
                self.ledger.places[body].discard(NEVER_STORED)
                if first:
                    self.ledger.numbered(first + place, body)

    def _schedule(self, broker: BlockingBroker) -> None:
        at = int((time.time() + self.random.random() * LATEST_S) * 1000)
        messages = self._new(self.random.randint(1, 3), scheduled_enqueue_time_ms=at)
        self.sends += 1
        number = self.sends
        with self.ledger.lock:
            self.ledger.due_ms |= {body_of(one): at for one in messages}

        def ask(broker: BlockingBroker) -> None:
            self._stored(
                messages, broker.call(calls.send(self.keys, messages, sender=self.sender, number=number)).first
            )

        self._until_told(broker, ask)

    def _receive(self, broker: BlockingBroker) -> None:
        received = broker.call(calls.receive(self.keys, most=self.random.choice([1, 3, 20]), lock_ms=LOCK_MS))
        self.ledger.delivered(received, ACTIVE)
        self._settle_some(broker, received, None)

    def _receive_deferred(self, broker: BlockingBroker) -> None:
        with self.ledger.lock:
            known = sorted(self.ledger.deferred)
        if not known:
            return
        try:
            call = calls.receive_deferred(self.keys, [self.random.choice(known)], lock_ms=LOCK_MS)
            received = broker.call(call)
        except BrokerRefusal:
            return  # somebody has it
        self.ledger.delivered(received, DEFERRED)
        self._settle_some(broker, received, None)

    def _in_a_session(self, broker: BlockingBroker) -> None:
        session = broker.call(calls.accept_session(self.keys, lock_ms=LOCK_MS)).session
        if session is None:
            return
        had: list[bytes] = []
        try:
            for _ in range(self.random.randint(1, 3)):
                most = self.random.choice([1, 3, 20])
                received = broker.call(calls.receive(self.keys, most=most, session=session))
                self.ledger.delivered(received, ACTIVE)
                had += [body_of(one) for _, one in placed(received.runs)]
                self._settle_some(broker, received, session)
            if self.random.random() < 0.95:
                with self.ledger.lock:
                    for body in had:
                        self._given_back(body)
                broker.call(calls.release_session(self.keys, session))
        except SessionLockLost:
            pass  # it took too long

    def _settle_some(self, broker: BlockingBroker, received: Received, session: SessionLock | None) -> None:
        """Do one thing or another with each of what was received; leave some, whose locks then expire."""
        ways: dict[str, list[tuple[Settlement, bytes]]] = defaultdict(list)
        for run in received.runs:
            for place, one in enumerate(run.messages):
                way = self.random.choices(["complete", "abandon", "defer", "dead_letter", "leave"], [6, 2, 1, 1, 1])[0]
                sequence = run.first + place
                ways[way].append((Settlement(run.lock, sequence, sequence), body_of(one)))
        ways.pop("leave", None)
        if session is not None:
            ways.pop("defer", None)
        for way, several in ways.items():
            self._settle(broker, way, several, session)

    def _settle(
        self,
        broker: BlockingBroker,
        way: str,
        several: Sequence[tuple[Settlement, bytes]],
        session: SessionLock | None,
    ) -> None:
        place = {"complete": GONE, "abandon": None, "defer": DEFERRED, "dead_letter": DEAD}[way]
        with self.ledger.lock:
            for _, body in several:
                self._given_back(body)
                if place is not None:
                    self.ledger.hope(body, place)
                if way == "defer":
                    self.ledger.deferred.update({one.first: found for one, found in several if found == body})
        refused = broker.call(getattr(calls, way)(self.keys, [one for one, _ in several], session=session))
        with self.ledger.lock:
            for at, (one, body) in enumerate(several):
                if place is None:
                    continue
                if at in refused:
                    self.ledger.refuse(body, place)
                else:
                    self.ledger.known(body, place)
                    if place != DEFERRED:
                        self.ledger.deferred.pop(one.first, None)

    def _given_back(self, body: bytes) -> None:
        if self.ledger.holds[body]:
            self.ledger.holds[body][-1].ended = True

    def _transaction(self, broker: BlockingBroker) -> None:
        """Complete what was received, and send something, as one."""
        session: SessionLock | None = None
        if self.sessions:
            session = broker.call(calls.accept_session(self.keys, lock_ms=LOCK_MS)).session
            if session is None:
                return
        try:
            received = broker.call(calls.receive(self.keys, most=3, lock_ms=LOCK_MS, session=session))
        except SessionLockLost:
            return
        self.ledger.delivered(received, ACTIVE)
        settled = [Settlement(run.lock, run.first, run.first + len(run.messages) - 1) for run in received.runs]
        bodies = [body_of(one) for _, one in placed(received.runs)]
        if not bodies:
            return  # a session is let go by its lock's end
        messages = self._new(2)
        self.sends += 1
        number = self.sends
        operations: list[Operation] = [CompleteOperation(settled), SendOperation(messages)]
        with self.ledger.lock:
            for body in bodies:
                self._given_back(body)
                self.ledger.hope(body, GONE)

        def ask(broker: BlockingBroker) -> None:
            call = calls.apply(self.keys, operations, sender=self.sender, number=number, session=session)
            try:
                firsts = broker.call(call)
            except (LockLost, SessionLockLost):
                self._not_applied(bodies, messages)
                return
            with self.ledger.lock:
                for body in bodies:
                    self.ledger.known(body, GONE)
            self._stored(messages, firsts[1] if firsts else 0)

        self._until_told(broker, ask)
        if session is not None:
            with contextlib.suppress(SessionLockLost):
                broker.call(calls.release_session(self.keys, session))

    def _not_applied(self, bodies: Sequence[bytes], messages: Sequence[bytes]) -> None:
        with self.ledger.lock:
            for body in bodies:
                self.ledger.refuse(body, GONE)
            for one in messages:
                self.ledger.places[body_of(one)] = {NEVER_STORED}
