"""A queue of eighty partitions that is seldom used."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest

from harness.entities_in_use import Hand, bench, until
from harness.redis_servers import Broker, running_brokers
from harness.rest_door import answering

PARTITIONS = 80


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Broker]]:
    with running_brokers(tmp_path_factory.mktemp("eighty"), PARTITIONS, fsync="no") as found:
        yield found


@pytest.fixture
def eighty(started: list[Broker]) -> list[Broker]:
    """They know of no queue: a test's may have sessions, and another one's none."""
    for broker in started:
        with closing(broker.connect()) as connection:
            connection.flushall()
    return started


async def test_a_message_in_any_of_eighty_partitions_is_found_promptly(eighty: list[Broker]) -> None:
    for partition in (0, 41, 79):
        async with bench(eighty) as one:
            one.put(partition, f"in {partition}")
            hand = Hand(one.entity)
            hand.receiver.want(1)
            assert await hand.has(1) < 2.0  # eighty connections are made for it
            await one.entity.complete(hand.got[0].token)
            hand.receiver.want(1)
            await asyncio.sleep(0.3)
            before = one.calls_so_far()
            one.put((partition + 30) % PARTITIONS, "another")
            assert await hand.has(2) < 0.3
            await asyncio.sleep(0.1)
            assert one.calls_so_far() - before <= 5
            await one.entity.complete(hand.got[1].token)


async def test_credit_for_one_locks_one_of_eighty(eighty: list[Broker]) -> None:
    async with bench(eighty) as one:
        for partition in range(PARTITIONS):
            one.put(partition, f"{partition}")
        hand = Hand(one.entity)
        for count in range(1, PARTITIONS + 1):
            (message,) = await hand.receive(1)
            await one.entity.complete(message.token)
            assert len(hand.got) == count
        assert {message.partition for message in hand.got} == set(range(PARTITIONS))


async def test_drain_and_peek_over_eighty_partitions_are_prompt(eighty: list[Broker]) -> None:
    async with bench(eighty) as one:
        one.put(77, "far")
        (found,) = (await one.entity.peek(0, 10)).messages
        assert found.partition == 77
        hand = Hand(one.entity)
        hand.receiver.want(10)
        async with asyncio.timeout(2.0):
            await hand.receiver.drain()
        assert len(hand.got) == 1
        await one.entity.complete(hand.got[0].token)
        hand.receiver.want(10)
        async with asyncio.timeout(0.5):
            await hand.receiver.drain()
        assert len(hand.got) == 1


async def test_a_session_in_any_of_eighty_partitions_is_found(eighty: list[Broker]) -> None:
    async with bench(eighty, requires_session=True) as one:
        waiting = asyncio.create_task(one.entity.accept_session(within_s=10))
        await asyncio.sleep(0.5)
        one.put(63, "a", session_id="s")
        await until(waiting.done, 0.5)
        assert waiting.result().partition == 63
        await waiting.result().release()


async def test_who_waits_over_http_is_woken_by_any_of_eighty_partitions(eighty: list[Broker]) -> None:
    async with bench(eighty) as one, answering(one) as http:
        waiting = asyncio.create_task(http.lock("letters", within=120))
        calls = -1
        while calls != (calls := one.calls_so_far()) or not calls:  # noqa: ASYNC110 -- until all have been asked
            await asyncio.sleep(0.3)
        one.put(63, "hello")
        got = await asyncio.wait_for(waiting, 20)
        assert got.body == b"hello"
        assert (await http.ask("DELETE", got.held)).status == 200
        assert one.calls_so_far() - calls <= 5
