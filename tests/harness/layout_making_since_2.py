"""What layout 2 brought: queues with settings, messages put aside, sub-queues, sessions, message ids."""

from typing import Any

from harness.clock import Clock
from harness.deliveries import settlements
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.operations import SendOperation
from partitionedqueue.broker.replies import SessionLock, Settlement
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model.duplicates import fingerprints
from partitionedqueue.model.message import Message
from partitionedqueue.model.stored_message import encode

MINUTE_MS = 60_000
PARTITION, PARTITIONS = 3, 16


def _configured(broker: BlockingBroker, name: str, settings: BrokerSettings) -> QueueKeys:
    keys = QueueKeys(name)
    broker.call(calls.configure(keys, partition=PARTITION, partitions=PARTITIONS, settings=settings))
    return keys


def _sent(broker: BlockingBroker, keys: QueueKeys, count: int, **fields: Any) -> list[int]:
    """Sequence numbers of messages whose bodies name them."""
    first = broker.call(calls.totals(keys)).last + 1
    messages = [encode(Message(body=b"%d" % (first + i), **fields)) for i in range(count)]
    assert broker.call(calls.send(keys, messages)).first == first
    return list(range(first, first + count))


def aside(broker: BlockingBroker, clock: Clock) -> dict[str, Any]:
    """Deferred, scheduled, expiring and dead-lettered messages, some on their way to another queue, and locks."""
    settings = BrokerSettings(lock_ms=2 * MINUTE_MS, max_deliveries=3, dead_letter_expired=True)
    keys = _configured(broker, "aside", settings)
    _sent(broker, keys, 300)
    received = broker.call(calls.receive(keys, most=8))
    (run,) = received.runs

    def held(*numbers: int) -> list[Settlement]:
        return [Settlement(run.lock, number, number) for number in numbers]

    assert broker.call(calls.defer(keys, held(1, 2))) == []
    assert broker.call(calls.dead_letter(keys, held(3), reason="spoilt", description="smells")) == []
    assert broker.call(calls.complete(keys, held(4))) == []
    assert broker.call(calls.abandon(keys, held(5))) == []
    at = clock.now_ms + 10 * MINUTE_MS
    scheduled = _sent(broker, keys, 3, scheduled_enqueue_time_ms=at)
    expiring = _sent(broker, keys, 2, time_to_live_ms=8 * MINUTE_MS)
    moved = SendOperation([encode(Message(body=b"to elsewhere"))], target="/$Transfer")
    broker.call(calls.apply(keys, [moved], sender="t", number=1))
    return {
        "ready": [5, *range(9, 301), *expiring],
        "returned": {"5": 1},
        "deferred": {"1": 1, "2": 1},
        "locked": [list(one) for one in held(6, 7, 8)],
        "locked_until_ms": received.locked_until_ms,
        "scheduled": scheduled,
        "scheduled_at_ms": at,
        "expiring": expiring,
        "expire_at_ms": clock.now_ms + 8 * MINUTE_MS,
        "dead_letters": {"3": ["spoilt", "smells"]},
        "transfers": 1,
        "lock_ms": settings.lock_ms,
        "transaction": ["t", 1],
    }


def sessions(broker: BlockingBroker, clock: Clock) -> dict[str, Any]:
    """A session that is held, with a state and messages of every kind, and one that is free."""
    keys = _configured(broker, "sessions", BrokerSettings(sessions=True, lock_ms=5 * MINUTE_MS))
    held_ones, free = _sent(broker, keys, 6, session_id="held"), _sent(broker, keys, 3, session_id="free")
    accepted = broker.call(calls.accept_session(keys, "held"))
    session = accepted.session
    assert session is not None
    received = broker.call(calls.receive(keys, most=4, session=session))
    locks = [Settlement(one.lock, n, n) for one in settlements(received) for n in range(one.first, one.last + 1)]
    assert broker.call(calls.complete(keys, locks[:1], session=session)) == []
    assert broker.call(calls.defer(keys, locks[1:2], session=session)) == []
    broker.call(calls.set_session_state(keys, session, b"half done"))
    other = broker.call(calls.accept_session(keys, "free")).session
    assert isinstance(other, SessionLock)
    broker.call(calls.set_session_state(keys, other, b"not begun"))
    broker.call(calls.release_session(keys, other))
    return {
        "session": list(session),
        "locked_until_ms": accepted.locked_until_ms,
        "locked": [list(one) for one in locks[2:]],
        "deferred": [locks[1].first],
        "ready": held_ones[4:],
        "state": "half done",
        "free": free,
        "free_state": "not begun",
    }


def ids(broker: BlockingBroker, clock: Clock) -> dict[str, Any]:
    """Message ids of two generations of a window."""
    window_ms = 10 * MINUTE_MS
    keys = _configured(broker, "ids", BrokerSettings(dedupe_ms=window_ms))
    told = []
    for part in range(3):
        several = [Message(body=b"%d" % n, message_id=f"{part}-{n}") for n in range(20)]
        prints = fingerprints(several)
        broker.call(calls.send(keys, [encode(one) for one in several], fingerprints=prints))
        told += [one.message_id for one in several]
        if part < 2:
            clock.advance(window_ms // 4)
    return {"ids": told, "messages": len(told)}


def make(broker: BlockingBroker, clock: Clock) -> dict[str, Any]:
    """Every kind of state that came with layout 2, and what must be found of it."""
    made = {"ids": ids(broker, clock)}
    return made | {"aside": aside(broker, clock), "sessions": sessions(broker, clock)}
