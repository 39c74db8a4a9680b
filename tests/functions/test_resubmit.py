import pytest

from harness.clock import Clock
from harness.deliveries import (
    accept,
    bodies,
    configure,
    delivery_counts,
    fill,
    placed,
    properties_of,
    receive,
    received_bodies,
    send,
    send_one,
    settlements,
    stored,
)
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.operations import SendOperation
from partitionedqueue.model import stored_message
from partitionedqueue.model.errors import BrokerFault, MessageNotFound


def dead(broker: BlockingBroker, keys: QueueKeys, count: int) -> None:
    """Fill the dead-letter queue."""
    send(broker, keys, count)
    while (received := receive(broker, keys, 1000)).runs:
        told = calls.dead_letter(keys, settlements(received), reason="bad", description="very")
        assert broker.call(told) == []


def test_dead_letters_come_back_in_order_with_new_numbers_and_no_deliveries(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    dead(broker, keys, 5)
    clock.advance(1000)
    assert broker.call(calls.resubmit(keys.dead_letters)).count == 5
    received = receive(broker, keys)
    assert received_bodies(received) == [b"message %d" % n for n in range(1, 6)]
    assert delivery_counts(received) == dict.fromkeys(range(6, 11), 1)
    for _, one in placed(received.runs):
        assert properties_of(one) == {}
        assert stored_message.deliveries_before(one) == 0
    (run,) = received.runs
    assert stored_message.enqueued_times(run.first, 5, run.marks) == [clock.now_ms] * 5
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.dead_letters) == (5, 0)


def test_some_are_chosen_by_their_numbers(broker: BlockingBroker, keys: QueueKeys) -> None:
    dead(broker, keys, 5)
    assert broker.call(calls.resubmit(keys.dead_letters, sequences=[4, 2])).count == 2
    assert sorted(received_bodies(receive(broker, keys))) == [b"message 2", b"message 4"]
    assert received_bodies(receive(broker, keys.dead_letters)) == [b"message 1", b"message 3", b"message 5"]


def test_one_that_is_not_ready_there_refuses_all(broker: BlockingBroker, keys: QueueKeys) -> None:
    dead(broker, keys, 3)
    receive(broker, keys.dead_letters, 1)
    for wanted in ([2, 1], [2, 4], [9]):
        with pytest.raises(MessageNotFound):
            broker.call(calls.resubmit(keys.dead_letters, sequences=wanted))
    assert broker.call(calls.totals(keys)).messages == 0


def test_locked_dead_letters_stay(broker: BlockingBroker, keys: QueueKeys) -> None:
    dead(broker, keys, 3)
    receive(broker, keys.dead_letters, 1)
    moved = broker.call(calls.resubmit(keys.dead_letters))
    assert (moved.count, moved.more) == (2, 0)
    assert broker.call(calls.totals(keys.dead_letters)).locked == 1


def test_no_more_than_asked_for_and_what_is_dead_lettered_meanwhile_stays(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    dead(broker, keys, 5)
    first = broker.call(calls.resubmit(keys.dead_letters, most=2))
    assert (first.count, first.upto, first.more) == (2, 5, 1)
    broker.call(calls.dead_letter(keys, settlements(receive(broker, keys))))
    rest = broker.call(calls.resubmit(keys.dead_letters, upto=first.upto))
    assert (rest.count, rest.more) == (3, 0)
    assert broker.call(calls.totals(keys)).dead_letters == 2


def test_many_come_back_in_bounded_calls(broker: BlockingBroker, keys: QueueKeys) -> None:
    dead(broker, keys, 20_000)
    moved = broker.call(calls.resubmit(keys.dead_letters))
    counts = [moved.count]
    while moved.more:
        moved = broker.call(calls.resubmit(keys.dead_letters, upto=moved.upto))
        counts.append(moved.count)
    assert sum(counts) == 20_000
    assert max(counts) <= 1000
    totals = broker.call(calls.totals(keys))
    assert (totals.ready, totals.dead_letters) == (20_000, 0)


def test_they_come_back_to_their_sessions(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    for n in range(4):
        send_one(broker, keys, b"%d" % n, session_id="ab"[n % 2])
    for _ in range(2):
        session = accept(broker, keys)
        received = receive(broker, keys, session=session)
        broker.call(calls.dead_letter(keys, settlements(received), session=session))
        broker.call(calls.release_session(keys, session))
    assert broker.call(calls.resubmit(keys.dead_letters)).count == 4
    assert received_bodies(receive(broker, keys, session=accept(broker, keys, "a"))) == [b"0", b"2"]
    assert received_bodies(receive(broker, keys, session=accept(broker, keys, "b"))) == [b"1", b"3"]


def test_a_full_queue_takes_its_dead_letters_back(broker: BlockingBroker, keys: QueueKeys) -> None:
    dead(broker, keys, 5)
    configure(broker, keys, quota_bytes=1)
    assert broker.call(calls.resubmit(keys.dead_letters)).count == 5


def test_a_message_that_came_back_lives_as_long_as_the_queue_says(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, ttl_ms=1000)
    fill(broker, keys, bodies(1))
    broker.call(calls.dead_letter(keys, settlements(receive(broker, keys))))
    clock.advance(5000)
    broker.call(calls.resubmit(keys.dead_letters))
    clock.advance(999)
    assert len(receive(broker, keys, lock_ms=1).runs) == 1
    clock.advance(1)
    assert receive(broker, keys).runs == []


def test_transfer_dead_letters_go_back_to_the_transfer_queue(broker: BlockingBroker, keys: QueueKeys) -> None:
    broker.call(calls.apply(keys, [SendOperation([stored(b"a")], target="/$Transfer")]))
    transfers = keys.transfers
    broker.call(calls.dead_letter(transfers, settlements(receive(broker, transfers)), reason="nowhere to go"))
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.transfers, totals.transfer_dead_letters) == (0, 0, 1)
    assert broker.call(calls.resubmit(transfers.dead_letters)).count == 1
    assert received_bodies(receive(broker, transfers)) == [b"a"]


def test_what_is_no_dead_letter_queue_is_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    for wrong in (keys, keys.transfers):
        with pytest.raises(MessageNotFound):
            broker.call(calls.resubmit(wrong))
    for most in (0, 1001):
        with pytest.raises(BrokerFault, match="BADCALL"):
            broker.call(calls.resubmit(keys.dead_letters, most=most))
