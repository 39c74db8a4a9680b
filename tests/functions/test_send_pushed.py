"""Sends past Lua: what is pushed is taken in, in order, or nothing of it stays."""

import pytest

from harness.deliveries import accept, bodies, configure, emptied, numbers, receive, send, stored
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model import duplicates
from partitionedqueue.model.errors import EntityDisabled, QueueFull, SessionRequired
from partitionedqueue.model.message import Message
from partitionedqueue.model.queue_spec import QueueStatus
from partitionedqueue.model.stored_message import encode


def lists(broker: BlockingBroker, keys: QueueKeys) -> dict[str, int]:
    """Which segments have lists, and how long these are."""
    names = sorted(name.decode() for name in broker.raw(("KEYS", keys.segment(0)[:-1] + "*"))[0])
    return dict(zip(names, broker.raw(*(("LLEN", name) for name in names)), strict=True)) if names else {}


def test_what_is_pushed_over_several_segments_comes_in_order(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 200)
    result = broker.call(calls.send_pushed(keys, bodies(700, 201), guess=200))
    assert (result.first, result.duplicates) == (201, [])
    assert numbers(receive(broker, keys, 1000)) == list(range(1, 901))
    assert lists(broker, keys) == {
        keys.segment(0): 256,
        keys.segment(1): 256,
        keys.segment(2): 256,
        keys.segment(3): 132,
    }
    totals = broker.call(calls.totals(keys))
    assert totals.bytes == sum(map(len, bodies(900)))


@pytest.mark.parametrize("guess", [0, 100, 255, 256, 299, 301, 512, 100_000])
def test_a_wrong_guess_only_costs_time(broker: BlockingBroker, keys: QueueKeys, guess: int) -> None:
    send(broker, keys, 300)
    assert broker.call(calls.send_pushed(keys, bodies(300, 301), guess=guess)).first == 301
    assert lists(broker, keys) == {keys.segment(0): 256, keys.segment(1): 256, keys.segment(2): 88}
    assert numbers(receive(broker, keys, 1000)) == list(range(1, 601))


def test_a_guess_at_a_segment_that_has_gone_leaves_nothing_there(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 600)
    assert numbers(receive(broker, keys, 520, lock_ms=0))[-1] == 520
    assert broker.call(calls.send_pushed(keys, bodies(10, 601), guess=3)).first == 601
    assert lists(broker, keys) == {keys.segment(2): 98}
    assert len(emptied(broker, keys)) == 90


def test_bodies_that_no_call_took_in_are_cleared_away(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 5)
    broker.raw(("RPUSH", keys.segment(0), b"stray", b"stray"), ("RPUSH", keys.segment(1), b"stray"))
    assert broker.call(calls.send_pushed(keys, bodies(251, 6), guess=5)).first == 6
    broker.call(calls.send(keys, bodies(1, 257)))
    assert lists(broker, keys) == {keys.segment(0): 256, keys.segment(1): 1}
    assert numbers(receive(broker, keys, 1000)) == list(range(1, 258))


def test_a_repeat_is_recognised_and_leaves_nothing(broker: BlockingBroker, keys: QueueKeys) -> None:
    call = calls.send_pushed(keys, bodies(300), guess=0, sender="s", number=1)
    assert broker.call(call).first == 1
    assert broker.call(call).stored_before
    assert lists(broker, keys) == {keys.segment(0): 256, keys.segment(1): 44}
    assert broker.call(calls.send(keys, bodies(1, 301), sender="s", number=2)).first == 301
    assert numbers(receive(broker, keys, 1000)) == list(range(1, 302))


def test_a_refused_send_leaves_nothing(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, quota_bytes=10_000)
    send(broker, keys, 2)
    with pytest.raises(QueueFull):
        broker.call(calls.send_pushed(keys, [stored(b"x" * 9_000), stored(b"y" * 9_000)], guess=2))
    configure(broker, keys, status=QueueStatus.SEND_DISABLED)
    with pytest.raises(EntityDisabled):
        broker.call(calls.send_pushed(keys, bodies(300, 3), guess=2))
    assert lists(broker, keys) == {keys.segment(0): 2}


def test_duplicates_are_dropped_and_told(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, dedupe_ms=60_000)
    messages = [Message(body=b"message %d" % n, message_id=str(n // 2)) for n in range(1, 8)]  # ids 0 1 1 2 2 3 3
    call = calls.send_pushed(
        keys, [encode(m) for m in messages], guess=0, fingerprints=duplicates.fingerprints(messages)
    )
    result = broker.call(call)
    assert (result.first, result.duplicates) == (1, [2, 4, 6])
    assert broker.call(call).duplicates == list(range(7))
    assert lists(broker, keys) == {keys.segment(0): 4}


def test_what_is_pushed_belongs_to_its_session(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    with pytest.raises(SessionRequired):
        broker.call(calls.send_pushed(keys, bodies(3), guess=0))
    broker.call(calls.send_pushed(keys, bodies(300, session_id="a"), guess=0, session="a"))
    assert numbers(receive(broker, keys, 1000, session=accept(broker, keys))) == list(range(1, 301))


def test_what_is_pushed_expires_with_the_queues_time_to_live(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, ttl_ms=1)
    broker.call(calls.send_pushed(keys, bodies(300), guess=0))
    while broker.call(calls.totals(keys)).messages:
        pass
    assert lists(broker, keys) == {keys.segment(1): 44}  # the last segment fills up first


def test_places_are_received_and_fetched(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 300)
    received = broker.call(calls.receive_places(keys, most=280))
    assert [(place.first, place.count) for place in received.places] == [(1, 256), (257, 24)]
    fetched = [one for place in received.places for one in broker.call(calls.bodies(keys, place))]
    assert fetched == bodies(280)
    assert broker.call(calls.receive_places(keys, most=280, bytes_most=200)).places[0].count == 2


def test_what_is_pushed_expires_at_its_own_time(broker: BlockingBroker, keys: QueueKeys) -> None:
    mixed = [stored(b"message %d" % n, time_to_live_ms=1 if n % 2 else None) for n in range(1, 301)]
    broker.call(calls.send_pushed(keys, mixed, guess=0))
    while broker.call(calls.totals(keys)).messages > 150:
        pass
    assert numbers(receive(broker, keys, 1000)) == list(range(2, 301, 2))
