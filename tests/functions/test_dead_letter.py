from harness.clock import Clock
from harness.deliveries import (
    accept,
    bodies,
    body_of,
    configure,
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


def test_a_dead_lettered_message_is_in_the_dead_letter_queue_with_the_reason(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    send(broker, keys, 3, application_properties={"colour": "red"})
    received = receive(broker, keys)
    told = calls.dead_letter(
        keys, locked_as(received, [2]), reason="bad", description="very bad", changes={"colour": "black"}
    )
    assert broker.call(told) == []
    ((_, one),) = placed(receive(broker, keys.dead_letters).runs)
    assert body_of(one) == b"message 2"
    assert properties_of(one) == {
        "colour": "black",
        "DeadLetterReason": "bad",
        "DeadLetterErrorDescription": "very bad",
    }
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.locked, totals.dead_letters) == (2, 2, 1)


def test_it_remembers_its_number_its_deliveries_and_when_it_came(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send(broker, keys, 2)
    sent_at = clock.now_ms
    clock.advance(5_000)
    broker.call(calls.abandon(keys, settlements(receive(broker, keys))))
    broker.call(calls.dead_letter(keys, locked_as(receive(broker, keys), [2])))
    (run,) = receive(broker, keys.dead_letters).runs
    assert run.first == 1
    assert run.delivery_count == 1
    assert stored_message.deliveries_before(run.messages[0]) == 2
    assert stored_message.first_sequence_number(run.messages[0]) == 2
    assert stored_message.enqueued_times(run.first, 1, run.marks) == [sent_at]


def test_many_are_dead_lettered_at_once_in_order(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 600)
    assert broker.call(calls.dead_letter(keys, settlements(receive(broker, keys, 600)))) == []
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.dead_letters) == (0, 600)
    assert emptied(broker, keys.dead_letters) == [b"message %d" % n for n in range(1, 601)]


def test_dead_letter_refuses_an_expired_lock(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 1)
    received = receive(broker, keys, lock_ms=1000)
    clock.advance(1000)
    assert broker.call(calls.dead_letter(keys, settlements(received))) == [0]
    assert broker.call(calls.totals(keys)).dead_letters == 0


def test_a_dead_letter_has_no_time_to_live_and_no_schedule(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, dead_letter_expired=True)
    send_one(broker, keys, b"a", time_to_live_ms=1000, scheduled_enqueue_time_ms=clock.now_ms + 10)
    clock.advance(10)
    broker.call(calls.dead_letter(keys, settlements(receive(broker, keys))))
    clock.advance(86_400_000)
    ((_, one),) = placed(receive(broker, keys.dead_letters).runs)
    message = stored_message.decode(one)
    assert (message.time_to_live_ms, message.scheduled_enqueue_time_ms) == (None, None)


def test_the_dead_letters_of_a_session_queue_are_read_without_sessions(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    for n in range(4):
        send_one(broker, keys, b"%d" % n, session_id="st"[n % 2])
    for session_id in "ts":
        session = accept(broker, keys, session_id)
        received = receive(broker, keys, session=session)
        assert broker.call(calls.dead_letter(keys, settlements(received), session=session)) == []
        broker.call(calls.release_session(keys, session))
    assert received_bodies(receive(broker, keys.dead_letters)) == [b"1", b"3", b"0", b"2"]
    assert broker.call(calls.list_sessions(keys)) == []


def test_dead_letters_are_received_settled_and_peeked_like_any_queue(broker: BlockingBroker, keys: QueueKeys) -> None:
    broker.call(calls.send(keys, bodies(4)))
    broker.call(calls.dead_letter(keys, settlements(receive(broker, keys))))
    dead = keys.dead_letters
    assert [body_of(one) for _, _, one in peeked(broker, dead)] == [b"message %d" % n for n in range(1, 5)]
    received = receive(broker, dead, 2)
    assert numbers(received) == [1, 2]
    assert broker.call(calls.complete(dead, locked_as(received, [1]))) == []
    assert broker.call(calls.renew_lock(dead, locked_as(received, [2]))).refused == []
    totals = broker.call(calls.totals(dead))
    assert (totals.messages, totals.locked, totals.last) == (3, 1, 4)
    assert broker.call(calls.totals(keys)).dead_letters == 3
