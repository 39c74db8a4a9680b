import pytest

from harness.clock import Clock
from harness.deliveries import accept, configure
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import SessionLock
from partitionedqueue.model import limits
from partitionedqueue.model.errors import BrokerFault, QueueFull, SessionLockLost


@pytest.fixture
def session(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> SessionLock:
    configure(broker, keys, sessions=True)
    return accept(broker, keys, "s", lock_ms=1000)


def state(broker: BlockingBroker, keys: QueueKeys, session: SessionLock) -> bytes | None:
    return broker.call(calls.get_session_state(keys, session))


def test_a_state_is_kept_and_replaced_and_removed(
    broker: BlockingBroker, keys: QueueKeys, session: SessionLock
) -> None:
    assert state(broker, keys, session) is None
    for value in (b"one", bytes(range(256)), b""):
        broker.call(calls.set_session_state(keys, session, value))
        assert state(broker, keys, session) == value
    broker.call(calls.set_session_state(keys, session, None))
    assert state(broker, keys, session) is None
    broker.call(calls.set_session_state(keys, session, None))


def test_the_next_receiver_finds_it(broker: BlockingBroker, keys: QueueKeys, session: SessionLock) -> None:
    broker.call(calls.set_session_state(keys, session, b"where I was"))
    broker.call(calls.release_session(keys, session))
    assert broker.call(calls.list_sessions(keys)) == ["s"]
    again = accept(broker, keys, "s")
    assert state(broker, keys, again) == b"where I was"
    broker.call(calls.set_session_state(keys, again, None))
    broker.call(calls.release_session(keys, again))
    assert broker.call(calls.list_sessions(keys)) == []


def test_each_session_has_its_own(broker: BlockingBroker, keys: QueueKeys, session: SessionLock) -> None:
    other = accept(broker, keys, "t")
    broker.call(calls.set_session_state(keys, session, b"s"))
    broker.call(calls.set_session_state(keys, other, b"t"))
    assert (state(broker, keys, session), state(broker, keys, other)) == (b"s", b"t")


def test_without_the_lock_it_is_neither_read_nor_changed(
    broker: BlockingBroker, keys: QueueKeys, session: SessionLock, clock: Clock
) -> None:
    broker.call(calls.set_session_state(keys, session, b"mine"))
    clock.advance(1000)
    with pytest.raises(SessionLockLost):
        state(broker, keys, session)
    for value in (b"late", None):
        with pytest.raises(SessionLockLost):
            broker.call(calls.set_session_state(keys, session, value))
    assert state(broker, keys, accept(broker, keys, "s")) == b"mine"


def test_it_is_as_large_as_a_message_can_be_and_no_larger(
    broker: BlockingBroker, keys: QueueKeys, session: SessionLock
) -> None:
    largest = bytes(limits.SESSION_STATE_BYTES_MAX)
    broker.call(calls.set_session_state(keys, session, largest))
    with pytest.raises(BrokerFault, match="BADCALL"):
        broker.call(calls.set_session_state(keys, session, largest + b"x"))
    assert state(broker, keys, session) == largest


def test_it_counts_against_the_quota_and_a_smaller_one_is_always_taken(
    broker: BlockingBroker, keys: QueueKeys, session: SessionLock
) -> None:
    configure(broker, keys, quota_bytes=10_000)
    broker.call(calls.set_session_state(keys, session, bytes(5_000)))
    with pytest.raises(QueueFull):
        broker.call(calls.set_session_state(keys, session, bytes(20_000)))
    assert state(broker, keys, session) == bytes(5_000)
    configure(broker, keys, quota_bytes=100)
    broker.call(calls.set_session_state(keys, session, bytes(4_000)))
    broker.call(calls.set_session_state(keys, session, None))
    broker.call(calls.release_session(keys, session))
    assert broker.call(calls.totals(keys)).charge == 0
