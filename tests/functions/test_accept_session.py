import pytest

from harness.clock import Clock
from harness.deliveries import (
    accept,
    configure,
    delivery_counts,
    drain,
    receive,
    received_bodies,
    send_one,
    settlements,
)
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model.errors import EntityDisabled, SessionCannotBeLocked, SessionLockLost, SessionsNotSupported
from partitionedqueue.model.queue_spec import QueueStatus


@pytest.fixture(autouse=True)
def sessions(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)


def send_to(broker: BlockingBroker, keys: QueueKeys, session_ids: str) -> None:
    """One message to each of these sessions, in this order; its body names its session."""
    for session_id in session_ids:
        send_one(broker, keys, session_id.encode(), session_id=session_id)


def test_the_next_session_is_that_whose_first_waiting_message_is_the_oldest(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    send_to(broker, keys, "bacab")
    assert [accept(broker, keys).session_id for _ in range(3)] == ["b", "a", "c"]
    assert broker.call(calls.accept_session(keys)).session is None


def test_a_session_that_was_read_goes_behind_those_that_wait_longer(broker: BlockingBroker, keys: QueueKeys) -> None:
    send_to(broker, keys, "abab")
    session = accept(broker, keys)
    broker.call(calls.complete(keys, settlements(receive(broker, keys, 1, session=session)), session=session))
    broker.call(calls.release_session(keys, session))
    assert accept(broker, keys).session_id == "b"


def test_an_accepted_session_is_nobody_elses(broker: BlockingBroker, keys: QueueKeys) -> None:
    send_to(broker, keys, "ab")
    accept(broker, keys, "a")
    with pytest.raises(SessionCannotBeLocked):
        accept(broker, keys, "a")
    assert accept(broker, keys).session_id == "b"
    assert broker.call(calls.totals(keys)).sessions_locked == 2


def test_a_session_without_messages_is_accepted_by_name_only(broker: BlockingBroker, keys: QueueKeys) -> None:
    assert broker.call(calls.accept_session(keys)).session is None
    session = accept(broker, keys, "new")
    assert receive(broker, keys, session=session).runs == []
    send_to(broker, keys, ["new"])  # type: ignore[arg-type]  # an id of several letters
    assert received_bodies(receive(broker, keys, session=session)) == [b"new"]


def test_the_lock_lasts_from_the_brokers_now(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    configure(broker, keys, lock_ms=9_000)
    send_to(broker, keys, "ab")
    accepted = broker.call(calls.accept_session(keys, "a", lock_ms=5_000))
    assert (accepted.locked_until_ms, accepted.now_ms) == (clock.now_ms + 5_000, clock.now_ms)
    assert broker.call(calls.accept_session(keys)).locked_until_ms == clock.now_ms + 9_000


def test_an_expired_session_is_accepted_anew_and_what_was_held_counts(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send_to(broker, keys, "aaa")
    late = accept(broker, keys, "a", lock_ms=1000)
    receive(broker, keys, 2, session=late)
    clock.advance(1000)
    quick = accept(broker, keys)
    assert quick.session_id == "a"
    assert quick.lock != late.lock
    assert delivery_counts(receive(broker, keys, session=quick)) == {1: 2, 2: 2, 3: 1}
    with pytest.raises(SessionLockLost):
        receive(broker, keys, session=late)


def test_an_expired_session_is_accepted_by_name(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send_to(broker, keys, "aa")
    receive(broker, keys, 1, session=accept(broker, keys, "a", lock_ms=1000))
    clock.advance(999)
    with pytest.raises(SessionCannotBeLocked):
        accept(broker, keys, "a")
    clock.advance(1)
    assert received_bodies(receive(broker, keys, session=accept(broker, keys, "a"))) == [b"a", b"a"]


def test_a_session_whose_messages_are_all_deferred_or_gone_is_not_next(broker: BlockingBroker, keys: QueueKeys) -> None:
    send_to(broker, keys, "ab")
    session = accept(broker, keys, "a")
    broker.call(calls.defer(keys, settlements(receive(broker, keys, session=session)), session=session))
    broker.call(calls.release_session(keys, session))
    assert accept(broker, keys).session_id == "b"
    assert broker.call(calls.accept_session(keys)).session is None


def test_a_session_whose_oldest_message_has_expired_or_was_purged_goes_by_the_next_one(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send_one(broker, keys, session_id="a", time_to_live_ms=10)
    send_to(broker, keys, "cba")
    clock.advance(10)
    drain(broker, keys, clock.now_ms)
    broker.call(calls.purge(keys, upto=2))
    assert [accept(broker, keys).session_id for _ in range(2)] == ["b", "a"]
    assert broker.call(calls.accept_session(keys)).session is None


def test_where_none_is_available_it_says_from_when_to_ask_again(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    assert broker.call(calls.accept_session(keys)).ask_again_ms == -1
    send_to(broker, keys, "a")
    accept(broker, keys, "a", lock_ms=2_000)
    nothing = broker.call(calls.accept_session(keys))
    assert (nothing.session, nothing.ask_again_ms) == (None, clock.now_ms + 2_000)


def test_thousands_of_sessions_are_accepted_in_order(broker: BlockingBroker, keys: QueueKeys) -> None:
    for n in range(2000):
        send_one(broker, keys, session_id=f"session {n * 7919 % 2000}")
    found = [accept(broker, keys).session_id for _ in range(2000)]
    assert found == [f"session {n * 7919 % 2000}" for n in range(2000)]


def test_a_queue_without_sessions_and_a_disabled_one_refuse(broker: BlockingBroker) -> None:
    plain, disabled = QueueKeys("plain"), QueueKeys("disabled")
    configure(broker, plain)
    configure(broker, disabled, sessions=True, status=QueueStatus.RECEIVE_DISABLED)
    for session_id in (None, "", "s"):
        with pytest.raises(SessionsNotSupported):
            accept(broker, plain, session_id)
        with pytest.raises(EntityDisabled):
            accept(broker, disabled, session_id)


def test_session_ids_of_any_text_are_taken(broker: BlockingBroker, keys: QueueKeys) -> None:
    ids = ["\u00e4\u6f22\U0001f600" * 30, " ", "a/b:c", "$DeadLetterQueue", "x" * 128, "1", "0", ""]
    for session_id in ids:
        send_one(broker, keys, session_id.encode(), session_id=session_id)
    assert [accept(broker, keys).session_id for _ in ids] == ids
