"""An empty session id is a session like any other, for every command that knows sessions."""

import pytest

from harness.deliveries import (
    LOCK_MS,
    accept,
    body_of,
    configure,
    locked_as,
    peeked,
    placed,
    receive,
    received_bodies,
    send_one,
    stored,
)
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.operations import CompleteOperation
from partitionedqueue.broker.replies import Received, SessionLock
from partitionedqueue.model.errors import (
    MessageNotFound,
    SessionCannotBeLocked,
    SessionLockLost,
    SessionRequired,
    SessionsNotSupported,
)


def given(received: Received) -> list[int]:
    return [number for number, _ in placed(received.runs)]


@pytest.fixture
def sessions(broker: BlockingBroker) -> QueueKeys:
    keys = QueueKeys("sessions")
    configure(broker, keys, sessions=True)
    return keys


@pytest.fixture
def held(broker: BlockingBroker, sessions: QueueKeys) -> SessionLock:
    """The empty session, with messages 1 and 3; 2 is another session's."""
    for number, session_id in enumerate(("", "a", ""), 1):
        send_one(broker, sessions, b"%d" % number, session_id=session_id)
    return accept(broker, sessions, "")


def test_it_is_accepted_by_its_name_and_as_the_next_one(broker: BlockingBroker, sessions: QueueKeys) -> None:
    send_one(broker, sessions, session_id="")
    named = accept(broker, sessions, "")
    assert named.session_id == ""
    with pytest.raises(SessionCannotBeLocked):
        accept(broker, sessions, "")
    broker.call(calls.release_session(sessions, named))
    assert accept(broker, sessions).session_id == ""
    assert broker.call(calls.accept_session(sessions)).session is None


def test_receive_gives_its_messages_alone(broker: BlockingBroker, sessions: QueueKeys, held: SessionLock) -> None:
    assert given(receive(broker, sessions, session=held)) == [1, 3]


def test_receive_by_place_does_too(broker: BlockingBroker, sessions: QueueKeys, held: SessionLock) -> None:
    got = broker.call(calls.receive_places(sessions, most=10, session=held))
    assert [place.first for place in got.places] == [1, 3]


def test_no_session_is_not_the_empty_one(broker: BlockingBroker, sessions: QueueKeys, held: SessionLock) -> None:
    with pytest.raises(SessionRequired):
        receive(broker, sessions)
    with pytest.raises(SessionRequired):
        broker.call(calls.receive_deferred(sessions, [1]))
    broker.call(calls.claim_open(sessions, "g", "reader", LOCK_MS))
    assert broker.call(calls.claim(sessions, "g", "reader", LOCK_MS, 0, 10)).end == 1, "another session's"
    with pytest.raises(SessionLockLost):
        receive(broker, sessions, session=SessionLock("", held.lock + 1))


def test_a_queue_without_sessions_has_no_empty_one(broker: BlockingBroker, keys: QueueKeys) -> None:
    with pytest.raises(SessionsNotSupported):
        receive(broker, keys, session=SessionLock("", 1))
    with pytest.raises(SessionsNotSupported):
        accept(broker, keys, "")


@pytest.mark.parametrize("how", ["complete", "abandon", "defer", "dead_letter"])
def test_every_settlement_acts_in_it(broker: BlockingBroker, sessions: QueueKeys, held: SessionLock, how: str) -> None:
    settlements = locked_as(receive(broker, sessions, session=held), [1, 3])
    settle = getattr(calls, how)
    assert broker.call(settle(sessions, settlements)) == [0, 1]
    assert broker.call(settle(sessions, settlements, session=held)) == []


def test_its_deferred_messages_come_back_to_it(broker: BlockingBroker, sessions: QueueKeys, held: SessionLock) -> None:
    settlements = locked_as(receive(broker, sessions, session=held), [1, 3])
    broker.call(calls.defer(sessions, settlements, session=held))
    assert received_bodies(broker.call(calls.receive_deferred(sessions, [3, 1], session=held)))
    other = accept(broker, sessions, "a")
    with pytest.raises(MessageNotFound):
        broker.call(calls.receive_deferred(sessions, [1], session=other))


def test_it_is_renewed_keeps_a_state_and_is_released(
    broker: BlockingBroker, sessions: QueueKeys, held: SessionLock
) -> None:
    assert broker.call(calls.renew_session(sessions, held)) > 0
    broker.call(calls.set_session_state(sessions, held, b"here"))
    assert broker.call(calls.get_session_state(sessions, held)) == b"here"
    receive(broker, sessions, session=held)
    broker.call(calls.release_session(sessions, held))
    with pytest.raises(SessionLockLost):
        broker.call(calls.renew_session(sessions, held))
    assert given(receive(broker, sessions, session=accept(broker, sessions, ""))) == [1, 3]


def test_it_is_listed_and_peeked(broker: BlockingBroker, sessions: QueueKeys, held: SessionLock) -> None:
    listed = broker.call(calls.list_sessions(sessions))
    assert sorted(listed) == ["", "a"]
    assert [body_of(one) for _, _, one in peeked(broker, sessions, session="")] == [b"1", b"3"]
    assert len(peeked(broker, sessions)) == 3


def test_a_transaction_acts_in_it(broker: BlockingBroker, sessions: QueueKeys, held: SessionLock) -> None:
    settlements = locked_as(receive(broker, sessions, session=held), [1])
    broker.call(calls.apply(sessions, [CompleteOperation(settlements)], session=held))
    assert [number for number, _, _ in peeked(broker, sessions)] == [2, 3]


def test_a_push_stores_into_it_and_refuses_messages_without_one(broker: BlockingBroker, sessions: QueueKeys) -> None:
    broker.call(calls.send_pushed(sessions, [stored(b"1", session_id="")] * 300, guess=0))
    with pytest.raises(SessionRequired):
        broker.call(calls.send_pushed(sessions, [stored(b"2")] * 3, guess=300))
    assert given(receive(broker, sessions, 1000, session=accept(broker, sessions, ""))) == list(range(1, 301))


def test_its_dead_letters_go_back_to_it(broker: BlockingBroker, sessions: QueueKeys, held: SessionLock) -> None:
    settlements = locked_as(receive(broker, sessions, session=held), [1, 3])
    broker.call(calls.dead_letter(sessions, settlements, session=held))
    assert broker.call(calls.resubmit(sessions.dead_letters)).count == 2
    assert given(receive(broker, sessions, session=held)) == [4, 5]


def test_a_lock_that_runs_out_gives_it_to_the_next(broker: BlockingBroker, sessions: QueueKeys) -> None:
    send_one(broker, sessions, session_id="")
    first = accept(broker, sessions, "", lock_ms=1)
    while True:
        accepted = broker.call(calls.accept_session(sessions)).session
        if accepted is not None:
            break
    assert accepted.session_id == ""
    assert accepted.lock > first.lock
