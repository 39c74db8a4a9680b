import pytest

from harness.deliveries import accept, configure, receive, send_one, settlements
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model.errors import BrokerFault, SessionsNotSupported


def test_sessions_with_messages_a_state_or_a_lock_are_listed(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    for session_id in ("waits", "is held", "has gone"):
        send_one(broker, keys, session_id=session_id)
    accept(broker, keys, "is held")
    accept(broker, keys, "is locked and empty")
    with_state = accept(broker, keys, "has a state")
    broker.call(calls.set_session_state(keys, with_state, b"x"))
    broker.call(calls.release_session(keys, with_state))
    gone = accept(broker, keys, "has gone")
    broker.call(calls.complete(keys, settlements(receive(broker, keys, session=gone)), session=gone))
    broker.call(calls.release_session(keys, gone))
    listed = broker.call(calls.list_sessions(keys))
    assert listed[0] == "waits"
    assert sorted(listed) == ["has a state", "is held", "is locked and empty", "waits"]


def test_many_are_listed_page_by_page(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    ids = [f"session {n}" for n in range(250)]
    for session_id in ids:
        send_one(broker, keys, session_id=session_id)
    pages = [broker.call(calls.list_sessions(keys, skip=skip, most=100)) for skip in (0, 100, 200, 300)]
    assert [len(page) for page in pages] == [100, 100, 50, 0]
    assert [name for page in pages for name in page] == ids


def test_a_queue_without_sessions_and_nonsense_are_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    with pytest.raises(SessionsNotSupported):
        broker.call(calls.list_sessions(keys))
    configure(broker, keys, sessions=True)
    for skip, most in ((-1, 1), (0, 0), (0, 1001)):
        with pytest.raises(BrokerFault, match="BADCALL"):
            broker.call(calls.list_sessions(keys, skip=skip, most=most))
