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
    stored,
)
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import SessionLock, Settlement
from partitionedqueue.model.errors import BrokerFault, SessionLockLost
from partitionedqueue.model.queue_spec import QueueStatus


def test_complete_removes_messages_and_their_bytes(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 520)
    received = receive(broker, keys, 520)
    assert broker.call(calls.complete(keys, settlements(received))) == []
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.locked, totals.bytes) == (0, 0, 0)


def test_complete_in_any_order_one_by_one(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 300)
    received = receive(broker, keys, 300)
    order = [*range(300, 0, -3), *range(1, 301, 3), *range(2, 301, 3)]
    assert sorted(order) == list(range(1, 301))
    for number in order:
        assert broker.call(calls.complete(keys, locked_as(received, [number]))) == []
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.locked, totals.bytes) == (0, 0, 0)
    assert broker.raw(("EXISTS", keys.segment(0))) == [0]


def test_complete_twice_is_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 3)
    received = receive(broker, keys, 3)
    one = locked_as(received, [2])
    assert broker.call(calls.complete(keys, one)) == []
    assert broker.call(calls.complete(keys, one)) == [0]
    assert broker.call(calls.complete(keys, settlements(received))) == [0]
    assert broker.call(calls.totals(keys)).messages == 2


def test_complete_refuses_an_expired_lock_and_keeps_the_message(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send(broker, keys, 1)
    received = receive(broker, keys, 1, lock_ms=1000)
    clock.advance(1000)
    assert broker.call(calls.complete(keys, settlements(received))) == [0]
    assert numbers(receive(broker, keys, 1)) == [1]


def test_complete_takes_a_lock_in_its_last_millisecond(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 1)
    received = receive(broker, keys, 1, lock_ms=1000)
    clock.advance(999)
    assert broker.call(calls.complete(keys, settlements(received))) == []


def test_a_token_from_before_does_not_settle_the_next_delivery(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1)
    first = receive(broker, keys, 1)
    broker.call(calls.abandon(keys, settlements(first)))
    second = receive(broker, keys, 1)
    assert broker.call(calls.complete(keys, settlements(first))) == [0]
    assert broker.call(calls.complete(keys, settlements(second))) == []


def test_one_refusal_does_not_touch_the_others(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 4)
    received = receive(broker, keys, 4)
    several = [*locked_as(received, [1]), Settlement(99, 2, 2), *locked_as(received, [3])]
    assert broker.call(calls.complete(keys, several)) == [1]
    assert broker.call(calls.totals(keys)).messages == 2


def test_a_triple_that_reaches_beyond_what_is_held_is_refused_whole(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 4)
    lock = receive(broker, keys, 2).runs[0].lock
    nonsense = [Settlement(lock, 2, 1), Settlement(lock, 0, 1), Settlement(lock, 1, 3), Settlement(lock, -1, -1)]
    assert broker.call(calls.complete(keys, nonsense)) == [0, 1, 2, 3]
    assert broker.call(calls.totals(keys)).locked == 2


def test_too_many_or_broken_settlements_are_refused_before_anything_is_done(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    send(broker, keys, 3)
    received = receive(broker, keys, 3)
    before = contents(broker)
    many = locked_as(received, [1]) + [Settlement(1, 2, 2)] * 1000
    for call in (
        calls.complete(keys, many),
        calls.abandon(keys, many),
        calls.defer(keys, many),
        calls.dead_letter(keys, many),
    ):
        with pytest.raises(BrokerFault, match="BADCALL"):
            broker.call(call)
    for words in (("1", "1", "1", "un", "1", "1"), ("1", "1"), ("1", "1", "x"), ("1", "1.5", "2")):
        with pytest.raises(BrokerFault, match="BADCALL"):
            broker.raw(("FCALL", "pq_complete", 1, keys.state, "", 0, *words))
    assert contents(broker) == before
    assert broker.call(calls.complete(keys, settlements(received))) == []


def test_a_disabled_queue_still_completes(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1)
    received = receive(broker, keys)
    configure(broker, keys, status=QueueStatus.DISABLED)
    assert broker.call(calls.complete(keys, settlements(received))) == []


def test_complete_in_a_session(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    for n in range(4):
        send_one(broker, keys, b"%d" % n, session_id="ab"[n % 2])
    session = accept(broker, keys, "a")
    received = receive(broker, keys, session=session)
    assert received_bodies(received) == [b"0", b"2"]
    assert broker.call(calls.complete(keys, settlements(received), session=session)) == []
    assert broker.call(calls.totals(keys)).messages == 2


def test_complete_under_a_lost_session_lock_is_refused_whole(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, sessions=True)
    send_one(broker, keys, session_id="s")
    session = accept(broker, keys, "s", lock_ms=1000)
    received = receive(broker, keys, session=session)
    with pytest.raises(SessionLockLost):
        broker.call(calls.complete(keys, settlements(received), session=SessionLock("s", session.lock + 1)))
    clock.advance(1000)
    with pytest.raises(SessionLockLost):
        broker.call(calls.complete(keys, settlements(received), session=session))
    assert broker.call(calls.totals(keys)).messages == 1


def test_a_session_does_not_complete_what_another_one_holds(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    send_one(broker, keys, session_id="s")
    send_one(broker, keys, session_id="t")
    s, t = accept(broker, keys, "s"), accept(broker, keys, "t")
    received = receive(broker, keys, session=s)
    assert broker.call(calls.complete(keys, settlements(received), session=t)) == [0]
    assert broker.call(calls.complete(keys, settlements(received), session=s)) == []


@pytest.mark.parametrize(("count", "body_bytes"), [(600, 10), (300, 40_000)])
def test_a_run_alone_leaves_what_it_leaves_among_others(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock, count: int, body_bytes: int
) -> None:
    """A whole run that is all of a call is completed a shorter way, which leaves tidying to others: 40 kB need it."""
    among_others = QueueKeys("hotels")
    nobodys = Settlement(9_999, 1, 1)
    for queue in (keys, among_others):
        for start in range(0, count, 100):
            broker.call(calls.send(queue, [stored(b"%d" % start + b"x" * body_bytes)] * 100))
    for most in (1, 7, 8, 9, 16, 30, 3, 90):
        clock.advance(most)
        held = [settlements(receive(broker, keys, most)) for _ in range(4)]
        assert held == [settlements(receive(broker, among_others, most)) for _ in range(4)]
        runs = [one for its in held for one in its]
        for one in runs[most % 2 :]:  # where one stays its segment does, too
            assert broker.call(calls.complete(keys, [one])) == []
        assert broker.call(calls.complete(keys, runs[-1:])) == [0]
        for one in runs[most % 2 :]:
            assert broker.call(calls.complete(among_others, [one, nobodys])) == [1]
        left, expected = broker.raw(("HGETALL", keys.state), ("HGETALL", among_others.state))
        assert pairs(left) == pairs(expected)
        assert broker.call(calls.totals(keys)) == broker.call(calls.totals(among_others))


def pairs(flat: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
