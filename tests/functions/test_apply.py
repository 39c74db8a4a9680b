"""Transactions: all of it, or nothing."""

import pytest

from harness.clock import Clock
from harness.deliveries import (
    accept,
    body_of,
    configure,
    contents,
    delivery_counts,
    emptied,
    locked_as,
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
from partitionedqueue.broker.operations import (
    AbandonOperation,
    CompleteOperation,
    DeadLetterOperation,
    DeferOperation,
    Operation,
    SendOperation,
)
from partitionedqueue.broker.replies import SessionLock, Settlement
from partitionedqueue.model.duplicates import fingerprints
from partitionedqueue.model.errors import (
    BrokerFault,
    EntityDisabled,
    LockLost,
    QueueFull,
    SendForgotten,
    SessionLockLost,
    SessionRequired,
)
from partitionedqueue.model.message import Message
from partitionedqueue.model.queue_spec import QueueStatus
from partitionedqueue.model.stored_message import encode, encode_changes


def test_all_operations_of_a_transaction_are_carried_out(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 5)
    received = receive(broker, keys)
    operations: list[Operation] = [
        CompleteOperation(locked_as(received, [1])),
        SendOperation([stored(b"six"), stored(b"seven")]),
        DeferOperation(locked_as(received, [2]), encode_changes({"later": True})),
        DeadLetterOperation(locked_as(received, [3]), reason="bad"),
        AbandonOperation(locked_as(received, [4])),
        AbandonOperation(locked_as(received, [5]), counted=False),
        SendOperation([stored(b"away")], target="/$Transfer"),
    ]
    assert broker.call(calls.apply(keys, operations)) == [0, 6, 0, 0, 0, 0, 1]
    assert [(n, state) for n, state, _ in peeked(broker, keys)] == [(2, 1), (4, 0), (5, 0), (6, 0), (7, 0)]
    assert [properties_of(one) for _, _, one in peeked(broker, keys, states="d")] == [{"later": True}]
    assert delivery_counts(receive(broker, keys, 2)) == {4: 2, 5: 1}
    assert [body_of(one) for _, one in placed(receive(broker, keys.dead_letters).runs)] == [b"message 3"]
    assert emptied(broker, keys.transfers) == [b"away"]


def test_a_lost_lock_undoes_nothing_because_nothing_was_done(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send(broker, keys, 3)
    received = receive(broker, keys, 2, lock_ms=5000)
    late = receive(broker, keys, 1, lock_ms=1000)
    clock.advance(1000)
    before = contents(broker)
    operations: list[Operation] = [
        SendOperation([stored(b"x")]),
        CompleteOperation(locked_as(received, [1])),
        DeadLetterOperation(settlements(late)),
        SendOperation([stored(b"y")], target="/$Transfer"),
    ]
    with pytest.raises(LockLost, match="operation 2"):
        broker.call(calls.apply(keys, operations, sender="s", number=1))
    assert contents(broker) == before
    assert broker.call(calls.apply(keys, operations[:2], sender="s", number=1)) == [4, 0]


def test_a_message_settled_twice_in_one_transaction_refuses_it(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 3)
    received = receive(broker, keys)
    before = contents(broker)
    twice: list[list[Operation]] = [
        [CompleteOperation(locked_as(received, [1])), DeadLetterOperation(settlements(received))],
        [CompleteOperation([*locked_as(received, [2]), *settlements(received)])],
    ]
    for operations in twice:
        with pytest.raises(LockLost):
            broker.call(calls.apply(keys, operations))
    assert contents(broker) == before


def test_a_repeated_transaction_is_carried_out_once(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1)
    received = receive(broker, keys)
    operations: list[Operation] = [CompleteOperation(settlements(received)), SendOperation([stored(b"x")])]
    assert broker.call(calls.apply(keys, operations, sender="s", number=7)) == [0, 2]
    assert broker.call(calls.apply(keys, operations, sender="s", number=7)) == []
    assert emptied(broker, keys) == [b"x"]


def test_one_too_old_to_tell_is_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    for number in range(1, 70):
        broker.call(calls.apply(keys, [SendOperation([stored(b"x")])], sender="s", number=number))
    with pytest.raises(SendForgotten):
        broker.call(calls.apply(keys, [SendOperation([stored(b"x")])], sender="s", number=1))


def test_sends_and_transactions_of_one_sender_have_one_row_of_numbers(broker: BlockingBroker, keys: QueueKeys) -> None:
    broker.call(calls.apply(keys, [SendOperation([stored(b"x")])], sender="s", number=1))
    assert broker.call(calls.send(keys, [stored(b"x")], sender="s", number=1)).stored_before


def test_all_that_is_sent_must_find_room_together(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, quota_bytes=3_000)
    before = contents(broker)
    large = SendOperation([stored(bytes(1_000))])
    away = SendOperation(large.messages, target="/$Transfer")
    for third in (large, away):
        with pytest.raises(QueueFull):
            broker.call(calls.apply(keys, [large, large, third]))
    assert contents(broker) == before
    assert broker.call(calls.apply(keys, [large, large])) == [1, 2]


def test_scheduled_sends_are_part_of_it(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    later = stored(b"later", scheduled_enqueue_time_ms=clock.now_ms + 1000)
    assert broker.call(calls.apply(keys, [SendOperation([later])])) == [1]
    assert broker.call(calls.totals(keys)).scheduled == 1
    broker.call(calls.cancel_scheduled(keys, [1]))


def test_duplicates_are_dropped_in_it_too(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, dedupe_ms=60_000)
    message = Message(body=b"a", message_id="a")
    one = SendOperation([encode(message)], fingerprints([message]))
    assert broker.call(calls.apply(keys, [one, one])) == [1, 0]
    assert broker.call(calls.apply(keys, [one])) == [0]
    assert emptied(broker, keys) == [b"a"]


def test_a_transaction_in_a_session(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    configure(broker, keys, sessions=True)
    for n in range(3):
        send_one(broker, keys, b"%d" % n, session_id="s")
    session = accept(broker, keys, "s", lock_ms=1000)
    received = receive(broker, keys, session=session)
    operations: list[Operation] = [
        CompleteOperation(locked_as(received, [1])),
        SendOperation([stored(b"new", session_id="s")]),
    ]
    with pytest.raises(SessionLockLost):
        broker.call(calls.apply(keys, operations, session=SessionLock("s", session.lock + 1)))
    with pytest.raises(LockLost):
        broker.call(calls.apply(keys, operations))
    assert broker.call(calls.apply(keys, operations, session=session)) == [0, 4]
    assert received_bodies(receive(broker, keys, session=session)) == [b"new"]
    with pytest.raises(SessionRequired):
        broker.call(calls.apply(keys, [SendOperation([stored(b"no session")])]))
    clock.advance(1000)
    with pytest.raises(SessionLockLost):
        broker.call(calls.apply(keys, [CompleteOperation(locked_as(received, [2]))], session=session))


def test_a_disabled_queue_still_settles_in_it_and_takes_no_message(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 2)
    received = receive(broker, keys)
    configure(broker, keys, status=QueueStatus.SEND_DISABLED)
    operations: list[Operation] = [CompleteOperation(locked_as(received, [1])), SendOperation([stored(b"x")])]
    with pytest.raises(EntityDisabled):
        broker.call(calls.apply(keys, operations))
    assert broker.call(calls.apply(keys, operations[:1])) == [0]
    assert broker.call(calls.totals(keys)).locked == 1


def test_nonsense_is_refused_before_anything_is_done(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1)
    lock = receive(broker, keys).runs[0].lock
    before = contents(broker)
    good = ("complete", "", 3, lock, 1, 1)
    nonsense: tuple[tuple[str | int | bytes, ...], ...] = (
        (*good, "complete"),
        (*good, "vanish", "", 1, "x"),
        (*good, "complete", "", 3, lock, 1),
        (*good, "complete", "", 2, lock, 1),
        (*good, "complete", "/$DeadLetterQueue", 3, lock, 1, 1),
        (*good, "complete", "/$Transfer", 3, lock, 1, 1),
        (*good, "abandon", "", 5, "perhaps", "", lock, 1, 1),
        (*good, "send", "", 1, ""),
        (*good, "send", "", 2, b"12345", stored(b"x")),
        (*good, "complete", "", -1),
    )
    for words in nonsense:
        with pytest.raises(BrokerFault, match="BADCALL"):
            broker.raw(("FCALL", "pq_apply", 1, keys.state, "", 0, "", 0, *words))
    assert contents(broker) == before


def test_more_operations_than_allowed_are_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    one = SendOperation([stored(b"x")])
    assert len(broker.call(calls.apply(keys, [one] * 100))) == 100
    with pytest.raises(BrokerFault, match="BADCALL"):
        broker.call(calls.apply(keys, [one] * 101))


def test_settlements_of_nobodys_messages_refuse_it(broker: BlockingBroker, keys: QueueKeys) -> None:
    for settlement in (Settlement(1, 1, 1), Settlement(1, 5, 4), Settlement(1, 1, 2**47)):
        with pytest.raises(LockLost):
            broker.call(calls.apply(keys, [CompleteOperation([settlement])]))


def test_in_a_dead_letter_queue_it_completes_and_does_not_dead_letter(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 2)
    broker.call(calls.dead_letter(keys, settlements(receive(broker, keys))))
    dead = keys.dead_letters
    received = receive(broker, dead)
    assert broker.call(calls.apply(dead, [CompleteOperation(locked_as(received, [1]))])) == [0]
    totals = broker.call(calls.totals(keys))
    assert totals.dead_letters == 1
    assert totals.bytes == sum(len(one) for _, _, one in peeked(broker, dead))
