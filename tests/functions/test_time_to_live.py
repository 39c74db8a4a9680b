"""Messages that expire: away, or to the dead-letter queue."""

import pytest

from harness.clock import Clock
from harness.deliveries import (
    LOCK_MS,
    accept,
    bodies,
    body_of,
    configure,
    delivery_counts,
    drain,
    fill,
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
    stored,
)
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model import stored_message


def test_a_message_is_had_until_its_last_millisecond_and_not_on_it(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    for body in (b"a", b"b"):
        send_one(broker, keys, body, time_to_live_ms=1000)
    clock.advance(999)
    assert received_bodies(receive(broker, keys, 1)) == [b"a"]
    clock.advance(1)
    assert receive(broker, keys).runs == []


def test_an_expired_message_goes_away_where_dead_lettering_is_not_asked_for(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send_one(broker, keys, b"a", time_to_live_ms=1000)
    send_one(broker, keys, b"b")
    clock.advance(1000)
    assert received_bodies(receive(broker, keys)) == [b"b"]
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.dead_letters) == (1, 0)


def test_an_expired_message_is_dead_lettered_where_that_is_asked_for(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, dead_letter_expired=True)
    sent_at = clock.now_ms
    send_one(broker, keys, b"a", time_to_live_ms=1000)
    clock.advance(1000)
    drain(broker, keys, clock.now_ms)
    (run,) = receive(broker, keys.dead_letters).runs
    (one,) = run.messages
    assert body_of(one) == b"a"
    assert properties_of(one)["DeadLetterReason"] == "TTLExpiredException"
    assert properties_of(one)["DeadLetterErrorDescription"]
    assert stored_message.first_sequence_number(one) == 1
    assert stored_message.enqueued_times(run.first, 1, run.marks) == [sent_at]


@pytest.mark.parametrize(("own", "queues"), [(500, 1000), (1000, 500), (None, 700), (700, 0)])
def test_a_messages_own_time_to_live_is_capped_by_the_queues(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock, own: int | None, queues: int
) -> None:
    lives = min(ms for ms in (own, queues) if ms)
    configure(broker, keys, ttl_ms=queues)
    for body in (b"a", b"b"):
        send_one(broker, keys, body, time_to_live_ms=own)
    clock.advance(lives - 1)
    assert received_bodies(receive(broker, keys, 1)) == [b"a"]
    clock.advance(1)
    assert receive(broker, keys).runs == []


def test_what_is_locked_does_not_expire_until_it_comes_back(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, dead_letter_expired=True)
    for body in (b"completed", b"abandoned", b"left"):
        send_one(broker, keys, body, time_to_live_ms=1000)
    received = receive(broker, keys, lock_ms=5000)
    clock.advance(4999)
    drain(broker, keys, clock.now_ms)
    assert broker.call(calls.complete(keys, locked_as(received, [1]))) == []
    assert broker.call(calls.abandon(keys, locked_as(received, [2]))) == []
    assert receive(broker, keys).runs == []
    clock.advance(1)
    assert receive(broker, keys).runs == []
    assert received_bodies(receive(broker, keys.dead_letters)) == [b"abandoned", b"left"]


def test_what_is_deferred_does_not_expire_until_it_is_asked_for(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send_one(broker, keys, b"a", time_to_live_ms=1000)
    broker.call(calls.defer(keys, settlements(receive(broker, keys))))
    clock.advance(100_000)
    drain(broker, keys, clock.now_ms)
    assert broker.call(calls.totals(keys)).deferred == 1


def test_messages_between_those_that_expire_stay_in_order(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    lives = {n: [None, 100, 200][n % 3] for n in range(1, 701)}
    fill(broker, keys, [stored(b"message %d" % n, time_to_live_ms=ms) for n, ms in lives.items()])
    clock.advance(100)
    drain(broker, keys, clock.now_ms)
    assert numbers(receive(broker, keys, 10)) == [n for n in lives if lives[n] != 100][:10]
    clock.advance(100)
    drain(broker, keys, clock.now_ms)
    left = [n for n in lives if lives[n] is None and n > 15]
    assert numbers(receive(broker, keys, 1000)) == left


def test_a_message_in_a_session_expires(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    configure(broker, keys, sessions=True, dead_letter_expired=True)
    send_one(broker, keys, b"a", session_id="s", time_to_live_ms=1000)
    send_one(broker, keys, b"b", session_id="s")
    send_one(broker, keys, b"c", session_id="t", time_to_live_ms=1000)
    clock.advance(1000)
    drain(broker, keys, clock.now_ms)
    session = accept(broker, keys)
    assert session.session_id == "s"
    assert received_bodies(receive(broker, keys, session=session)) == [b"b"]
    assert broker.call(calls.accept_session(keys)).session is None
    assert received_bodies(receive(broker, keys.dead_letters)) == [b"a", b"c"]


def test_a_returned_message_of_a_session_keeps_its_deliveries_when_it_expires(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, sessions=True, dead_letter_expired=True)
    send_one(broker, keys, b"a", session_id="s", time_to_live_ms=1000)
    session = accept(broker, keys, "s")
    for _ in range(2):
        broker.call(calls.abandon(keys, settlements(receive(broker, keys, session=session)), session=session))
    broker.call(calls.release_session(keys, session))
    clock.advance(1000)
    drain(broker, keys, clock.now_ms)
    ((_, one),) = placed(receive(broker, keys.dead_letters).runs)
    assert stored_message.deliveries_before(one) == 2


def test_a_change_of_the_queues_time_to_live_holds_for_what_comes_afterwards(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, ttl_ms=1000)
    send(broker, keys, 1)
    configure(broker, keys, ttl_ms=5000)
    send(broker, keys, 1)
    clock.advance(1000)
    assert numbers(receive(broker, keys, lock_ms=1)) == [2]
    clock.advance(4000)
    assert receive(broker, keys).runs == []


def test_next_due_is_when_the_first_message_expires(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send_one(broker, keys, time_to_live_ms=9_000)
    send_one(broker, keys, time_to_live_ms=4_000)
    assert broker.call(calls.next_due(keys)) == clock.now_ms + 4_000
    clock.advance(4_000)
    assert drain(broker, keys, clock.now_ms) == clock.now_ms + 5_000
    assert [number for number, _, _ in peeked(broker, keys)] == [1]


def test_next_due_knows_a_message_that_came_when_all_before_had_expired(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    for _ in range(3):
        send_one(broker, keys, time_to_live_ms=1_000)
        clock.advance(1_000)
        drain(broker, keys, clock.now_ms)
        assert broker.call(calls.totals(keys)).messages == 0
    send_one(broker, keys, time_to_live_ms=1_000)
    assert broker.call(calls.next_due(keys)) == clock.now_ms + 1_000


def test_next_due_knows_returned_messages_that_expire_before_those_behind_them(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    for ms in (5, 1_000, 2_000):
        send_one(broker, keys, time_to_live_ms=ms)
    broker.call(calls.abandon(keys, settlements(receive(broker, keys, 2))))
    clock.advance(5)
    assert drain(broker, keys, clock.now_ms) == clock.now_ms + 995


def test_the_longest_time_to_live_is_for_ever(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send_one(broker, keys, b"a", time_to_live_ms=2**63 - 1)
    clock.advance(100 * 366 * 86_400_000)
    assert received_bodies(receive(broker, keys, lock_ms=LOCK_MS)) == [b"a"]


def test_a_message_delivered_before_it_expired_is_told_with_its_deliveries(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, dead_letter_expired=True)
    fill(broker, keys, bodies(2, time_to_live_ms=1000))
    received = receive(broker, keys, 1)
    broker.call(calls.abandon(keys, settlements(received)))
    clock.advance(1000)
    drain(broker, keys, clock.now_ms)
    dead = receive(broker, keys.dead_letters)
    assert [stored_message.deliveries_before(one) for _, one in placed(dead.runs)] == [1, 0]
    assert set(delivery_counts(dead).values()) == {1}
