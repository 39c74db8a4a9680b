import pytest

from harness.clock import Clock
from harness.deliveries import accept, configure, receive, send_one, settlements
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import SessionLock
from partitionedqueue.model.errors import BrokerFault, SessionLockLost, SessionsNotSupported


@pytest.fixture
def session(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> SessionLock:
    """A session with a message, accepted for a second."""
    configure(broker, keys, sessions=True)
    send_one(broker, keys, session_id="s")
    return accept(broker, keys, "s", lock_ms=1000)


def test_renewing_keeps_the_session_and_what_is_held_in_it(
    broker: BlockingBroker, keys: QueueKeys, session: SessionLock, clock: Clock
) -> None:
    received = receive(broker, keys, session=session)
    for _ in range(30):
        clock.advance(999)
        assert broker.call(calls.renew_session(keys, session, lock_ms=1000)) == clock.now_ms + 1000
    assert broker.call(calls.complete(keys, settlements(received), session=session)) == []


def test_the_queues_own_lock_duration_is_taken_where_none_is_said(
    broker: BlockingBroker, keys: QueueKeys, session: SessionLock, clock: Clock
) -> None:
    configure(broker, keys, lock_ms=77_000)
    assert broker.call(calls.renew_session(keys, session)) == clock.now_ms + 77_000


def test_a_shorter_renewal_ends_sooner(
    broker: BlockingBroker, keys: QueueKeys, session: SessionLock, clock: Clock
) -> None:
    broker.call(calls.renew_session(keys, session, lock_ms=10))
    clock.advance(10)
    with pytest.raises(SessionLockLost):
        receive(broker, keys, session=session)
    assert accept(broker, keys).session_id == "s"


def test_an_expired_or_foreign_lock_is_not_renewed(
    broker: BlockingBroker, keys: QueueKeys, session: SessionLock, clock: Clock
) -> None:
    for other in (SessionLock("s", session.lock + 1), SessionLock("t", session.lock), SessionLock("s", 0)):
        with pytest.raises(SessionLockLost):
            broker.call(calls.renew_session(keys, other))
    clock.advance(1000)
    with pytest.raises(SessionLockLost):
        broker.call(calls.renew_session(keys, session))


def test_a_queue_without_sessions_and_nonsense_are_refused(
    broker: BlockingBroker, keys: QueueKeys, session: SessionLock
) -> None:
    with pytest.raises(SessionsNotSupported):
        broker.call(calls.renew_session(QueueKeys("plain"), session))
    for lock_ms in (0, -2, 300_001):
        with pytest.raises(BrokerFault, match="BADCALL"):
            broker.call(calls.renew_session(keys, session, lock_ms=lock_ms))
