import time

from harness.deliveries import numbers, receive, send, settlements
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model import stored_message


def test_an_empty_queue_gives_nothing(broker: BlockingBroker, keys: QueueKeys) -> None:
    assert receive(broker, keys, 10).runs == []


def test_locked_messages_are_not_received_again(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 10)
    assert numbers(receive(broker, keys, 4)) == [1, 2, 3, 4]
    assert numbers(receive(broker, keys, 10)) == [5, 6, 7, 8, 9, 10]
    assert receive(broker, keys, 10).runs == []


def test_the_lock_lasts_from_the_brokers_now(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1)
    received = receive(broker, keys, 1, lock_ms=60_000)
    assert received.locked_until_ms == received.now_ms + 60_000


def test_receive_and_delete_leaves_nothing(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 600)
    assert numbers(broker.call(calls.receive(keys, most=600, lock_ms=0))) == list(range(1, 601))
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.bytes, totals.last) == (0, 0, 600)
    assert broker.raw(("EXISTS", keys.segment(0), keys.segment(1), keys.segment(2))) == [1]


def test_an_expired_lock_gives_messages_back_to_their_place_and_counts(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 300)
    receive(broker, keys, 2, lock_ms=1)
    time.sleep(0.01)
    received = receive(broker, keys, 300)
    assert numbers(received) == list(range(1, 301))
    counts = {run.first: run.delivery_count for run in received.runs}
    assert counts[1] == 2
    assert counts[3] == 1


def test_a_thousand_expired_locks_come_back_in_order(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1000)
    for _ in range(1000):
        receive(broker, keys, 1, lock_ms=1)
    time.sleep(0.01)
    found: list[int] = []
    for _ in range(1000):
        received = receive(broker, keys, 1000)
        found += numbers(received)
        broker.call(calls.complete(keys, settlements(received)))
        if len(found) == 1000:
            break
    assert sorted(found) == list(range(1, 1001))
    assert broker.call(calls.totals(keys)).messages == 0


def test_every_message_has_the_time_it_was_stored(broker: BlockingBroker, keys: QueueKeys) -> None:
    stored = []
    for n in range(300):
        stored.append(broker.call(calls.send(keys, [b"message %d" % (n + 1)])).enqueued_time_ms)
        if n % 50 == 0:
            time.sleep(0.002)
    found: list[int] = []
    for run in receive(broker, keys, 300).runs:
        found += stored_message.enqueued_times(run.first, len(run.messages), run.marks)
    assert found == stored


def test_large_messages_come_in_replies_of_about_4_mb(broker: BlockingBroker, keys: QueueKeys) -> None:
    broker.pipeline([calls.send(keys, [bytes(250_000)] * 8) for _ in range(8)])
    received = receive(broker, keys, 64)
    count = sum(len(run.messages) for run in received.runs)
    assert 16 <= count <= 33  # the run that reaches 4 MB is the last, and is itself no larger
