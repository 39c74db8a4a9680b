import pytest

from harness.clock import Clock
from harness.deliveries import (
    accept,
    configure,
    contents,
    locked_as,
    numbers,
    receive,
    received_bodies,
    send,
    send_one,
    settlements,
)
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model.errors import BrokerFault, EntityDisabled, MessageNotFound, SessionLockLost, SessionRequired
from partitionedqueue.model.queue_spec import QueueStatus


def deferred(broker: BlockingBroker, keys: QueueKeys, count: int) -> None:
    """Fill a queue with deferred messages."""
    send(broker, keys, count)
    broker.call(calls.defer(keys, settlements(receive(broker, keys, count))))


def test_deferred_messages_come_by_their_numbers_in_the_order_asked_for(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    deferred(broker, keys, 5)
    assert sorted(numbers(broker.call(calls.receive_deferred(keys, [4, 2])))) == [2, 4]
    totals = broker.call(calls.totals(keys))
    assert (totals.deferred, totals.locked) == (3, 2)


def test_what_is_not_deferred_is_not_found_and_nothing_is_locked(broker: BlockingBroker, keys: QueueKeys) -> None:
    deferred(broker, keys, 2)
    send(broker, keys, 1)
    broker.call(calls.receive_deferred(keys, [2]))
    before = contents(broker)
    for wanted in ([1, 2], [1, 3], [1, 99], [99]):
        with pytest.raises(MessageNotFound):
            broker.call(calls.receive_deferred(keys, wanted))
    assert contents(broker) == before


def test_a_number_asked_for_twice_is_not_locked_twice(broker: BlockingBroker, keys: QueueKeys) -> None:
    deferred(broker, keys, 2)
    with pytest.raises(MessageNotFound):
        broker.call(calls.receive_deferred(keys, [1, 1]))
    totals = broker.call(calls.totals(keys))
    assert (totals.deferred, totals.locked) == (2, 0)


def test_a_deferred_message_is_settled_like_any_other(broker: BlockingBroker, keys: QueueKeys) -> None:
    deferred(broker, keys, 4)
    received = broker.call(calls.receive_deferred(keys, [1, 2, 3]))
    assert broker.call(calls.complete(keys, locked_as(received, [1]))) == []
    assert broker.call(calls.dead_letter(keys, locked_as(received, [2]), reason="bad")) == []
    assert broker.call(calls.defer(keys, locked_as(received, [3]))) == []
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.deferred, totals.locked, totals.dead_letters) == (2, 2, 0, 1)


def test_an_abandoned_one_is_deferred_again(broker: BlockingBroker, keys: QueueKeys) -> None:
    deferred(broker, keys, 1)
    received = broker.call(calls.receive_deferred(keys, [1]))
    assert broker.call(calls.abandon(keys, settlements(received))) == []
    assert receive(broker, keys).runs == []
    assert numbers(broker.call(calls.receive_deferred(keys, [1]))) == [1]


def test_one_is_renewed_under_its_own_lock(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    deferred(broker, keys, 2)
    received = broker.call(calls.receive_deferred(keys, [1, 2], lock_ms=1000))
    clock.advance(900)
    renewed = broker.call(calls.renew_lock(keys, locked_as(received, [2]), lock_ms=1000))
    assert (renewed.locked_until_ms, renewed.refused) == (clock.now_ms + 1000, [])
    clock.advance(200)
    assert broker.call(calls.complete(keys, locked_as(received, [1, 2]))) == [0]


def test_one_whose_lock_expires_is_deferred_again(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    deferred(broker, keys, 1)
    received = broker.call(calls.receive_deferred(keys, [1], lock_ms=1000))
    assert received.locked_until_ms == clock.now_ms + 1000
    clock.advance(1000)
    assert receive(broker, keys).runs == []
    assert broker.call(calls.complete(keys, settlements(received))) == [0]
    assert numbers(broker.call(calls.receive_deferred(keys, [1]))) == [1]


def test_receive_and_delete_of_deferred_messages(broker: BlockingBroker, keys: QueueKeys) -> None:
    deferred(broker, keys, 3)
    assert numbers(broker.call(calls.receive_deferred(keys, [1, 3], lock_ms=0))) == [1, 3]
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.deferred, totals.bytes) == (1, 1, totals.bytes)


def test_a_message_of_another_session_is_not_found(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    for session_id in "st":
        send_one(broker, keys, session_id.encode(), session_id=session_id)
    s, t = accept(broker, keys, "s"), accept(broker, keys, "t")
    broker.call(calls.defer(keys, settlements(receive(broker, keys, session=s)), session=s))
    with pytest.raises(MessageNotFound):
        broker.call(calls.receive_deferred(keys, [1], session=t))
    with pytest.raises(SessionRequired):
        broker.call(calls.receive_deferred(keys, [1]))
    assert received_bodies(broker.call(calls.receive_deferred(keys, [1], session=s))) == [b"s"]


def test_under_a_lost_session_lock_it_is_refused(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    configure(broker, keys, sessions=True)
    send_one(broker, keys, session_id="s")
    session = accept(broker, keys, "s", lock_ms=1000)
    broker.call(calls.defer(keys, settlements(receive(broker, keys, session=session)), session=session))
    clock.advance(1000)
    with pytest.raises(SessionLockLost):
        broker.call(calls.receive_deferred(keys, [1], session=session))


def test_an_expired_deferred_message_is_not_found(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    configure(broker, keys, dead_letter_expired=True)
    send_one(broker, keys, b"a", time_to_live_ms=1000)
    send_one(broker, keys, b"b")
    broker.call(calls.defer(keys, settlements(receive(broker, keys))))
    clock.advance(1000)
    with pytest.raises(MessageNotFound):
        broker.call(calls.receive_deferred(keys, [1]))
    assert received_bodies(broker.call(calls.receive_deferred(keys, [2]))) == [b"b"]


def test_a_disabled_queue_gives_none(broker: BlockingBroker, keys: QueueKeys) -> None:
    deferred(broker, keys, 1)
    configure(broker, keys, status=QueueStatus.RECEIVE_DISABLED)
    with pytest.raises(EntityDisabled):
        broker.call(calls.receive_deferred(keys, [1]))


def test_nonsense_is_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    deferred(broker, keys, 2)
    for words in (("", 0, 1000), ("", 0, 300_001, 1), ("", 0, "x", 1)):
        with pytest.raises(BrokerFault, match="BADCALL"):
            broker.raw(("FCALL", "pq_receive_deferred", 1, keys.state, *map(str, words)))
    for number in ("x", "0", "1.5"):
        with pytest.raises(MessageNotFound):
            broker.raw(("FCALL", "pq_receive_deferred", 1, keys.state, "", "0", "1000", number))
    with pytest.raises(BrokerFault, match="BADCALL"):
        broker.call(calls.receive_deferred(keys, list(range(1, 1002))))
