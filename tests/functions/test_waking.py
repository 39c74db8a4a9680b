"""Whoever listens and then asks misses nothing: what is published on a queue's channel, and when."""

from collections.abc import Iterator

import pytest

from harness.clock import Clock
from harness.deliveries import (
    accept,
    configure,
    drain,
    locked_as,
    receive,
    send,
    send_one,
    settlements,
)
from harness.redis_servers import Broker
from harness.waiting import Ear
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys


def words(ear: Ear) -> list[str]:
    return [said for _, said in ear.heard()]


@pytest.fixture
def ear(redis_server: Broker, keys: QueueKeys) -> Iterator[Ear]:
    listening = Ear(redis_server, keys.wake)
    yield listening
    listening.close()


def test_a_queue_that_has_something_again_says_so_and_a_queue_that_has_more_does_not(
    broker: BlockingBroker, keys: QueueKeys, ear: Ear
) -> None:
    send(broker, keys, 1)
    assert words(ear) == [""]
    send(broker, keys, 1)
    assert ear.heard() == []
    receive(broker, keys, lock_ms=0)
    assert ear.heard() == []
    send(broker, keys, 1)
    assert words(ear) == [""]


def test_what_is_given_back_wakes(broker: BlockingBroker, keys: QueueKeys, ear: Ear, clock: Clock) -> None:
    send(broker, keys, 2)
    received = receive(broker, keys, lock_ms=1000)
    ear.heard()
    broker.call(calls.abandon(keys, locked_as(received, [1])))
    assert words(ear) == [""]
    receive(broker, keys, lock_ms=2000)
    ear.heard()
    clock.advance(1000)
    drain(broker, keys, clock.now_ms)
    assert words(ear) == [""]


def test_what_falls_due_sooner_than_all_before_wakes(
    broker: BlockingBroker, keys: QueueKeys, ear: Ear, clock: Clock
) -> None:
    send_one(broker, keys, scheduled_enqueue_time_ms=clock.now_ms + 9_000)
    assert words(ear) == [""]
    send_one(broker, keys, scheduled_enqueue_time_ms=clock.now_ms + 99_000)
    assert ear.heard() == []
    send_one(broker, keys, scheduled_enqueue_time_ms=clock.now_ms + 1_000)
    assert words(ear) == [""]
    clock.advance(1_000)
    drain(broker, keys, clock.now_ms)
    assert words(ear) == [""]


def test_a_dead_letter_wakes_the_receivers_of_dead_letters(
    redis_server: Broker, broker: BlockingBroker, keys: QueueKeys
) -> None:
    ear = Ear(redis_server, keys.dead_letters.wake)
    send(broker, keys, 2)
    received = receive(broker, keys)
    broker.call(calls.dead_letter(keys, locked_as(received, [1])))
    assert words(ear) == [""]
    broker.call(calls.dead_letter(keys, locked_as(received, [2])))
    assert ear.heard() == []
    ear.close()


def test_resubmitted_messages_wake_the_queues_receivers(broker: BlockingBroker, keys: QueueKeys, ear: Ear) -> None:
    send(broker, keys, 1)
    broker.call(calls.dead_letter(keys, settlements(receive(broker, keys))))
    ear.heard()
    broker.call(calls.resubmit(keys.dead_letters))
    assert words(ear) == [""]


def test_a_session_says_its_name(broker: BlockingBroker, keys: QueueKeys, ear: Ear) -> None:
    configure(broker, keys, sessions=True)
    send_one(broker, keys, session_id="s")
    assert words(ear) == ["s"]
    send_one(broker, keys, session_id="s")
    assert ear.heard() == []
    send_one(broker, keys, session_id="t")
    assert words(ear) == ["t"]


def test_a_held_session_that_goes_from_nothing_to_something_wakes_its_receiver(
    broker: BlockingBroker, keys: QueueKeys, ear: Ear
) -> None:
    configure(broker, keys, sessions=True)
    session = accept(broker, keys, "s")
    ear.heard()
    send_one(broker, keys, session_id="s")
    assert words(ear) == ["s"]
    send_one(broker, keys, session_id="s")
    assert ear.heard() == []
    received = receive(broker, keys, session=session)
    assert ear.heard() == []
    broker.call(calls.abandon(keys, settlements(received), session=session))
    assert words(ear) == ["s"]


def test_a_session_with_messages_that_is_let_go_wakes_those_who_want_the_next(
    broker: BlockingBroker, keys: QueueKeys, ear: Ear, clock: Clock
) -> None:
    configure(broker, keys, sessions=True)
    send_one(broker, keys, session_id="s")
    session = accept(broker, keys, "s")
    ear.heard()
    broker.call(calls.release_session(keys, session))
    assert words(ear) == ["s"]
    session = accept(broker, keys, "s", lock_ms=1000)
    receive(broker, keys, session=session)
    ear.heard()
    clock.advance(1000)
    drain(broker, keys, clock.now_ms)
    assert words(ear) == ["s"]


def test_an_empty_session_that_is_let_go_wakes_nobody(broker: BlockingBroker, keys: QueueKeys, ear: Ear) -> None:
    configure(broker, keys, sessions=True)
    session = accept(broker, keys, "s")
    ear.heard()
    broker.call(calls.release_session(keys, session))
    assert ear.heard() == []
