import pytest

from harness.deliveries import bodies, numbers, receive
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Settlement
from partitionedqueue.model.errors import QueueFull, SendForgotten


def test_send_numbers_a_batch_without_gaps_over_segments(broker: BlockingBroker, keys: QueueKeys) -> None:
    firsts = [broker.call(calls.send(keys, bodies(100, start))).first for start in range(1, 1001, 100)]
    assert firsts == list(range(1, 1001, 100))
    assert numbers(receive(broker, keys, 1000)) == list(range(1, 1001))


def test_one_batch_may_span_many_segments(broker: BlockingBroker, keys: QueueKeys) -> None:
    broker.call(calls.send(keys, bodies(5000)))
    assert numbers(receive(broker, keys, 1000)) == list(range(1, 1001))


def test_a_repeated_send_is_stored_once(broker: BlockingBroker, keys: QueueKeys) -> None:
    assert not broker.call(calls.send(keys, [b"a"], sender="s", number=1)).duplicate
    assert broker.call(calls.send(keys, [b"a"], sender="s", number=1)).duplicate
    assert not broker.call(calls.send(keys, [b"a"], sender="other", number=1)).duplicate
    assert broker.call(calls.totals(keys)).messages == 2


def test_a_send_that_was_passed_over_is_still_stored(broker: BlockingBroker, keys: QueueKeys) -> None:
    broker.call(calls.send(keys, [b"a"], sender="s", number=1))
    broker.call(calls.send(keys, [b"c"], sender="s", number=3))
    assert not broker.call(calls.send(keys, [b"b"], sender="s", number=2)).duplicate
    for number in (1, 2, 3):
        assert broker.call(calls.send(keys, [b"x"], sender="s", number=number)).duplicate
    assert broker.call(calls.totals(keys)).messages == 3


def test_a_send_too_old_to_tell_is_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    for number in range(1, 70):
        broker.call(calls.send(keys, [b"a"], sender="s", number=number))
    assert broker.call(calls.send(keys, [b"a"], sender="s", number=6)).duplicate
    with pytest.raises(SendForgotten):
        broker.call(calls.send(keys, [b"a"], sender="s", number=5))
    assert broker.call(calls.totals(keys)).messages == 69


def test_a_full_broker_refuses_a_send_and_still_completes(broker: BlockingBroker, keys: QueueKeys) -> None:
    broker.call(calls.send(keys, bodies(10)))
    received = receive(broker, keys, 5)
    try:
        broker.raw(("CONFIG", "SET", "maxmemory", "1"))
        with pytest.raises(QueueFull, match="is full"):
            broker.call(calls.send(keys, bodies(1)))
        assert broker.call(calls.complete(keys, [Settlement(received.runs[0].lock, 1, 5)])) == []
        assert numbers(receive(broker, keys, 10)) == [6, 7, 8, 9, 10]
    finally:
        broker.raw(("CONFIG", "SET", "maxmemory", "0"))
