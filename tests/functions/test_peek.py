from harness.deliveries import locked_as, receive, send
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys


def peeked(broker: BlockingBroker, keys: QueueKeys, start: int, most: int, bytes_most: int = 1 << 20) -> list[int]:
    found = []
    for run in broker.call(calls.peek(keys, from_sequence=start, most=most, bytes_most=bytes_most)):
        for place, body in enumerate(run.messages):
            assert body == b"message %d" % (run.first + place)
            found.append(run.first + place)
    return found


def test_peek_shows_locked_and_ready_messages_and_not_what_has_gone(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 600)
    received = receive(broker, keys, 300)
    broker.call(calls.complete(keys, locked_as(received, [*range(1, 257), 260, 262])))
    expected = [n for n in range(257, 601) if n not in (260, 262)]
    assert peeked(broker, keys, 1, 1000) == expected
    assert peeked(broker, keys, 261, 3) == [261, 263, 264]
    assert peeked(broker, keys, 601, 3) == []


def test_peek_stops_at_the_bytes_asked_for_but_shows_one(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 600)
    assert peeked(broker, keys, 1, 600, bytes_most=30) == [1, 2, 3]
    assert peeked(broker, keys, 255, 600, bytes_most=36) == [255, 256, 257]
    assert peeked(broker, keys, 1, 600, bytes_most=0) == [1]


def test_peek_changes_nothing(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 5)
    before = broker.raw(("HGETALL", keys.state))
    peeked(broker, keys, 1, 5)
    assert broker.raw(("HGETALL", keys.state)) == before
