import pytest

from harness.clock import Clock
from harness.deliveries import LOCK_MS, accept, configure, locked_as, numbers, receive, send, send_one, settlements
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Settlement
from partitionedqueue.model.errors import BrokerFault


def test_renewed_locks_outlive_the_others_of_their_run(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 5)
    received = receive(broker, keys, 5, lock_ms=60)
    assert broker.call(calls.renew_lock(keys, locked_as(received, [2, 4]), lock_ms=LOCK_MS)).refused == []
    clock.advance(60)
    assert numbers(receive(broker, keys, 5)) == [1, 3, 5]
    assert broker.call(calls.complete(keys, locked_as(received, [1, 2, 3, 4, 5]))) == [0, 2, 4]
    assert broker.call(calls.totals(keys)).messages == 3


def test_a_single_renewed_lock_expires_in_its_own_time(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 3)
    received = receive(broker, keys, 3, lock_ms=20)
    broker.call(calls.renew_lock(keys, locked_as(received, [2]), lock_ms=80))
    clock.advance(79)
    assert numbers(receive(broker, keys, 3)) == [1, 3]
    clock.advance(1)
    assert numbers(receive(broker, keys, 3)) == [2]


def test_a_whole_run_is_renewed_and_an_expired_one_is_not(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send(broker, keys, 2)
    received = receive(broker, keys, 2, lock_ms=50)
    renewed = broker.call(calls.renew_lock(keys, settlements(received), lock_ms=1000))
    assert renewed.locked_until_ms == clock.now_ms + 1000
    clock.advance(60)
    assert broker.call(calls.renew_lock(keys, settlements(received), lock_ms=1000)).refused == []
    clock.advance(1000)
    assert broker.call(calls.renew_lock(keys, settlements(received), lock_ms=1000)).refused == [0]
    assert numbers(receive(broker, keys)) == [1, 2]


def test_renew_lasts_as_the_queue_says_where_the_receiver_does_not(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, lock_ms=7_000)
    send(broker, keys, 1)
    received = receive(broker, keys, lock_ms=5_000)
    assert broker.call(calls.renew_lock(keys, settlements(received))).locked_until_ms == clock.now_ms + 7_000


def test_a_lock_is_renewed_any_number_of_times_beyond_twenty_minutes(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send(broker, keys, 2)
    received = receive(broker, keys, 2)
    for _ in range(20):
        clock.advance(299_999)
        assert broker.call(calls.renew_lock(keys, settlements(received), lock_ms=LOCK_MS)).refused == []
    assert broker.call(calls.complete(keys, settlements(received))) == []


def test_a_lock_renewed_for_a_shorter_time_comes_back_then(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send(broker, keys, 1)
    received = receive(broker, keys, 1, lock_ms=60_000)
    broker.call(calls.renew_lock(keys, settlements(received), lock_ms=10))
    clock.advance(10)
    assert numbers(receive(broker, keys, 1)) == [1]


def test_one_refusal_does_not_touch_the_others(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 2)
    received = receive(broker, keys, 2, lock_ms=1000)
    several = [*locked_as(received, [1]), Settlement(99, 2, 2)]
    assert broker.call(calls.renew_lock(keys, several, lock_ms=5000)).refused == [1]
    clock.advance(1000)
    assert numbers(receive(broker, keys)) == [2]


def test_what_is_held_in_a_session_is_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    send_one(broker, keys, session_id="s")
    received = receive(broker, keys, session=accept(broker, keys, "s"))
    assert broker.call(calls.renew_lock(keys, settlements(received))).refused == [0]


def test_a_lock_of_no_time_or_too_much_is_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1)
    received = receive(broker, keys)
    for lock_ms in (0, -2, 300_001):
        with pytest.raises(BrokerFault, match="BADCALL"):
            broker.call(calls.renew_lock(keys, settlements(received), lock_ms=lock_ms))
