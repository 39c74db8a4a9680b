"""One call of every command, each of which must succeed: whether a server runs the whole library."""

import time
from typing import TypeVar

from harness.deliveries import body_of, placed, settlements, stored
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.operations import CompleteOperation, SendOperation
from partitionedqueue.broker.replies import ReceivedPlaces, Run, Settlement
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model.duplicates import fingerprints
from partitionedqueue.model.message import Message
from partitionedqueue.model.stored_message import encode

T = TypeVar("T")
LEASE_MS = 60_000


class Tour:
    """Walks through the commands, and keeps which there were."""

    def __init__(self, broker: BlockingBroker) -> None:
        self._broker = broker
        self.called: set[str] = set()

    def call(self, call: Call[T]) -> T:
        self.called.add(str(call.words[1]))
        return self._broker.call(call)

    def received(self, keys: QueueKeys, most: int = 1) -> list[Run]:
        return self.call(calls.receive(keys, most=most)).runs

    def one_lock(self, keys: QueueKeys) -> list[Settlement]:
        (run,) = self.received(keys)
        return [Settlement(run.lock, run.first, run.first)]

    def walk(self) -> None:
        """All of it, on a broker that holds nothing of these queues."""
        plain, chosen, sessions = QueueKeys("plain"), QueueKeys("chosen"), QueueKeys("sessions")
        assert self.call(calls.about()).layout > 0
        self.messages(plain)
        self.aside(plain)
        self.claims(plain)
        self.choices(chosen)
        self.sessions(sessions)

    def messages(self, keys: QueueKeys) -> None:
        self.call(calls.configure(keys, partition=0, partitions=1))
        assert self.call(calls.send(keys, [stored(b"%d" % n) for n in range(300)], sender="s", number=1)).first == 1
        assert self.call(calls.send(keys, [stored(b"0")], sender="s", number=1)).stored_before
        pushed = [stored(b"%d" % n) for n in range(300, 600)]
        assert self.call(calls.send_pushed(keys, pushed, guess=300)).first == 301
        shown = self.call(calls.peek(keys, most=1000, bytes_most=1 << 24))
        assert [body_of(one) for _, one in placed(shown.runs)] == [b"%d" % n for n in range(600)]
        received = self.call(calls.receive(keys, most=20))
        held = settlements(received)
        assert self.call(calls.renew_lock(keys, held)).refused == []
        assert self.call(calls.complete(keys, held)) == []
        places: ReceivedPlaces = self.call(calls.receive_places(keys, most=10))
        assert body_of(self._broker.call(calls.bodies(keys, places.places[0]))[0]) == b"20"
        firsts = [Settlement(one.lock, one.first, one.first) for one in places.places]
        assert self.call(calls.abandon(keys, firsts)) == []
        assert self.call(calls.totals(keys)).messages == 580

    def aside(self, keys: QueueKeys) -> None:
        """Deferred, scheduled, dead-lettered and moved messages, and a transaction."""
        deferred = self.one_lock(keys)
        assert self.call(calls.defer(keys, deferred)) == []
        again = self.call(calls.receive_deferred(keys, [deferred[0].first]))
        assert self.call(calls.dead_letter(keys, settlements(again), reason="why")) == []
        assert self.call(calls.resubmit(keys.dead_letters)).count == 1
        later = encode(Message(body=b"later", scheduled_enqueue_time_ms=int(time.time() * 1000) + 3_600_000))
        scheduled = self.call(calls.send(keys, [later]))
        assert self.call(calls.next_due(keys)) > 0
        assert self.call(calls.sweep(keys)).next_due_ms > 0
        assert self.call(calls.cancel_scheduled(keys, [scheduled.first])) == 1
        done = self.call(
            calls.apply(
                keys,
                [CompleteOperation(self.one_lock(keys)), SendOperation([stored(b"in a transaction")])],
                sender="t",
                number=1,
            )
        )
        assert done[0] == 0
        assert done[1] > scheduled.first

    def claims(self, keys: QueueKeys) -> None:
        log = self.call(calls.claim_open(keys, "spark", "job", LEASE_MS))
        end = self.call(calls.claim(keys, "spark", "job", LEASE_MS, log.next, 100)).end
        assert end == log.next + 100
        assert sum(entry.count for entry in self.call(calls.claimed(keys, "spark", log.next, end)).entries) == 100
        assert any(b"l" in stretch.states for stretch in self.call(calls.states(keys, 1, 2**47)).stretches)
        assert self.call(calls.claim_renew(keys, "spark", "job", LEASE_MS)) > 0
        while self.call(calls.claim_acknowledge(keys, "spark", "job", end)):
            pass
        moved = self.call(calls.purge(keys))
        while moved.more:
            moved = self.call(calls.purge(keys, upto=moved.upto, cursor=moved.more))
        assert self.call(calls.totals(keys)).ready == 0

    def choices(self, keys: QueueKeys) -> None:
        """Duplicates, a time to live and a limit of deliveries."""
        chosen = BrokerSettings(dedupe_ms=60_000, max_deliveries=1, dead_letter_expired=True)
        self.call(calls.configure(keys, partition=0, partitions=1, settings=chosen))
        several = [Message(body=b"%d" % n, message_id=str(n // 2)) for n in range(6)]
        first, others = several[:1], several[1:]
        self.call(calls.send(keys, [encode(one) for one in first], fingerprints=fingerprints(first)))
        assert self.call(calls.abandon(keys, self.one_lock(keys))) == []
        assert self.call(calls.totals(keys)).dead_letters == 1
        self.call(calls.configure(keys, partition=0, partitions=1, settings=BrokerSettings(ttl_ms=50)))
        sent = self.call(calls.send(keys, [encode(one) for one in others], fingerprints=fingerprints(others)))
        assert sent.duplicates == [0, 2, 4]
        time.sleep(0.06)
        assert self.call(calls.totals(keys)).dead_letters == 3

    def sessions(self, keys: QueueKeys) -> None:
        self.call(calls.configure(keys, partition=0, partitions=1, settings=BrokerSettings(sessions=True)))
        self.call(calls.send(keys, [encode(Message(body=b"%d" % n, session_id="a")) for n in range(5)]))
        session = self.call(calls.accept_session(keys)).session
        assert session is not None
        received = self.call(calls.receive(keys, most=3, session=session))
        assert self.call(calls.complete(keys, settlements(received), session=session)) == []
        self.call(calls.set_session_state(keys, session, b"state"))
        assert self.call(calls.get_session_state(keys, session)) == b"state"
        assert self.call(calls.renew_session(keys, session)) > 0
        assert self.call(calls.release_session(keys, session)) == 1
        assert self.call(calls.list_sessions(keys)) == ["a"]


def commands_of(broker: BlockingBroker) -> set[str]:
    """The commands that the broker's library has."""
    library = broker.raw(("FUNCTION", "LIST", "LIBRARYNAME", "partitionedqueue"))[0][0]
    fields = {bytes(library[i]).decode(): library[i + 1] for i in range(0, len(library), 2)}
    return {bytes(function[1]).decode() for function in fields["functions"]}
