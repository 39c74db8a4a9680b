import pytest

from harness import consistency
from harness.clock import Clock
from harness.deliveries import (
    LOCK_MS,
    accept,
    configure,
    locked_as,
    peeked,
    receive,
    send,
    send_one,
    settlements,
    stored,
)
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.operations import SendOperation
from partitionedqueue.model.errors import QueueFull


def test_a_queue_that_nobody_has_used_holds_nothing(broker: BlockingBroker, keys: QueueKeys) -> None:
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.bytes, totals.last, totals.partitions, totals.oldest) == (0, 0, 0, 0, 0)


def test_messages_are_counted_by_their_state(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 10)
    send_one(broker, keys, scheduled_enqueue_time_ms=clock.now_ms + 1000)
    received = receive(broker, keys, 6)
    broker.call(calls.defer(keys, locked_as(received, [1, 2])))
    broker.call(calls.dead_letter(keys, locked_as(received, [3])))
    broker.call(calls.abandon(keys, locked_as(received, [4])))
    broker.call(calls.claim_open(keys, "g", "o", LOCK_MS))
    broker.call(calls.claim(keys, "g", "o", LOCK_MS, 0, 2))
    broker.call(calls.apply(keys, [SendOperation([stored(b"t")], target="/$Transfer")]))
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.ready, totals.locked, totals.claimed) == (10, 3, 2, 2)
    assert (totals.deferred, totals.scheduled) == (2, 1)
    assert (totals.dead_letters, totals.transfers, totals.transfer_dead_letters) == (1, 1, 0)


def test_bytes_are_those_of_all_stored_forms_sub_queues_included(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 300, application_properties={"a": 1})
    received = receive(broker, keys, 200)
    broker.call(calls.dead_letter(keys, locked_as(received, range(1, 100)), reason="bad"))
    broker.call(calls.complete(keys, locked_as(received, range(100, 150))))
    shown = [one for queue in (keys, keys.dead_letters) for _, _, one in peeked(broker, queue)]
    assert len(shown) == 250
    assert broker.call(calls.totals(keys)).bytes == sum(map(len, shown))


def test_what_has_expired_is_ready(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 5)
    receive(broker, keys, 3, lock_ms=1000)
    clock.advance(1000)
    totals = broker.call(calls.totals(keys))
    assert (totals.ready, totals.locked) == (5, 0)


def test_claims_that_have_lapsed_are_ready(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 5)
    broker.call(calls.claim_open(keys, "g", "o", 1000))
    broker.call(calls.claim(keys, "g", "o", 1000, 0, 3))
    clock.advance(1000)
    totals = broker.call(calls.totals(keys))
    assert (totals.ready, totals.claimed) == (5, 0)


def test_oldest_is_when_the_first_message_that_is_there_was_enqueued(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    times = []
    for _ in range(3):
        times.append(clock.now_ms)
        send(broker, keys, 200)
        clock.advance(1000)
    assert broker.call(calls.totals(keys)).oldest == times[0]
    received = receive(broker, keys, 600)
    broker.call(calls.complete(keys, locked_as(received, range(1, 201))))
    assert broker.call(calls.totals(keys)).oldest == times[1]
    broker.call(calls.complete(keys, locked_as(received, range(201, 601))))
    assert broker.call(calls.totals(keys)).oldest == 0


def test_sessions_that_wait_and_that_are_held_are_counted(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    for session_id in "abc":
        send_one(broker, keys, session_id=session_id)
    held = accept(broker, keys, "a")
    accept(broker, keys, "d")
    totals = broker.call(calls.totals(keys))
    assert (totals.sessions, totals.sessions_locked) == (2, 2)
    broker.call(calls.release_session(keys, held))
    totals = broker.call(calls.totals(keys))
    assert (totals.sessions, totals.sessions_locked) == (3, 1)


def test_the_charge_is_more_than_the_bytes_and_goes_with_them(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1000)
    totals = broker.call(calls.totals(keys))
    assert totals.charge > totals.bytes
    while (received := receive(broker, keys, 100)).runs:
        broker.call(calls.complete(keys, settlements(received)))
    after = broker.call(calls.totals(keys))
    assert after.bytes == 0
    assert after.charge < totals.charge / 3  # of the last segment, which is not full, the bodies are still there


def test_a_send_is_refused_when_the_charge_would_be_over_the_quota(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, quota_bytes=10_000)
    fitting = [stored(bytes(100))] * 40
    with pytest.raises(QueueFull):
        broker.call(calls.send(keys, fitting * 10))
    broker.call(calls.send(keys, fitting))
    before = broker.call(calls.totals(keys))
    assert before.quota == 10_000
    most = (before.quota - before.charge) // 2
    with pytest.raises(QueueFull):
        send_one(broker, keys, bytes(2 * most))
    send_one(broker, keys, bytes(most - 150))
    assert broker.call(calls.totals(keys)).messages == 41


def test_a_full_queue_takes_messages_again_when_some_have_gone(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 400)
    configure(broker, keys, quota_bytes=broker.call(calls.totals(keys)).charge * 3 // 2)
    with pytest.raises(QueueFull):
        send(broker, keys, 400)
    assert broker.call(calls.totals(keys)).messages == 400
    receive(broker, keys, 256, lock_ms=0)
    send(broker, keys, 300)


def test_dead_letters_count_against_the_quota(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 400)
    configure(broker, keys, quota_bytes=broker.call(calls.totals(keys)).charge * 3 // 2)
    while (received := receive(broker, keys, 100)).runs:
        broker.call(calls.dead_letter(keys, settlements(received)))
    with pytest.raises(QueueFull):
        send(broker, keys, 400)
    broker.call(calls.complete(keys.dead_letters, settlements(receive(broker, keys.dead_letters, 1000))))
    send(broker, keys, 300)


def test_being_asked_changes_no_counters(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    configure(broker, keys, sessions=True)
    for name in "ab":
        send_one(broker, keys, session_id=name)
    accept(broker, keys, "a", lock_ms=1000)
    clock.advance(1000)  # so that the first of these calls has something to do, and the others have not
    assert [broker.call(calls.totals(keys)) for _ in range(3)] == [broker.call(calls.totals(keys))] * 3
    consistency.check(broker, keys.state, sessions=True)
