from harness.clock import Clock
from harness.deliveries import (
    accept,
    configure,
    delivery_counts,
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
from partitionedqueue.model.stored_message import encode_changes


def test_a_deferred_message_is_not_received_in_order_any_more(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 5)
    received = receive(broker, keys, 3)
    assert broker.call(calls.defer(keys, locked_as(received, [2]))) == []
    broker.call(calls.abandon(keys, locked_as(received, [1, 3])))
    assert numbers(receive(broker, keys)) == [1, 3, 4, 5]
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.deferred, totals.locked) == (5, 1, 4)


def test_a_deferred_message_is_shown_as_deferred(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 3)
    broker.call(calls.defer(keys, locked_as(receive(broker, keys), [2])))
    assert [(number, state) for number, state, _ in peeked(broker, keys)] == [(1, 0), (2, 1), (3, 0)]
    assert [number for number, _, _ in peeked(broker, keys, states="d")] == [2]


def test_defer_refuses_an_expired_lock(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 1)
    received = receive(broker, keys, lock_ms=1000)
    clock.advance(1000)
    assert broker.call(calls.defer(keys, settlements(received))) == [0]
    assert numbers(receive(broker, keys)) == [1]


def test_defer_changes_application_properties(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1)
    received = receive(broker, keys)
    broker.call(calls.defer(keys, settlements(received), changes=encode_changes({"later": "yes"})))
    again = broker.call(calls.receive_deferred(keys, [1]))
    assert properties_of(placed(again.runs)[0][1]) == {"later": "yes"}


def test_whole_runs_over_several_segments_are_deferred(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 600)
    received = receive(broker, keys, 600)
    assert broker.call(calls.defer(keys, settlements(received))) == []
    assert broker.call(calls.totals(keys)).deferred == 600
    assert numbers(broker.call(calls.receive_deferred(keys, list(range(1, 601))))) == list(range(1, 601))


def test_a_message_deferred_again_counts_its_deliveries(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1)
    first = receive(broker, keys)
    broker.call(calls.abandon(keys, settlements(first)))
    broker.call(calls.defer(keys, settlements(receive(broker, keys))))
    again = broker.call(calls.receive_deferred(keys, [1]))
    count = delivery_counts(again)[1]
    broker.call(calls.abandon(keys, settlements(again)))
    assert delivery_counts(broker.call(calls.receive_deferred(keys, [1]))) == {1: count + 1}


def test_defer_in_a_session_and_receive_from_there(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    for n in range(3):
        send_one(broker, keys, b"%d" % n, session_id="s")
    session = accept(broker, keys, "s")
    received = receive(broker, keys, session=session)
    assert broker.call(calls.defer(keys, locked_as(received, [1]), session=session)) == []
    again = broker.call(calls.receive_deferred(keys, [1], session=session))
    assert received_bodies(again) == [b"0"]
    assert broker.call(calls.complete(keys, settlements(again), session=session)) == []


def test_in_a_dead_letter_queue_messages_are_deferred_too(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 2)
    broker.call(calls.dead_letter(keys, settlements(receive(broker, keys))))
    dead = keys.dead_letters
    assert broker.call(calls.defer(dead, locked_as(receive(broker, dead), [1]))) == []
    assert received_bodies(broker.call(calls.receive_deferred(dead, [1]))) == [b"message 1"]
