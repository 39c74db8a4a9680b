import pytest

from harness.clock import Clock
from harness.deliveries import (
    LOCK_MS,
    accept,
    bodies,
    configure,
    drain,
    emptied,
    fill,
    locked_as,
    numbers,
    peeked,
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
from partitionedqueue.model.errors import BrokerFault


def purge(broker: BlockingBroker, keys: QueueKeys, states: str = "ads", upto: int = 0) -> tuple[int, int]:
    """How many went, in how many calls."""
    moved = broker.call(calls.purge(keys, states=states, upto=upto))
    purged, made = moved.count, 1
    while moved.more:
        moved = broker.call(calls.purge(keys, states=states, upto=moved.upto, cursor=moved.more))
        purged, made = purged + moved.count, made + 1
    return purged, made


def of_every_kind(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    """1 ready, 2 locked, 3 deferred, 4 scheduled, 5 returned, 6 claimed, 7 ready."""
    send(broker, keys, 3)
    send_one(broker, keys, b"message 4", scheduled_enqueue_time_ms=clock.now_ms + 60_000)
    send(broker, keys, 2)
    received = receive(broker, keys)
    assert numbers(received) == [1, 2, 3, 5, 6]
    broker.call(calls.defer(keys, locked_as(received, [3])))
    broker.call(calls.abandon(keys, locked_as(received, [6])))
    broker.call(calls.claim_open(keys, "g", "o", LOCK_MS))
    assert broker.call(calls.claim(keys, "g", "o", LOCK_MS, 0, 1)).end == 1
    broker.call(calls.abandon(keys, locked_as(received, [1, 5])))
    send(broker, keys, 1)


@pytest.mark.parametrize(
    ("states", "left"),
    [
        ("a", [2, 3, 4, 6]),
        ("d", [1, 2, 4, 5, 6, 7]),
        ("s", [1, 2, 3, 5, 6, 7]),
        ("ads", [2, 6]),
        ("sd", [1, 2, 5, 6, 7]),
    ],
)
def test_purge_takes_what_is_in_the_states_asked_for_and_never_what_is_held(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock, states: str, left: list[int]
) -> None:
    of_every_kind(broker, keys, clock)
    assert purge(broker, keys, states)[0] == 7 - len(left)
    shown = peeked(broker, keys)
    assert [number for number, _, _ in shown] == left
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.locked, totals.claimed) == (len(left), 1, 1)
    assert totals.bytes == sum(len(one) for _, _, one in shown)


def test_purge_takes_messages_up_to_a_number(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 700)
    assert purge(broker, keys, upto=300)[0] == 300
    assert numbers(receive(broker, keys, 1000)) == list(range(301, 701))


def test_what_comes_while_a_purge_goes_on_stays(broker: BlockingBroker, keys: QueueKeys) -> None:
    fill(broker, keys, bodies(100_000))
    moved = broker.call(calls.purge(keys))
    assert moved.more > 0
    send(broker, keys, 5)
    count = moved.count
    while moved.more:
        moved = broker.call(calls.purge(keys, upto=moved.upto, cursor=moved.more))
        count += moved.count
    assert count == 100_000
    assert numbers(receive(broker, keys)) == list(range(100_001, 100_006))


def test_a_purged_queue_holds_nothing(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 1000)
    received = receive(broker, keys, 500)
    broker.call(calls.defer(keys, locked_as(received, range(1, 400, 3))))
    broker.call(calls.abandon(keys, locked_as(received, range(2, 400, 3))))
    fill(broker, keys, bodies(100, scheduled_enqueue_time_ms=clock.now_ms + 1000))
    clock.advance(LOCK_MS)
    drain(broker, keys, clock.now_ms)
    purge(broker, keys)
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.bytes, totals.deferred, totals.scheduled, totals.ready) == (0, 0, 0, 0, 0)
    assert emptied(broker, keys) == []


def test_a_large_purge_goes_in_bounded_calls(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    fill(broker, keys, bodies(20_000, scheduled_enqueue_time_ms=clock.now_ms + LOCK_MS))
    purged, made = purge(broker, keys, "s")
    assert purged == 20_000
    assert made >= 20_000 // 1024


def test_purge_of_a_session_queue(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    for session_id in "ab":
        broker.call(calls.send(keys, [stored(b"%d" % n, session_id=session_id) for n in range(300)]))
    session = accept(broker, keys, "b")
    received = receive(broker, keys, 2, session=session)
    assert purge(broker, keys)[0] == 598
    assert broker.call(calls.accept_session(keys)).session is None
    broker.call(calls.abandon(keys, settlements(received), session=session))
    assert received_bodies(receive(broker, keys, session=session)) == [b"0", b"1"]
    broker.call(calls.release_session(keys, session))
    assert broker.call(calls.list_sessions(keys)) == ["b"]


def test_purge_of_dead_letters(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 600)
    broker.call(calls.dead_letter(keys, settlements(receive(broker, keys, 600))))
    assert purge(broker, keys.dead_letters)[0] == 600
    totals = broker.call(calls.totals(keys))
    assert (totals.dead_letters, totals.bytes) == (0, 0)


def test_nonsense_is_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    for states, upto, cursor in (("", 0, 0), ("x", 0, 0), ("ax", 0, 0), ("a", -1, 0), ("a", 0, -1)):
        with pytest.raises(BrokerFault, match="BADCALL"):
            broker.call(calls.purge(keys, states=states, upto=upto, cursor=cursor))


# ---- the first so many, of before a time


def delete(broker: BlockingBroker, keys: QueueKeys, most: int, before_ms: int) -> tuple[int, int]:
    """How many went, in how many calls."""
    moved = broker.call(calls.delete_batch(keys, most=most, enqueued_before_ms=before_ms))
    gone, made = moved.count, 1
    while moved.more:
        call = calls.delete_batch(
            keys, most=most - gone, enqueued_before_ms=before_ms, upto=moved.upto, cursor=moved.more
        )
        moved = broker.call(call)
        gone, made = gone + moved.count, made + 1
    return gone, made


def test_delete_batch_takes_the_first_ones_and_no_more(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 600)
    assert delete(broker, keys, 300, clock.now_ms + 1) == (300, 1)
    assert numbers(receive(broker, keys, 1000)) == list(range(301, 601))


def test_delete_batch_takes_what_was_enqueued_before(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 300)
    clock.advance(10)
    send(broker, keys, 300)
    assert delete(broker, keys, 4000, clock.now_ms - 10)[0] == 0
    assert delete(broker, keys, 4000, clock.now_ms)[0] == 300
    assert numbers(receive(broker, keys, 1000)) == list(range(301, 601))


def test_delete_batch_leaves_what_is_locked_deferred_scheduled_or_claimed(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    of_every_kind(broker, keys, clock)
    assert delete(broker, keys, 100, clock.now_ms + 1)[0] == 3
    assert [number for number, _, _ in peeked(broker, keys)] == [2, 3, 4, 6]


def test_delete_batch_works_through_a_deep_queue_in_bounded_calls(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    fill(broker, keys, bodies(40_000))
    gone, made = delete(broker, keys, 39_990, clock.now_ms + 1)
    assert (gone, made > 1) == (39_990, True)
    assert numbers(receive(broker, keys, 100)) == list(range(39_991, 40_001))


def test_delete_batch_takes_sessions_messages_in_the_order_of_the_queue(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, sessions=True)
    for number in range(1, 11):
        send_one(broker, keys, b"message %d" % number, session_id="ab"[number % 2])
    assert delete(broker, keys, 5, clock.now_ms + 1)[0] == 5
    assert numbers(receive(broker, keys, session=accept(broker, keys, "a"))) == [6, 8, 10]


def test_delete_batch_is_of_ready_messages_only(broker: BlockingBroker, keys: QueueKeys) -> None:
    for words in (("ads", 0, 0, 1, 1), ("a", 0, 0, 0, 1), ("a", 0, 0, 1, -1)):
        with pytest.raises(BrokerFault):
            broker.raw(("FCALL", "pq_purge", 1, keys.state, *words))
