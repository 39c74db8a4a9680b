from typing import Any

import pytest

from harness import consistency
from harness.clock import Clock
from harness.deliveries import (
    accept,
    configure,
    delivery_counts,
    fill,
    locked_as,
    receive,
    received_bodies,
    send_one,
    settlements,
    stored,
)
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model.errors import SessionLockLost


@pytest.fixture(autouse=True)
def sessions(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True, max_deliveries=2)


def test_what_was_held_goes_back_to_its_place_uncounted(broker: BlockingBroker, keys: QueueKeys) -> None:
    for n in range(5):
        send_one(broker, keys, b"%d" % n, session_id="s")
    for _ in range(4):
        session = accept(broker, keys)
        received = receive(broker, keys, 3, session=session)
        assert delivery_counts(received) == {1: 1, 2: 1, 3: 1}
        assert broker.call(calls.release_session(keys, session)) == 1
    session = accept(broker, keys)
    assert received_bodies(receive(broker, keys, session=session)) == [b"0", b"1", b"2", b"3", b"4"]


def test_what_was_settled_in_part_goes_back_without_what_has_gone(broker: BlockingBroker, keys: QueueKeys) -> None:
    for n in range(5):
        send_one(broker, keys, b"%d" % n, session_id="s")
    session = accept(broker, keys)
    received = receive(broker, keys, 4, session=session)
    broker.call(calls.complete(keys, locked_as(received, [2]), session=session))
    broker.call(calls.defer(keys, locked_as(received, [3]), session=session))
    broker.call(calls.release_session(keys, session))
    assert received_bodies(receive(broker, keys, session=accept(broker, keys))) == [b"0", b"3", b"4"]
    assert broker.call(calls.totals(keys)).deferred == 1


def test_a_deferred_message_that_was_held_is_deferred_again(broker: BlockingBroker, keys: QueueKeys) -> None:
    send_one(broker, keys, session_id="s")
    session = accept(broker, keys)
    broker.call(calls.defer(keys, settlements(receive(broker, keys, session=session)), session=session))
    broker.call(calls.receive_deferred(keys, [1], session=session))
    broker.call(calls.release_session(keys, session))
    totals = broker.call(calls.totals(keys))
    assert (totals.deferred, totals.locked, totals.ready) == (1, 0, 0)


def test_a_released_lock_is_worth_nothing(broker: BlockingBroker, keys: QueueKeys) -> None:
    send_one(broker, keys, session_id="s")
    session = accept(broker, keys)
    received = receive(broker, keys, session=session)
    broker.call(calls.release_session(keys, session))
    several: list[Call[Any]] = [
        calls.release_session(keys, session),
        calls.renew_session(keys, session),
        calls.complete(keys, settlements(received), session=session),
    ]
    for call in several:
        with pytest.raises(SessionLockLost):
            broker.call(call)
    again = accept(broker, keys)
    assert broker.call(calls.complete(keys, settlements(received), session=again)) == [0]


def test_an_expired_lock_is_not_released(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send_one(broker, keys, session_id="s")
    session = accept(broker, keys, "s", lock_ms=1000)
    clock.advance(1000)
    with pytest.raises(SessionLockLost):
        broker.call(calls.release_session(keys, session))


def test_a_session_without_messages_and_state_is_forgotten(broker: BlockingBroker, keys: QueueKeys) -> None:
    session = accept(broker, keys, "empty")
    assert broker.call(calls.list_sessions(keys)) == ["empty"]
    broker.call(calls.release_session(keys, session))
    assert broker.call(calls.list_sessions(keys)) == []
    totals = broker.call(calls.totals(keys))
    assert (totals.sessions, totals.sessions_locked, totals.charge) == (0, 0, 0)


def test_a_thousand_messages_held_one_by_one_go_back_at_once(broker: BlockingBroker, keys: QueueKeys) -> None:
    fill(broker, keys, [stored(b"%d" % n, session_id="s") for n in range(1000)])
    session = accept(broker, keys)
    for _ in range(1000):
        receive(broker, keys, 1, session=session)
    broker.call(calls.release_session(keys, session))
    totals = broker.call(calls.totals(keys))
    assert (totals.locked, totals.ready, totals.sessions_locked) == (0, 1000, 0)
    session = accept(broker, keys)
    assert received_bodies(receive(broker, keys, 1000, session=session)) == [b"%d" % n for n in range(1000)]


def test_a_session_whose_first_messages_have_gone_stands_where_the_next_one_does(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    """Its messages lie apart, so many that those between the first and the last ones are kept by themselves."""
    for n in range(80):
        send_one(broker, keys, session_id="ab"[n % 2])
    session = accept(broker, keys, "a")
    assert len(received_bodies(receive(broker, keys, 16, lock_ms=0, session=session))) == 16
    broker.call(calls.release_session(keys, session))
    consistency.check(broker, keys.state, sessions=True)
