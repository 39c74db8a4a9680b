"""The consistency check itself: it is content with a healthy queue, and sees each kind of damage."""

import pytest

from harness import consistency
from harness.clock import Clock
from harness.deliveries import LOCK_MS, accept, configure, locked_as, receive, send, send_one, settlements
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys

DAMAGES: dict[str, tuple[tuple[str | int, ...], ...]] = {
    "a body is lost": (("RPOP", ":seg:0"),),
    "a body has other bytes": (("LSET", ":seg:0", 299 - 256, "x"), ("LSET", ":seg:1", 43, "x")),
    "a segment is lost": (("DEL", ":seg:1"),),
    "a segment's sizes are cut short": (("SETRANGE", ":sizes:1", 0, "xxxx"),),
    "a body that nobody took in": (("RPUSH", ":seg:7", "x"),),
    "a run is lost": (("HDEL", "", "r1"),),
    "a run too many": (("ZADD", ":returned", 5, 77),),
    "what has gone is forgotten": (("HDEL", "", "g0"),),
    "a deferred message is forgotten": (("HDEL", "", "d0"),),
    "a scheduled message is forgotten": (("HDEL", "", "h1"),),
    "what is due is forgotten": (("DEL", ":due"),),
    "a claim is lost": (("RPOP", ":log:g"),),
    "the counters are lost": (("HDEL", "", "c"),),
    "a message id too many": (("HSET", ":ids:1", "another one", "when"),),
}


@pytest.fixture
def damaged(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> BlockingBroker:
    """A broker with a bit of everything."""
    configure(broker, keys, dead_letter_expired=True)
    send(broker, keys, 300)
    received = receive(broker, keys, 200)
    broker.call(calls.complete(keys, locked_as(received, range(1, 20))))
    broker.call(calls.defer(keys, locked_as(received, range(30, 40))))
    broker.call(calls.abandon(keys, locked_as(received, range(50, 60))))
    broker.call(calls.dead_letter(keys, locked_as(received, range(70, 80))))
    send_one(broker, keys, scheduled_enqueue_time_ms=clock.now_ms + 60_000)
    send_one(broker, keys, time_to_live_ms=60_000)
    broker.call(calls.claim_open(keys, "g", "o", LOCK_MS))
    broker.call(calls.claim(keys, "g", "o", LOCK_MS, 0, 20))
    return broker


def test_a_healthy_queue_is_consistent(damaged: BlockingBroker, keys: QueueKeys) -> None:
    consistency.check(damaged, keys.state)


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_seen(damaged: BlockingBroker, keys: QueueKeys, kind: str) -> None:
    for command, suffix, *words in DAMAGES[kind]:
        damaged.raw((command, f"{keys.state}{suffix}", *words))
    with pytest.raises((AssertionError, KeyError)):
        consistency.check(damaged, keys.state)


@pytest.mark.parametrize("suffix", ["sessions", "states", "due"])
def test_damage_of_sessions_is_seen(broker: BlockingBroker, keys: QueueKeys, suffix: str) -> None:
    configure(broker, keys, sessions=True)
    for session_id in "abab":
        send_one(broker, keys, session_id=session_id)
    session = accept(broker, keys)
    received = receive(broker, keys, session=session)
    broker.call(calls.complete(keys, settlements(received)[:1], session=session))
    broker.call(calls.set_session_state(keys, session, b"state"))
    consistency.check(broker, keys.state, sessions=True)
    broker.raw(("DEL", f"{keys.state}:{suffix}"))
    with pytest.raises((AssertionError, KeyError)):
        consistency.check(broker, keys.state, sessions=True)
