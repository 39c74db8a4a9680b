"""Scheduled messages: sent now, there at their time, and taken back before."""

import pytest

from harness.clock import Clock
from harness.deliveries import (
    accept,
    bodies,
    configure,
    contents,
    drain,
    emptied,
    fill,
    peeked,
    receive,
    received_bodies,
    send,
    send_one,
    stored,
)
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model import stored_message
from partitionedqueue.model.errors import BrokerFault, MessageNotFound


def test_a_scheduled_message_is_there_at_its_time_and_never_before(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    at = clock.now_ms + 1000
    assert send_one(broker, keys, b"late", scheduled_enqueue_time_ms=at) == 1
    clock.set(at - 1)
    assert receive(broker, keys).runs == []
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.scheduled, totals.ready) == (1, 1, 0)
    clock.set(at)
    assert received_bodies(receive(broker, keys)) == [b"late"]


def test_it_is_numbered_anew_behind_what_came_meanwhile(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send_one(broker, keys, b"late", scheduled_enqueue_time_ms=clock.now_ms + 1000)
    assert send_one(broker, keys, b"soon") == 2
    clock.advance(1000)
    assert received_bodies(receive(broker, keys, 1)) == [b"soon"]
    (late,) = receive(broker, keys).runs
    assert late.first == 3
    assert stored_message.enqueued_times(late.first, 1, late.marks) == [clock.now_ms]


def test_scheduled_messages_come_in_the_order_of_their_times(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    for wait in (30, 10, 50, 20, 40):
        send_one(broker, keys, b"%d" % wait, scheduled_enqueue_time_ms=clock.now_ms + wait)
    clock.advance(100)
    assert emptied(broker, keys) == [b"10", b"20", b"30", b"40", b"50"]


def test_a_time_that_has_passed_is_no_schedule(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send_one(broker, keys, b"a", scheduled_enqueue_time_ms=clock.now_ms - 5)
    send_one(broker, keys, b"b", scheduled_enqueue_time_ms=clock.now_ms)
    assert received_bodies(receive(broker, keys)) == [b"a", b"b"]


def test_scheduled_ones_in_a_batch_keep_their_places_and_the_others_are_ready(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    batch = [
        stored(b"%d" % n, **({"scheduled_enqueue_time_ms": clock.now_ms + 10} if n % 2 else {})) for n in range(1, 7)
    ]
    assert broker.call(calls.send(keys, batch)).first == 1
    assert [number for number, _, _ in peeked(broker, keys, states="s")] == [1, 3, 5]
    assert emptied(broker, keys) == [b"2", b"4", b"6"]
    clock.advance(10)
    assert emptied(broker, keys) == [b"1", b"3", b"5"]
    assert broker.call(calls.totals(keys)).bytes == 0


def test_cancel_takes_a_scheduled_message_back(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    for _ in range(3):
        send_one(broker, keys, scheduled_enqueue_time_ms=clock.now_ms + 1000)
    assert broker.call(calls.cancel_scheduled(keys, [1, 3])) == 1
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.scheduled) == (1, 1)
    clock.advance(1000)
    assert len(emptied(broker, keys)) == 1
    assert broker.call(calls.totals(keys)).bytes == 0


def test_cancel_of_what_is_not_scheduled_takes_nothing(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 1)
    send_one(broker, keys, scheduled_enqueue_time_ms=clock.now_ms + 1000)
    before = contents(broker)
    for wanted in ([1], [2, 1], [2, 99], [2, 2]):
        with pytest.raises(MessageNotFound):
            broker.call(calls.cancel_scheduled(keys, wanted))
    assert contents(broker) == before


def test_what_has_come_due_is_cancelled_no_more(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send_one(broker, keys, scheduled_enqueue_time_ms=clock.now_ms + 1000)
    clock.advance(1000)
    drain(broker, keys, clock.now_ms)
    for wanted in (1, 2):
        with pytest.raises(MessageNotFound):
            broker.call(calls.cancel_scheduled(keys, [wanted]))


def test_a_cancelled_message_twice_is_not_found(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send_one(broker, keys, scheduled_enqueue_time_ms=clock.now_ms + 1000)
    broker.call(calls.cancel_scheduled(keys, [1]))
    with pytest.raises(MessageNotFound):
        broker.call(calls.cancel_scheduled(keys, [1]))


def test_a_scheduled_message_lives_from_the_time_that_it_comes(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send_one(broker, keys, b"x", scheduled_enqueue_time_ms=clock.now_ms + 5_000, time_to_live_ms=1_000)
    clock.advance(5_000)
    drain(broker, keys, clock.now_ms)
    clock.advance(999)
    assert received_bodies(receive(broker, keys)) == [b"x"]


def test_a_scheduled_message_comes_to_its_session(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    configure(broker, keys, sessions=True)
    send_one(broker, keys, b"late", session_id="s", scheduled_enqueue_time_ms=clock.now_ms + 1000)
    assert broker.call(calls.accept_session(keys)).session is None
    clock.advance(1000)
    session = accept(broker, keys)
    assert session.session_id == "s"
    assert received_bodies(receive(broker, keys, session=session)) == [b"late"]


def test_receivers_pass_over_many_scheduled_messages(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    fill(broker, keys, bodies(3000, scheduled_enqueue_time_ms=clock.now_ms + 60_000))
    send_one(broker, keys, b"now")
    received = receive(broker, keys, 1)
    for _ in range(100):
        if received.runs:
            break
        assert received.ask_again_ms <= clock.now_ms
        received = receive(broker, keys, 1)
    assert received_bodies(received) == [b"now"]


def test_nonsense_is_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    for words in (("x",), ("0",), ("-1",), ("1.5",)):
        with pytest.raises(MessageNotFound):
            broker.raw(("FCALL", "pq_cancel_scheduled", 1, keys.state, *words))
    for many in ([], list(range(1, 1002))):
        with pytest.raises(BrokerFault, match="BADCALL"):
            broker.call(calls.cancel_scheduled(keys, many))
