import time

import pytest

from harness.deliveries import HOUR_MS, locked_as, numbers, receive, send, settlements
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Settlement
from partitionedqueue.model.errors import BrokerFault


def test_complete_removes_messages_and_their_bytes(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 520)
    received = receive(broker, keys, 520)
    assert broker.call(calls.complete(keys, settlements(received))) == []
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.locked, totals.bytes) == (0, 0, 0)


def test_complete_in_any_order_one_by_one(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 300)
    received = receive(broker, keys, 300)
    order = [*range(300, 0, -3), *range(1, 301, 3), *range(2, 301, 3)]
    assert sorted(order) == list(range(1, 301))
    for number in order:
        assert broker.call(calls.complete(keys, locked_as(received, [number]))) == []
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.locked, totals.bytes) == (0, 0, 0)
    assert not broker.raw(("HGET", keys.state, "r1"))[0]


def test_complete_twice_is_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 3)
    received = receive(broker, keys, 3)
    one = locked_as(received, [2])
    assert broker.call(calls.complete(keys, one)) == []
    assert broker.call(calls.complete(keys, one)) == [0]
    assert broker.call(calls.complete(keys, settlements(received))) == [0]
    assert broker.call(calls.totals(keys)).messages == 2


def test_complete_refuses_an_expired_lock_and_keeps_the_message(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1)
    received = receive(broker, keys, 1, lock_ms=1)
    time.sleep(0.01)
    assert broker.call(calls.complete(keys, settlements(received))) == [0]
    assert numbers(receive(broker, keys, 1)) == [1]


def test_a_token_from_before_does_not_settle_the_next_delivery(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1)
    first = receive(broker, keys, 1)
    broker.call(calls.abandon(keys, settlements(first)))
    second = receive(broker, keys, 1)
    assert broker.call(calls.complete(keys, settlements(first))) == [0]
    assert broker.call(calls.complete(keys, settlements(second))) == []


def test_one_refusal_does_not_touch_the_others(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 4)
    received = receive(broker, keys, 4)
    several = [*locked_as(received, [1]), Settlement(99, 2, 2), *locked_as(received, [3])]
    assert broker.call(calls.complete(keys, several)) == [1]
    assert broker.call(calls.totals(keys)).messages == 2


def test_nonsense_is_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 4)
    lock = receive(broker, keys, 2).runs[0].lock
    nonsense = [Settlement(lock, 2, 1), Settlement(lock, 0, 1), Settlement(lock, 1, 3), Settlement(lock, -1, -1)]
    assert broker.call(calls.complete(keys, nonsense)) == [0, 1, 2, 3]


def test_abandon_gives_back_and_counts_and_release_does_not_count(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 4)
    received = receive(broker, keys, 4)
    broker.call(calls.abandon(keys, locked_as(received, [2])))
    broker.call(calls.abandon(keys, locked_as(received, [3]), counted=False))
    again = receive(broker, keys, 4)
    assert [(run.first, run.delivery_count) for run in again.runs] == [(2, 2), (3, 1)]
    assert broker.call(calls.totals(keys)).locked == 4


def test_abandoned_messages_come_before_the_ones_never_delivered(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 10)
    received = receive(broker, keys, 5)
    broker.call(calls.abandon(keys, locked_as(received, [5, 1, 3])))
    assert numbers(receive(broker, keys, 10)) == [1, 3, 5, 6, 7, 8, 9, 10]


def test_renewed_locks_outlive_the_others_of_their_run(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 5)
    received = receive(broker, keys, 5, lock_ms=60)
    assert broker.call(calls.renew_lock(keys, locked_as(received, [2, 4]), lock_ms=HOUR_MS)).refused == []
    time.sleep(0.08)
    assert numbers(receive(broker, keys, 5)) == [1, 3, 5]
    assert broker.call(calls.complete(keys, locked_as(received, [1, 2, 3, 4, 5]))) == [0, 2, 4]
    assert broker.call(calls.totals(keys)).messages == 3


def test_a_single_renewed_lock_expires_in_its_own_time(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 3)
    received = receive(broker, keys, 3, lock_ms=20)
    broker.call(calls.renew_lock(keys, locked_as(received, [2]), lock_ms=80))
    time.sleep(0.04)
    assert numbers(receive(broker, keys, 3)) == [1, 3]
    time.sleep(0.06)
    assert numbers(receive(broker, keys, 3)) == [2]


def test_a_whole_run_is_renewed_and_an_expired_one_is_not(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 2)
    received = receive(broker, keys, 2, lock_ms=50)
    renewed = broker.call(calls.renew_lock(keys, settlements(received), lock_ms=HOUR_MS))
    assert renewed.locked_until_ms > received.locked_until_ms
    time.sleep(0.06)
    assert broker.call(calls.complete(keys, settlements(received))) == []
    assert broker.call(calls.renew_lock(keys, settlements(received), lock_ms=HOUR_MS)).refused == [0]


def test_a_lock_renewed_for_a_shorter_time_comes_back_then(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1)
    received = receive(broker, keys, 1, lock_ms=60_000)
    broker.call(calls.renew_lock(keys, settlements(received), lock_ms=10))
    time.sleep(0.02)
    assert numbers(receive(broker, keys, 1)) == [1]


def test_one_message_of_a_run_keeps_its_lock_when_renewed_for_a_shorter_time(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    send(broker, keys, 2)
    received = receive(broker, keys, 2, lock_ms=60_000)
    broker.call(calls.renew_lock(keys, locked_as(received, [2]), lock_ms=1))
    time.sleep(0.01)
    assert broker.call(calls.complete(keys, locked_as(received, [2]))) == []


def test_too_many_or_broken_settlements_are_refused_before_anything_is_done(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    send(broker, keys, 3)
    received = receive(broker, keys, 3)
    before = broker.raw(("HGETALL", keys.state))
    many = locked_as(received, [1]) + [Settlement(1, 2, 2)] * 1000
    for call in (calls.abandon(keys, many), calls.complete(keys, many)):
        with pytest.raises(BrokerFault, match="up to 1000 triples"):
            broker.call(call)
    for words in (("1", "1", "1", "un", "1", "1"), ("1", "1"), ("1", "1", "x")):
        with pytest.raises(BrokerFault, match="BADCALL"):
            broker.raw(("FCALL", "pq_complete", 1, keys.state, *words))
    assert broker.raw(("HGETALL", keys.state)) == before
    assert broker.call(calls.complete(keys, settlements(received))) == []


def test_totals_count_what_has_expired_as_ready(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 5)
    receive(broker, keys, 3, lock_ms=1)
    time.sleep(0.01)
    totals = broker.call(calls.totals(keys))
    assert (totals.ready, totals.locked) == (5, 0)
