import pytest

from harness.clock import Clock
from harness.deliveries import (
    accept,
    bodies,
    body_of,
    configure,
    contents,
    delivery_counts,
    drain,
    fill,
    numbers,
    placed,
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
from partitionedqueue.model.errors import (
    BrokerFault,
    EntityDisabled,
    SessionLockLost,
    SessionRequired,
    SessionsNotSupported,
    TooManyLocks,
)
from partitionedqueue.model.queue_spec import QueueStatus


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


def test_the_lock_lasts_as_the_queue_says_where_the_receiver_does_not(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, lock_ms=7_000)
    send(broker, keys, 1)
    received = receive(broker, keys, 1, lock_ms=-1)
    assert received.locked_until_ms == received.now_ms + 7_000


def test_receive_and_delete_leaves_nothing(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 600)
    received = receive(broker, keys, 600, lock_ms=0)
    assert numbers(received) == list(range(1, 601))
    assert received.locked_until_ms == 0
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.bytes, totals.last) == (0, 0, 600)
    assert broker.raw(("EXISTS", keys.segment(0), keys.segment(1))) == [0]


def test_a_lock_holds_until_its_last_millisecond_and_not_on_it(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send(broker, keys, 1)
    receive(broker, keys, 1, lock_ms=1000)
    clock.advance(999)
    assert receive(broker, keys, 1).runs == []
    clock.advance(1)
    assert numbers(receive(broker, keys, 1)) == [1]


def test_an_expired_lock_gives_messages_back_to_their_place_and_counts(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send(broker, keys, 300)
    receive(broker, keys, 2, lock_ms=1)
    clock.advance(1)
    received = receive(broker, keys, 300)
    assert numbers(received) == list(range(1, 301))
    assert delivery_counts(received) == {n: 2 if n < 3 else 1 for n in range(1, 301)}


def test_locks_of_different_lengths_expire_each_in_its_time(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send(broker, keys, 6)
    for lock_ms in (50, 10, 30, 20, 60, 40):
        receive(broker, keys, 1, lock_ms=lock_ms)
    for expected in (2, 4, 3, 6, 1, 5):
        clock.advance(9)
        assert receive(broker, keys).runs == []
        clock.advance(1)
        assert numbers(receive(broker, keys)) == [expected]


def test_ask_again_is_when_the_next_lock_expires(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    assert receive(broker, keys).ask_again_ms == -1
    send(broker, keys, 2)
    receive(broker, keys, 1, lock_ms=5_000)
    receive(broker, keys, 1, lock_ms=3_000)
    again = receive(broker, keys)
    assert again.runs == []
    assert again.ask_again_ms == clock.now_ms + 3_000
    clock.set(again.ask_again_ms)
    assert numbers(receive(broker, keys)) == [2]


def test_ask_again_is_when_the_next_scheduled_message_is_due(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send_one(broker, keys, b"late", scheduled_enqueue_time_ms=clock.now_ms + 500)
    again = receive(broker, keys)
    assert (again.runs, again.ask_again_ms) == ([], clock.now_ms + 500)


def test_large_messages_come_in_replies_of_about_4_mb(broker: BlockingBroker, keys: QueueKeys) -> None:
    for _ in range(8):
        broker.call(calls.send(keys, [stored(bytes(250_000))] * 8))
    received = receive(broker, keys, 64)
    assert 16 <= len(placed(received.runs)) <= 33  # the run that reaches 4 MB is the last, and is itself no larger


def test_receive_stops_at_the_bytes_asked_for_but_gives_one(broker: BlockingBroker, keys: QueueKeys) -> None:
    one = len(stored(b"message 1"))
    send(broker, keys, 9)
    received = broker.call(calls.receive(keys, most=9, bytes_most=3 * one))
    assert numbers(received) == [1, 2, 3]
    assert numbers(broker.call(calls.receive(keys, most=9, bytes_most=1))) == [4]
    assert numbers(broker.call(calls.receive(keys, most=9, bytes_most=2 * one + 1))) == [5, 6]
    assert numbers(broker.call(calls.receive(keys, most=9))) == [7, 8, 9]


def test_small_messages_before_large_ones_do_not_make_a_reply_too_large(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    fill(broker, keys, bodies(20))
    fill(broker, keys, [stored(bytes(200_000))] * 20)
    received = broker.call(calls.receive(keys, most=40, bytes_most=1_000_000))
    assert 20 < len(placed(received.runs)) <= 25
    assert sum(len(one) for _, one in placed(received.runs)) <= 1_000_000


@pytest.mark.parametrize("status", [QueueStatus.DISABLED, QueueStatus.RECEIVE_DISABLED])
def test_receive_from_a_disabled_queue_is_refused(broker: BlockingBroker, keys: QueueKeys, status: QueueStatus) -> None:
    send(broker, keys, 1)
    configure(broker, keys, status=status)
    with pytest.raises(EntityDisabled):
        receive(broker, keys)
    configure(broker, keys, status=QueueStatus.SEND_DISABLED)
    assert numbers(receive(broker, keys)) == [1]


def test_receive_names_a_session_where_there_are_sessions_and_nowhere_else(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    with pytest.raises(SessionsNotSupported):
        receive(broker, keys, session=SessionLock("s", 1))
    configure(broker, keys, sessions=True)
    send_one(broker, keys, session_id="s")
    with pytest.raises(SessionRequired):
        receive(broker, keys)


def test_a_session_gives_its_own_messages_in_order(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    for n in range(9):
        send_one(broker, keys, b"%d" % n, session_id="abc"[n % 3])
    session = accept(broker, keys, "b")
    assert received_bodies(receive(broker, keys, 2, session=session)) == [b"1", b"4"]
    assert received_bodies(receive(broker, keys, 2, session=session)) == [b"7"]
    assert receive(broker, keys, 2, session=session).runs == []


def test_what_a_session_receives_is_locked_as_long_as_the_session(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, sessions=True)
    send_one(broker, keys, session_id="s")
    session = accept(broker, keys, "s", lock_ms=10_000)
    clock.advance(4_000)
    received = receive(broker, keys, session=session)
    assert received.locked_until_ms == clock.now_ms + 6_000


def test_receive_under_a_lost_session_lock_is_refused(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    configure(broker, keys, sessions=True)
    send_one(broker, keys, session_id="s")
    session = accept(broker, keys, "s", lock_ms=1_000)
    with pytest.raises(SessionLockLost):
        receive(broker, keys, session=SessionLock("s", session.lock + 1))
    with pytest.raises(SessionLockLost):
        receive(broker, keys, session=SessionLock("t", session.lock))
    clock.advance(1_000)
    with pytest.raises(SessionLockLost):
        receive(broker, keys, session=session)
    assert received_bodies(receive(broker, keys, session=accept(broker, keys, "s"))) == [b"x"]


def test_receive_and_delete_in_a_session_leaves_nothing_of_it(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    for n in range(4):
        send_one(broker, keys, b"%d" % n, session_id="ab"[n % 2])
    session = accept(broker, keys, "a")
    assert received_bodies(receive(broker, keys, lock_ms=0, session=session)) == [b"0", b"2"]
    broker.call(calls.release_session(keys, session))
    assert broker.call(calls.list_sessions(keys)) == ["b"]
    assert broker.call(calls.totals(keys)).messages == 2


def test_a_session_that_holds_too_many_receives_gets_no_more_until_some_are_settled(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    configure(broker, keys, sessions=True)
    fill(broker, keys, bodies(2_100, session_id="s"))
    session = accept(broker, keys)
    one = calls.receive(keys, most=1, session=session)
    received = broker.pipeline([one] * 2_048)
    assert [number for each in received for number in numbers(each)] == list(range(1, 2_049))
    with pytest.raises(TooManyLocks):
        broker.call(one)
    several = [settlement for each in received[:1000] for settlement in settlements(each)]
    assert broker.call(calls.complete(keys, several, session=session)) == []
    assert numbers(broker.call(one)) == [2_049]


def test_receive_by_place_is_under_a_lock(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 3)
    with pytest.raises(BrokerFault, match="BADCALL"):
        broker.call(calls.receive_places(keys, most=3, lock_ms=0))
    (place,) = broker.call(calls.receive_places(keys, most=3)).places
    assert [body_of(one) for one in broker.call(calls.bodies(keys, place))] == [b"message %d" % n for n in (1, 2, 3)]
    assert broker.call(calls.complete(keys, [Settlement(place.lock, 1, 3)])) == []


def test_a_thousand_expired_locks_come_back_in_order(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 1000)
    for _ in range(1000):
        receive(broker, keys, 1, lock_ms=1)
    clock.advance(1)
    drain(broker, keys, clock.now_ms)
    found: list[int] = []
    while received := receive(broker, keys, 1000).runs:
        found += [n for n, _ in placed(received)]
    assert found == list(range(1, 1001))


def test_after_a_loss_the_same_message_is_settled_by_its_new_receiver_only(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send(broker, keys, 1)
    late = receive(broker, keys, lock_ms=1000)
    clock.advance(1000)
    quick = receive(broker, keys)
    assert settlements(late) != settlements(quick)
    assert broker.call(calls.complete(keys, settlements(late))) == [0]
    assert broker.call(calls.complete(keys, settlements(quick))) == []


def test_nonsense_is_refused_and_changes_nothing(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 2)
    before = contents(broker)
    for words in (
        (0, 1, 0),
        (1001, 1, 0),
        ("x", 1, 0),
        (1, 300_001, 0),
        (1, -2, 0),
        (1, 1.5, 0),
        (1, 1, -1),
        (1, 1, "x"),
    ):
        with pytest.raises(BrokerFault, match="BADCALL"):
            broker.raw(("FCALL", "pq_receive", 1, keys.state, *map(str, words), "", 0))
    assert contents(broker) == before
