"""Receivers that wait at a real broker: woken, not polling; in order; and nothing stays locked that nobody has."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from harness import deliveries
from harness.deliveries import delivery_counts, received_bodies, send_one, settlements, stored
from harness.redis_servers import Broker
from partitionedqueue.broker import calls
from partitionedqueue.broker.bell import Bell
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.logins import fixed
from partitionedqueue.broker.receiver import DELETE, PartitionReceiver
from partitionedqueue.broker.replies import AcceptedSession, Received, SessionLock
from partitionedqueue.model import limits
from partitionedqueue.model.errors import (
    BrokerFault,
    BrokerUnavailable,
    EntityDisabled,
    SessionCannotBeLocked,
    SessionLockLost,
    SessionRequired,
)
from partitionedqueue.model.queue_spec import QueueStatus

KEYS = QueueKeys("q")
LONG_S = 30.0  # a wait that a test does not wait to its end


@pytest.fixture
def broker(server: Broker) -> Iterator[BlockingBroker]:
    with BlockingBroker(server.address) as one:
        deliveries.configure(one, KEYS)
        yield one


@pytest.fixture
async def receiver(broker: BlockingBroker, client: BrokerClient, bell: Bell) -> AsyncIterator[PartitionReceiver]:
    one = PartitionReceiver(client, bell, KEYS)
    yield one
    await one.close()


def with_sessions(broker: BlockingBroker) -> None:
    deliveries.configure(broker, KEYS, sessions=True)


def calls_so_far(server: Broker) -> int:
    """How often a command of the library that may write was called."""
    with contextlib.closing(server.connect()) as connection:
        found: dict[str, Any] = connection.info("commandstats")
    return int(found.get("cmdstat_fcall", {}).get("calls", 0))


async def until(what: Callable[[], object], *, seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not what():  # noqa: ASYNC110 -- another process decides
            await asyncio.sleep(0.01)


async def until_quiet(server: Broker) -> int:
    """Wait until nobody calls any more; gives how often it was called by then."""
    before, now = -1, calls_so_far(server)
    async with asyncio.timeout(10):
        while before != now:
            await asyncio.sleep(0.1)
            before, now = now, calls_so_far(server)
    return now


def in_line(
    receiver: PartitionReceiver, count: int, *, most: int = 1, lock_ms: int = calls.QUEUES_LOCK
) -> list["asyncio.Task[Received]"]:
    return [
        asyncio.create_task(receiver.receive(most=most, lock_ms=lock_ms, wait_s=LONG_S), name=f"receiver {n}")
        for n in range(count)
    ]


async def leave(tasks: list["asyncio.Task[Any]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_what_is_there_comes_at_once_and_in_order(broker: BlockingBroker, receiver: PartitionReceiver) -> None:
    deliveries.send(broker, KEYS, 700)
    several = await asyncio.gather(*(receiver.receive(most=300) for _ in range(4)))
    found = [deliveries.numbers(one) for one in several]
    assert found == [list(range(1, 301)), list(range(301, 601)), list(range(601, 701)), []]
    assert all(one.locked_until_ms > one.now_ms for one in several[:3])
    for one in several[:3]:
        assert broker.call(calls.complete(KEYS, settlements(one))) == []
    assert broker.call(calls.totals(KEYS)).messages == 0


async def test_a_receiver_that_waits_has_the_message_when_it_is_sent(
    broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    waiting = in_line(receiver, 1)
    await asyncio.sleep(0.3)
    assert not waiting[0].done()
    send_one(broker, KEYS, b"hello")
    async with asyncio.timeout(5):
        assert received_bodies(await waiting[0]) == [b"hello"]


async def test_a_message_costs_a_herd_of_receivers_a_call_or_two(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    herd = in_line(receiver, 200)
    before = await until_quiet(server)
    send_one(broker, KEYS)
    await until(lambda: any(task.done() for task in herd))
    assert await until_quiet(server) - before - 1 <= 2
    assert [task.get_name() for task in herd if task.done()] == ["receiver 0"]
    await leave(herd)


async def test_a_hundred_messages_for_a_hundred_receivers_come_in_a_few_calls_each_with_its_own(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    herd = in_line(receiver, 100)
    before = await until_quiet(server)
    deliveries.send(broker, KEYS, 100)
    async with asyncio.timeout(10):
        found = [deliveries.numbers(one) for one in await asyncio.gather(*herd)]
    assert found == [[n] for n in range(1, 101)]
    assert calls_so_far(server) - before < 10


async def test_who_waits_does_not_poll(server: Broker, receiver: PartitionReceiver) -> None:
    herd = in_line(receiver, 20)
    before = await until_quiet(server)
    await asyncio.sleep(2.5)
    assert calls_so_far(server) == before
    await leave(herd)


async def test_a_wait_that_ends_gives_nothing_and_the_next_receive_finds_what_came(
    broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    assert (await receiver.receive(most=1)).runs == []
    began = time.monotonic()
    assert (await receiver.receive(most=1, wait_s=0.4)).runs == []
    assert time.monotonic() - began > 0.35
    send_one(broker, KEYS, b"late")
    assert received_bodies(await receiver.receive(most=1)) == [b"late"]


async def test_a_receive_that_does_not_wait_asks_although_others_wait(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    others = in_line(receiver, 2)
    before = await until_quiet(server)
    assert (await receiver.receive(most=1)).runs == []
    assert calls_so_far(server) == before + 1
    assert not any(task.done() for task in others)
    await leave(others)


async def test_one_that_leaves_while_its_call_is_under_way_gives_back_at_once_and_uncounted(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    await receiver.receive(most=1)
    send_one(broker, KEYS, b"again")
    server.pause()
    leaving = in_line(receiver, 1, lock_ms=60_000)
    await asyncio.sleep(0.1)
    await leave(list(leaving))
    server.resume()
    assert await until_quiet(server) >= 4, "configured, received, sent, received; and given back"
    assert (broker.call(calls.totals(KEYS)).ready, broker.call(calls.totals(KEYS)).locked) == (1, 0)
    assert list(delivery_counts(await receiver.receive(most=1)).values()) == [1]


async def test_what_comes_for_one_that_has_left_goes_to_the_next_in_line(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    deliveries.send(broker, KEYS, 2)
    await receiver.receive(most=2)
    server.pause()
    waiting = in_line(receiver, 3)
    await asyncio.sleep(0.1)
    await leave(waiting[:1])
    server.resume()
    deliveries.send(broker, KEYS, 1)
    async with asyncio.timeout(5):
        assert deliveries.numbers(await waiting[1]) == [3]
    await leave(waiting[2:])
    await until_quiet(server)
    assert broker.call(calls.totals(KEYS)).locked == 3


async def test_a_result_that_nobody_has_taken_yet_goes_back_when_its_receiver_leaves(
    broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    send_one(broker, KEYS)
    want = receiver.want(most=1)
    await want.result
    want.withdraw()
    await until(lambda: broker.call(calls.totals(KEYS)).locked == 0)


async def test_what_was_deleted_for_one_that_has_left_is_kept_for_the_next(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    await receiver.receive(most=1, lock_ms=DELETE)
    deliveries.send(broker, KEYS, 3)
    server.pause()
    leaving = [asyncio.create_task(receiver.receive(most=3, lock_ms=DELETE)) for _ in range(1)]
    await asyncio.sleep(0.1)
    await leave(list(leaving))
    server.resume()
    await until(lambda: broker.call(calls.totals(KEYS)).messages == 0)
    assert (await receiver.receive(most=1)).runs == []
    assert deliveries.numbers(await receiver.receive(most=2, lock_ms=DELETE)) == [1, 2]
    assert deliveries.numbers(await receiver.receive(most=2, lock_ms=DELETE)) == [3]


async def test_different_kinds_of_receivers_stand_in_one_line(
    broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    kinds = [60_000, DELETE, 60_000, 30_000]
    tasks = [task for lock_ms in kinds for task in in_line(receiver, 1, lock_ms=lock_ms)]
    await asyncio.sleep(0.2)
    deliveries.send(broker, KEYS, 4)
    async with asyncio.timeout(5):
        found = [await task for task in tasks]
    assert sorted(n for one in found for n in deliveries.numbers(one)) == [1, 2, 3, 4]
    assert [one.locked_until_ms > 0 for one in found] == [True, False, True, True]


async def test_a_lock_that_expires_wakes_who_waits(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    send_one(broker, KEYS)
    deliveries.receive(broker, KEYS, 1, lock_ms=600)
    waiting = in_line(receiver, 3)
    before = await until_quiet(server)
    async with asyncio.timeout(5):
        received = await waiting[0]
    assert list(delivery_counts(received).values()) == [2]
    assert await until_quiet(server) - before <= 3
    await leave(waiting)


async def test_a_lock_taken_elsewhere_after_the_wait_began_wakes_too_when_it_expires(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    send_one(broker, KEYS)
    elsewhere = deliveries.receive(broker, KEYS, 1)
    waiting = in_line(receiver, 1)
    await until_quiet(server)
    broker.call(calls.renew_lock(KEYS, settlements(elsewhere), lock_ms=500))
    async with asyncio.timeout(5):
        assert list(delivery_counts(await waiting[0]).values()) == [2]


async def test_a_scheduled_message_wakes_when_its_time_has_come_and_not_before(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    waiting = in_line(receiver, 3)
    before = await until_quiet(server)
    now_ms = broker.call(calls.totals(KEYS)).now_ms
    send_one(broker, KEYS, b"on time", scheduled_enqueue_time_ms=now_ms + 700)
    async with asyncio.timeout(5):
        received = await waiting[0]
    assert received_bodies(received) == [b"on time"]
    assert received.now_ms >= now_ms + 700
    assert await until_quiet(server) - before <= 6
    await leave(waiting)


async def test_who_waits_outlasts_a_broker_that_is_killed(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    waiting = in_line(receiver, 5)
    await until_quiet(server)
    await asyncio.to_thread(server.kill)
    await asyncio.sleep(0.5)
    assert not any(task.done() for task in waiting)
    await asyncio.to_thread(server.start)
    broker.close()
    send_one(broker, KEYS, b"after")
    async with asyncio.timeout(10):
        assert received_bodies(await waiting[0]) == [b"after"]
    await leave(waiting)


async def test_a_message_that_was_there_before_the_kill_comes_after_it(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    await asyncio.to_thread(server.kill)
    waiting = in_line(receiver, 2)
    await asyncio.sleep(0.3)
    await asyncio.to_thread(server.start)
    broker.close()
    send_one(broker, KEYS, b"one")
    async with asyncio.timeout(10):
        assert received_bodies(await waiting[0]) == [b"one"]
    await leave(waiting)


async def test_a_broker_that_is_away_at_the_end_of_the_wait_is_said(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    await asyncio.to_thread(server.kill)
    async with asyncio.timeout(10):
        with pytest.raises(BrokerUnavailable):
            await receiver.receive(most=1)
        with pytest.raises(BrokerUnavailable):
            await receiver.receive(most=1, wait_s=0.5)


async def test_a_bell_that_cannot_be_heard_makes_receivers_ask_now_and_then(
    broker: BlockingBroker, client: BrokerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "UNHEARD_ASK_S", 0.2)
    monkeypatch.setattr(limits, "BELL_BEGIN_S_MAX", 0.2)
    deaf = Bell(client.address, login=fixed("wrong"))
    receiver = PartitionReceiver(client, deaf, KEYS)
    broker.raw(("CONFIG", "SET", "requirepass", "secret"), ("AUTH", "default", "secret"))
    right = BrokerClient(client.address, login=fixed("secret"))
    receiver = PartitionReceiver(right, deaf, KEYS)
    waiting = in_line(receiver, 2)
    await asyncio.sleep(0.5)
    send_one(broker, KEYS, b"found")
    async with asyncio.timeout(5):
        assert received_bodies(await waiting[0]) == [b"found"]
    await leave(waiting)
    await receiver.close()
    await deaf.close()
    await right.close()


async def test_more_than_one_reply_carries_comes_in_several(
    broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    for _ in range(10):
        broker.call(calls.send(KEYS, [stored(b"x" * 200_000) for _ in range(5)]))
    tasks = in_line(receiver, 2, most=25)
    async with asyncio.timeout(10):
        found = await asyncio.gather(*tasks)
    assert [len(received_bodies(one)) > 0 for one in found] == [True, True]


async def test_larger_messages_come_whole_and_in_order_to_those_who_wait(
    broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    for first in range(0, 300, 100):
        broker.call(calls.send(KEYS, [stored(b"%d " % n + b"x" * 5000) for n in range(first, first + 100)]))
    several = await asyncio.gather(*(receiver.receive(most=most) for most in [10] + [7] * 50))
    found = [int(body.split()[0]) for one in several for body in received_bodies(one)]
    assert found == list(range(300))
    for one in several:
        assert broker.call(calls.complete(KEYS, settlements(one))) == []
    assert broker.call(calls.totals(KEYS)).messages == 0


async def test_a_refusal_reaches_everybody_who_was_asked_for(
    broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    waiting = in_line(receiver, 2)
    await asyncio.sleep(0.2)
    deliveries.configure(broker, KEYS, status=QueueStatus.RECEIVE_DISABLED)
    with pytest.raises(EntityDisabled):
        await receiver.receive(most=1)
    async with asyncio.timeout(5):
        for task in waiting:
            with pytest.raises(EntityDisabled):
                await task


async def test_a_call_that_cannot_be_fails_its_own_receiver_only(
    broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    waiting = in_line(receiver, 1)
    with pytest.raises(BrokerFault):
        await receiver.receive(most=1, lock_ms=10**9)
    send_one(broker, KEYS)
    async with asyncio.timeout(5):
        assert (await waiting[0]).runs != []


async def test_close_sends_everybody_away_and_gives_back_what_is_under_way(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    await receiver.receive(most=1)
    deliveries.send(broker, KEYS, 2)
    server.pause()
    waiting = in_line(receiver, 2)
    await asyncio.sleep(0.1)
    closing = asyncio.create_task(receiver.close())
    await asyncio.sleep(0.1)
    server.resume()
    await closing
    for task in waiting:
        with pytest.raises(BrokerUnavailable, match="closed"):
            await task
    assert broker.call(calls.totals(KEYS)).ready == 2
    with pytest.raises(BrokerUnavailable, match="closed"):
        await receiver.receive(most=1)


# ---- sessions


def accepting(receiver: PartitionReceiver, count: int) -> list["asyncio.Task[AcceptedSession]"]:
    return [asyncio.create_task(receiver.accept_session(wait_s=LONG_S), name=f"receiver {n}") for n in range(count)]


def held(accepted: AcceptedSession) -> SessionLock:
    assert accepted.session is not None
    return accepted.session


async def test_sessions_come_to_those_who_wait_for_the_next_one_each_once(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    with_sessions(broker)
    waiting = accepting(receiver, 50)
    before = await until_quiet(server)
    send_one(broker, KEYS, session_id="a")
    async with asyncio.timeout(5):
        assert held(await waiting[0]).session_id == "a"
    assert await until_quiet(server) - before - 1 <= 3
    send_one(broker, KEYS, session_id="b")
    async with asyncio.timeout(5):
        assert held(await waiting[1]).session_id == "b"
    assert not any(task.done() for task in waiting[2:])
    await leave(waiting[2:])


async def test_a_session_that_is_released_or_whose_lock_expires_comes_to_who_waits(
    broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    with_sessions(broker)
    send_one(broker, KEYS, session_id="a")
    first = deliveries.accept(broker, KEYS, "a")
    waiting = accepting(receiver, 2)
    await asyncio.sleep(0.2)
    broker.call(calls.release_session(KEYS, first))
    async with asyncio.timeout(5):
        second = held(await waiting[0])
    broker.call(calls.renew_session(KEYS, second, lock_ms=300))
    async with asyncio.timeout(5):
        assert held(await waiting[1]).session_id == "a"


async def test_a_named_session_that_is_held_is_refused_at_once(
    broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    with_sessions(broker)
    session = held(await receiver.accept_session("a"))
    async with asyncio.timeout(5):
        with pytest.raises(SessionCannotBeLocked):
            await receiver.accept_session("a", wait_s=LONG_S)
    broker.call(calls.release_session(KEYS, session))
    assert held(await receiver.accept_session("a")).session_id == "a"


@pytest.mark.parametrize("name", ["", "a"])
async def test_a_session_accepted_for_one_that_has_left_is_released(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver, name: str
) -> None:
    with_sessions(broker)
    send_one(broker, KEYS, session_id="a")
    await receiver.accept_session("other")
    server.pause()
    leaving = asyncio.create_task(receiver.accept_session(name))
    await asyncio.sleep(0.1)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    server.resume()
    await until_quiet(server)
    assert deliveries.accept(broker, KEYS, "a").session_id == "a"


async def test_a_held_session_is_received_from_in_order_and_waits_for_its_own_messages(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    with_sessions(broker)
    session = held(await receiver.accept_session("a"))
    waiting = asyncio.create_task(receiver.receive(most=10, session=session, wait_s=LONG_S))
    before = await until_quiet(server)
    send_one(broker, KEYS, b"not mine", session_id="b")
    await until_quiet(server)
    assert calls_so_far(server) <= before + 2, "another session's message does not concern it"
    assert not waiting.done()
    send_one(broker, KEYS, b"mine", session_id="a")
    async with asyncio.timeout(5):
        received = await waiting
    assert received_bodies(received) == [b"mine"]
    assert broker.call(calls.complete(KEYS, settlements(received), session=session)) == []


async def test_one_that_leaves_a_held_session_gives_back_within_it(
    server: Broker, broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    with_sessions(broker)
    session = held(await receiver.accept_session("a"))
    send_one(broker, KEYS, session_id="a")
    server.pause()
    leaving = asyncio.create_task(receiver.receive(most=1, session=session))
    await asyncio.sleep(0.1)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    server.resume()
    await until_quiet(server)
    assert list(delivery_counts(await receiver.receive(most=1, session=session)).values()) == [1]


async def test_sessions_are_refused_as_the_broker_does(broker: BlockingBroker, receiver: PartitionReceiver) -> None:
    with_sessions(broker)
    with pytest.raises(SessionRequired):
        await receiver.receive(most=1, wait_s=LONG_S)
    session = held(await receiver.accept_session("a"))
    broker.call(calls.release_session(KEYS, session))
    with pytest.raises(SessionLockLost):
        await receiver.receive(most=1, session=session, wait_s=LONG_S)


async def test_nobody_has_a_session_where_none_has_anything(
    broker: BlockingBroker, receiver: PartitionReceiver
) -> None:
    with_sessions(broker)
    assert (await receiver.accept_session()).session is None
    assert (await receiver.accept_session(wait_s=0.3)).session is None


async def test_one_bell_serves_several_queues_and_sub_queues(
    broker: BlockingBroker, client: BrokerClient, bell: Bell, receiver: PartitionReceiver
) -> None:
    dead = PartitionReceiver(client, bell, KEYS.dead_letters)
    waiting = asyncio.create_task(dead.receive(most=1, wait_s=LONG_S))
    await asyncio.sleep(0.2)
    send_one(broker, KEYS, b"poison")
    received = await receiver.receive(most=1)
    broker.call(calls.dead_letter(KEYS, settlements(received), reason="tired of it"))
    async with asyncio.timeout(5):
        assert received_bodies(await waiting) == [b"poison"]
    await dead.close()
