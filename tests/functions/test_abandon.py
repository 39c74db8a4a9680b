import pytest

from harness.clock import Clock
from harness.deliveries import (
    accept,
    configure,
    delivery_counts,
    emptied,
    locked_as,
    numbers,
    peeked,
    placed,
    properties_of,
    receive,
    received_bodies,
    send,
    send_one,
    settlements,
)
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model import stored_message
from partitionedqueue.model.amqp_types import encode_value
from partitionedqueue.model.errors import BrokerFault
from partitionedqueue.model.stored_message import encode_changes


def test_abandon_gives_back_and_counts_and_release_does_not_count(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 4)
    received = receive(broker, keys, 4)
    broker.call(calls.abandon(keys, locked_as(received, [2])))
    broker.call(calls.abandon(keys, locked_as(received, [3]), counted=False))
    assert delivery_counts(receive(broker, keys, 4)) == {2: 2, 3: 1}
    assert broker.call(calls.totals(keys)).locked == 4


def test_abandoned_messages_come_before_the_ones_never_delivered(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 10)
    received = receive(broker, keys, 5)
    broker.call(calls.abandon(keys, locked_as(received, [5, 1, 3])))
    assert numbers(receive(broker, keys, 10)) == [1, 3, 5, 6, 7, 8, 9, 10]


def test_abandon_refuses_an_expired_lock(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 1)
    received = receive(broker, keys, lock_ms=1000)
    clock.advance(1000)
    assert broker.call(calls.abandon(keys, settlements(received))) == [0]
    assert delivery_counts(receive(broker, keys)) == {1: 2}


def test_abandon_changes_application_properties(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 3, application_properties={"colour": "red", "size": 1})
    received = receive(broker, keys)
    changes = encode_changes({"colour": "blue", "size": None, "taste": "sour"})
    broker.call(calls.abandon(keys, locked_as(received, [2]), changes=changes))
    again = receive(broker, keys)
    assert numbers(again) == [2]
    assert properties_of(placed(again.runs)[0][1]) == {"colour": "blue", "taste": "sour"}


def test_later_changes_win_and_bytes_are_counted_exactly(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 2, application_properties={"a": 1})
    for n in range(5):
        received = receive(broker, keys, 1)
        broker.call(calls.abandon(keys, settlements(received), changes=encode_changes({"b": n})))
    shown = peeked(broker, keys)
    assert [properties_of(one) for _, _, one in shown] == [{"a": 1, "b": 4}, {"a": 1}]
    assert broker.call(calls.totals(keys)).bytes == sum(len(one) for _, _, one in shown)
    emptied(broker, keys)
    assert broker.call(calls.totals(keys)).bytes == 0


def test_changes_that_are_no_map_are_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1)
    received = receive(broker, keys)
    for bad in (b"x", encode_value("text")):
        with pytest.raises(BrokerFault, match="BADCALL"):
            broker.call(calls.abandon(keys, settlements(received), changes=bad))
    assert broker.call(calls.complete(keys, settlements(received))) == []


def test_abandon_at_the_last_delivery_allowed_dead_letters(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, max_deliveries=3)
    send(broker, keys, 2)
    for count in (1, 2, 3):
        received = receive(broker, keys, 1)
        assert delivery_counts(received) == {1: count}
        broker.call(calls.abandon(keys, settlements(received)))
    assert numbers(receive(broker, keys)) == [2]
    dead = receive(broker, keys.dead_letters)
    ((_, one),) = placed(dead.runs)
    assert properties_of(one)["DeadLetterReason"] == "MaxDeliveryCountExceeded"
    assert properties_of(one)["DeadLetterErrorDescription"]
    assert stored_message.deliveries_before(one) == 3
    assert stored_message.first_sequence_number(one) == 1


def test_a_release_never_dead_letters(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, max_deliveries=1)
    send(broker, keys, 1)
    for _ in range(5):
        broker.call(calls.abandon(keys, settlements(receive(broker, keys)), counted=False))
    assert delivery_counts(receive(broker, keys)) == {1: 1}


def test_an_expired_lock_at_the_last_delivery_allowed_dead_letters(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, max_deliveries=2)
    send(broker, keys, 300)
    for _ in range(2):
        assert len(placed(receive(broker, keys, 300, lock_ms=1000).runs)) == 300
        clock.advance(1000)
    assert receive(broker, keys, 300).runs == []
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.dead_letters) == (0, 300)


def test_in_a_dead_letter_queue_nothing_is_dead_lettered_for_its_deliveries(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    configure(broker, keys, max_deliveries=1)
    send(broker, keys, 1)
    broker.call(calls.abandon(keys, settlements(receive(broker, keys))))
    for count in (1, 2, 3):
        received = receive(broker, keys.dead_letters)
        assert delivery_counts(received) == {1: count}
        broker.call(calls.abandon(keys.dead_letters, settlements(received)))


def test_abandon_in_a_session_gives_back_to_its_place(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    for n in range(6):
        send_one(broker, keys, b"%d" % n, session_id="ab"[n % 2])
    session = accept(broker, keys, "a")
    received = receive(broker, keys, 2, session=session)
    broker.call(calls.abandon(keys, locked_as(received, [1]), session=session))
    again = receive(broker, keys, session=session)
    assert received_bodies(again) == [b"0", b"4"]
    assert delivery_counts(again) == {1: 2, 5: 1}


def test_neither_counted_nor_uncounted_is_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    with pytest.raises(BrokerFault, match="BADCALL"):
        broker.raw(("FCALL", "pq_abandon", 1, keys.state, "", 0, "perhaps", "", 1, 1, 1))
