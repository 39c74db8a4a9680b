"""Brokers that are killed while much goes on: nothing that was acknowledged is lost, nothing completed comes back."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from harness.entities_in_use import Bench, Hand, bench, bodies, until
from harness.redis_servers import Broker, running_brokers
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.lock_token import LockToken
from partitionedqueue.model.message import Message
from partitionedqueue.model.storable import storable
from partitionedqueue_gateway.entities.taken import Taken

PARTITIONS = 16
MESSAGES = 3000


@pytest.fixture
def durable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Broker]]:
    """Brokers that have on disk what they acknowledge."""
    with running_brokers(tmp_path_factory.mktemp("durable"), PARTITIONS) as found:
        yield found


async def send_all(one: Bench) -> None:
    for start in range(0, MESSAGES, 100):
        sends = [one.entity.send([storable(Message(body=b"%d" % n))]) for n in range(start, start + 100)]
        await asyncio.gather(*sends)
        await asyncio.sleep(0.05)


async def kill_some(one: Bench, ended: asyncio.Event) -> None:
    while not ended.is_set():
        server = random.choice(one.servers)
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(random.random() * 0.3)
        await asyncio.to_thread(server.restart)
        await asyncio.sleep(0.2)


async def test_messages_survive_brokers_that_are_killed_and_none_that_was_completed_comes_again(
    durable: list[Broker],
) -> None:
    async with bench(durable, lock_duration_ms=5_000, max_delivery_count=2000) as one:
        seen, completed, came_again = set[str](), set[str](), set[str]()

        def settled(body: str, error: PartitionedQueueError | None) -> None:
            if error is None:
                completed.add(body)

        def take(hand: Hand, messages: Sequence[Taken]) -> None:
            for message, body in zip(messages, bodies(messages), strict=True):
                seen.add(body)
                if body in completed:
                    came_again.add(body)
                one.entity.complete_then(LockToken(message.partition, message.sequence, message.lock), None,
                                         partial(settled, body))  # fmt: skip
            hand.receiver.want(len(messages))

        for most in (1, 20, 300):
            hand = Hand(one.entity)
            hand.then = partial(take, hand)
            hand.receiver.want(most)
        ended = asyncio.Event()
        killing = asyncio.create_task(kill_some(one, ended))
        await send_all(one)
        ended.set()
        await killing
        await until(lambda: len(seen) == MESSAGES, 60)
        await until(lambda: one.in_all(lambda totals: totals.messages) == 0, 60)
        assert not came_again


async def test_receive_and_delete_hands_out_each_once_though_brokers_are_killed(durable: list[Broker]) -> None:
    async with bench(durable, lock_duration_ms=5_000, max_delivery_count=2000) as one:
        seen = Counter[str]()

        def take(hand: Hand, messages: Sequence[Taken]) -> None:
            seen.update(bodies(messages))
            hand.receiver.want(len(messages))

        for most in (1, 20, 300):
            hand = Hand(one.entity, delete=True)
            hand.then = partial(take, hand)
            hand.receiver.want(most)
        ended = asyncio.Event()
        killing = asyncio.create_task(kill_some(one, ended))
        await send_all(one)
        ended.set()
        await killing
        await until(lambda: len(seen) == MESSAGES, 60)
        assert max(seen.values()) == 1
