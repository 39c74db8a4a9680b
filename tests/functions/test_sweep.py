"""Due work is done a bounded part a call, however much of it there is, and all of it in the end."""

import itertools

import pytest

from harness.clock import Clock
from harness.deliveries import (
    LOCK_MS,
    accept,
    bodies,
    configure,
    delivery_counts,
    drain,
    fill,
    placed,
    receive,
    send,
    send_one,
    settlements,
    stored,
)
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Totals

MANY = 20_000
PIECES_A_CALL = 256  # of due work: a run, or a message that moves


def totals_of(broker: BlockingBroker, keys: QueueKeys) -> Totals:
    return broker.call(calls.totals(keys))


def swept(broker: BlockingBroker, keys: QueueKeys, clock: Clock, name: str) -> list[int]:
    """Sweeps until nothing is due; by how much one of the totals has changed with each call.

    Totals sweeps as well, so each step here is that of two calls.
    """
    counts = [getattr(totals_of(broker, keys), name)]
    due = 0
    while 0 <= due <= clock.now_ms:
        due = broker.call(calls.sweep(keys)).next_due_ms
        counts.append(getattr(totals_of(broker, keys), name))
    return [abs(after - before) for before, after in itertools.pairwise(counts)]


def lock_one_by_one(broker: BlockingBroker, keys: QueueKeys, count: int, lock_ms: int = 1000) -> None:
    for start in range(0, count, 500):
        most = min(500, count - start)
        broker.pipeline([calls.receive(keys, most=1, lock_ms=lock_ms)] * most)


def test_locks_that_expire_at_once(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, MANY)
    lock_one_by_one(broker, keys, MANY)
    clock.advance(1000)
    steps = swept(broker, keys, clock, "ready")
    assert max(steps) <= 2 * PIECES_A_CALL
    assert totals_of(broker, keys).ready == MANY


def test_locks_renewed_one_by_one_that_expire_at_once(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 5_000)
    for _ in range(5):
        for settlement in settlements(receive(broker, keys, 1000, lock_ms=1000)):
            each = [settlement._replace(first=n, last=n) for n in range(settlement.first, settlement.last + 1)]
            broker.call(calls.renew_lock(keys, each, lock_ms=2000))
    clock.advance(2000)
    swept(broker, keys, clock, "ready")
    assert totals_of(broker, keys).ready == 5_000


def test_locks_at_their_last_delivery_that_expire_at_once(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, max_deliveries=1)
    send(broker, keys, MANY)
    while receive(broker, keys, 1000, lock_ms=1000).runs:
        pass
    clock.advance(1000)
    steps = swept(broker, keys, clock, "dead_letters")
    assert max(steps) <= 4 * PIECES_A_CALL
    assert (totals_of(broker, keys).messages, totals_of(broker, keys).dead_letters) == (0, MANY)


@pytest.mark.parametrize("dead_letter", [False, True])
def test_messages_that_expire_at_once(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock, *, dead_letter: bool
) -> None:
    configure(broker, keys, ttl_ms=1000, dead_letter_expired=dead_letter)
    send(broker, keys, MANY)
    clock.advance(1000)
    steps = swept(broker, keys, clock, "messages")
    if dead_letter:
        assert max(steps) <= 4 * PIECES_A_CALL
    totals = totals_of(broker, keys)
    assert (totals.messages, totals.dead_letters) == (0, MANY if dead_letter else 0)


def test_every_other_message_expires_at_once(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    configure(broker, keys, dead_letter_expired=True)
    fill(broker, keys, [stored(b"%d" % n, time_to_live_ms=1000 if n % 2 else None) for n in range(MANY)])
    clock.advance(1000)
    steps = swept(broker, keys, clock, "dead_letters")
    assert max(steps) <= 4 * PIECES_A_CALL
    totals = totals_of(broker, keys)
    assert (totals.ready, totals.dead_letters) == (MANY // 2, MANY // 2)


def test_scheduled_messages_that_come_at_once(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    fill(broker, keys, bodies(MANY, scheduled_enqueue_time_ms=clock.now_ms + 1000))
    clock.advance(1000)
    steps = swept(broker, keys, clock, "ready")
    assert max(steps) <= 4 * PIECES_A_CALL
    totals = totals_of(broker, keys)
    assert (totals.ready, totals.scheduled, totals.last) == (MANY, 0, 2 * MANY)


def test_messages_of_sessions_that_expire_at_once(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    configure(broker, keys, sessions=True, ttl_ms=1000)
    for n in range(0, MANY, 1000):
        broker.call(calls.send(keys, [stored(b"x", session_id=f"session {n % 7000}")] * 1000))
    clock.advance(1000)
    steps = swept(broker, keys, clock, "messages")
    assert max(steps) <= 8 * PIECES_A_CALL
    assert totals_of(broker, keys).messages == 0
    assert broker.call(calls.list_sessions(keys)) == []


def test_session_locks_that_expire_at_once(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    configure(broker, keys, sessions=True)
    for n in range(2_000):
        broker.call(calls.send(keys, [stored(b"x", session_id=f"session {n}")] * 5))
    for _ in range(2_000):
        session = accept(broker, keys, lock_ms=1000)
        broker.pipeline([calls.receive(keys, most=1, session=session)] * 4)
    clock.advance(1000)
    steps = swept(broker, keys, clock, "ready")
    assert max(steps) <= 8 * PIECES_A_CALL
    totals = totals_of(broker, keys)
    assert (totals.ready, totals.locked, totals.sessions, totals.sessions_locked) == (10_000, 0, 2_000, 0)


def test_senders_that_are_forgotten_at_once(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    for start in range(0, 5_000, 500):
        several = [calls.send(keys, [stored(b"x")], sender=f"sender {n}", number=1) for n in range(start, start + 500)]
        broker.pipeline(several)
    clock.advance(3_600_000)
    assert drain(broker, keys, clock.now_ms) == -1
    assert not [name for name in broker.raw(("HKEYS", keys.state))[0] if name.startswith(b"nsender")]


def test_message_ids_that_are_forgotten_at_once(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    configure(broker, keys, dedupe_ms=20_000)
    for n in range(20):
        prints = b"".join(b"%06d%06d" % (n, i) for i in range(1000))
        broker.call(calls.send(keys, [stored(b"x")] * 1000, fingerprints=prints))
    assert totals_of(broker, keys).remembered == MANY
    clock.advance(60_000)
    assert drain(broker, keys, clock.now_ms) == -1
    assert totals_of(broker, keys).remembered == 0


def test_what_waits_for_its_time_in_a_sub_queue_is_swept_with_its_queue(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send(broker, keys, 10)
    broker.call(calls.dead_letter(keys, settlements(receive(broker, keys))))
    receive(broker, keys.dead_letters, lock_ms=1000)
    assert broker.call(calls.sweep(keys)).next_due_ms == clock.now_ms + 1000
    clock.advance(1000)
    drain(broker, keys, clock.now_ms)
    assert set(delivery_counts(receive(broker, keys.dead_letters)).values()) == {2}


def test_a_receiver_gets_all_although_much_is_due(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 5_000)
    lock_one_by_one(broker, keys, 5_000)
    clock.advance(1000)
    found: list[int] = []
    for _ in range(10_000):
        received = receive(broker, keys, 1000)
        found += [number for number, _ in placed(received.runs)]
        if not received.runs and received.ask_again_ms > clock.now_ms:
            break
    assert sorted(found) == list(range(1, 5_001))


def test_next_due_says_when_and_minus_one_where_nothing_waits(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    assert broker.call(calls.next_due(keys)) == -1
    send(broker, keys, 3)
    assert broker.call(calls.next_due(keys)) == -1
    receive(broker, keys, 1, lock_ms=9_000)
    assert broker.call(calls.next_due(keys)) == clock.now_ms + 9_000
    receive(broker, keys, 1, lock_ms=4_000)
    assert broker.call(calls.next_due(keys)) == clock.now_ms + 4_000
    send_one(broker, keys, scheduled_enqueue_time_ms=clock.now_ms + 2_000)
    assert broker.call(calls.next_due(keys)) == clock.now_ms + 2_000
    clock.advance(LOCK_MS)
    assert drain(broker, keys, clock.now_ms) == -1
    assert broker.call(calls.next_due(keys)) == -1


def test_a_sweep_where_nothing_is_due_changes_nothing(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 3)
    receive(broker, keys, 2)
    before = broker.raw(("HGETALL", keys.state))
    swept_at = broker.call(calls.sweep(keys))
    assert (swept_at.next_due_ms, swept_at.now_ms) == (clock.now_ms + LOCK_MS, clock.now_ms)
    assert broker.raw(("HGETALL", keys.state)) == before
