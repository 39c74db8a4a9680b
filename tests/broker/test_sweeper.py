"""Due work of real brokers when nobody calls."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from harness import deliveries
from harness.deliveries import send_one
from harness.redis_servers import Broker
from partitionedqueue.broker import calls
from partitionedqueue.broker.bell import Bell
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.logins import fixed
from partitionedqueue.broker.sweeper import Sweeper
from partitionedqueue.model import limits

KEYS, OTHER = QueueKeys("q"), QueueKeys("other")
COUNTERS = "c"  # of the state hash: they change when something is done, without any call of the test's doing it


@pytest.fixture
def broker(server: Broker) -> Iterator[BlockingBroker]:
    with BlockingBroker(server.address) as one:
        for keys in (KEYS, OTHER):
            deliveries.configure(one, keys)
        yield one


@contextlib.asynccontextmanager
async def sweeping(client: BrokerClient, bell: Bell, *queues: QueueKeys) -> AsyncIterator[None]:
    task = asyncio.create_task(Sweeper(client, bell, queues).run())
    try:
        yield
    finally:
        assert not task.done(), "a sweeper ends with its owner only"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def state_of(broker: BlockingBroker, keys: QueueKeys = KEYS) -> Any:
    """What the broker has written; reading it does no due work."""
    (counters,) = broker.raw(("HGET", keys.state, COUNTERS))
    return counters


async def until(what: Callable[[], object], *, seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not what():  # noqa: ASYNC110 -- another process decides
            await asyncio.sleep(0.01)


def sweeps_so_far(server: Broker) -> int:
    with contextlib.closing(server.connect()) as connection:
        found: dict[str, Any] = connection.info("commandstats")
    return int(found.get("cmdstat_fcall", {}).get("calls", 0))


def dead_letters(broker: BlockingBroker) -> bool:
    """Whether there is something in the dead-letter queue, without asking the library."""
    (there,) = broker.raw(("EXISTS", KEYS.dead_letters.segments))
    return bool(there)


async def test_a_message_that_expires_becomes_a_dead_letter_though_nobody_calls(
    broker: BlockingBroker, client: BrokerClient, bell: Bell
) -> None:
    deliveries.configure(broker, KEYS, dead_letter_expired=True)
    async with sweeping(client, bell, OTHER, KEYS):
        await asyncio.sleep(0.2)
        send_one(broker, KEYS, b"stale", time_to_live_ms=400)
        assert not dead_letters(broker)
        await until(lambda: dead_letters(broker))
    assert broker.call(calls.totals(KEYS)).dead_letters == 1


async def test_a_lock_that_expires_gives_back_though_nobody_calls(
    broker: BlockingBroker, client: BrokerClient, bell: Bell
) -> None:
    async with sweeping(client, bell, KEYS):
        send_one(broker, KEYS)
        deliveries.receive(broker, KEYS, 1, lock_ms=400)
        locked = state_of(broker)
        await until(lambda: state_of(broker) != locked)
        (runs,) = broker.raw(("ZCARD", f"{KEYS.state}:returned"))
        assert runs == 1


async def test_what_falls_due_sooner_than_was_known_is_heard(
    broker: BlockingBroker, client: BrokerClient, bell: Bell
) -> None:
    deliveries.configure(broker, KEYS, dead_letter_expired=True)
    send_one(broker, KEYS, time_to_live_ms=3_600_000)
    async with sweeping(client, bell, KEYS):
        await asyncio.sleep(limits.SWEEP_RUNG_S + 0.3)
        send_one(broker, KEYS, time_to_live_ms=300)
        await until(lambda: dead_letters(broker))


async def test_nothing_due_costs_nothing(
    server: Broker, broker: BlockingBroker, client: BrokerClient, bell: Bell
) -> None:
    async with sweeping(client, bell, KEYS, OTHER):
        await asyncio.sleep(limits.SWEEP_RUNG_S + 0.5)
        before = sweeps_so_far(server)
        await asyncio.sleep(2.5)
        assert sweeps_so_far(server) == before


async def test_what_is_behind_is_done_in_bounded_parts_to_the_end(
    broker: BlockingBroker, client: BrokerClient, bell: Bell
) -> None:
    deliveries.configure(broker, KEYS, dead_letter_expired=True)
    deliveries.send(broker, KEYS, 5000, time_to_live_ms=500)
    await asyncio.sleep(0.6)
    async with sweeping(client, bell, KEYS):
        await until(lambda: broker.call(calls.next_due(KEYS)) == -1)
    assert broker.call(calls.totals(KEYS)).dead_letters == 5000


async def test_a_sweeper_outlasts_a_broker_that_is_killed(
    server: Broker, broker: BlockingBroker, client: BrokerClient, bell: Bell
) -> None:
    deliveries.configure(broker, KEYS, dead_letter_expired=True)
    async with sweeping(client, bell, KEYS):
        await asyncio.sleep(0.2)
        send_one(broker, KEYS, time_to_live_ms=700)
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(1.0)
        await asyncio.to_thread(server.start)
        broker.close()
        await until(lambda: dead_letters(broker))


async def test_a_bell_that_cannot_be_heard_makes_the_sweeper_ask_now_and_then(
    server: Broker, broker: BlockingBroker, bell: Bell
) -> None:
    deliveries.configure(broker, KEYS, dead_letter_expired=True)
    broker.raw(("CONFIG", "SET", "requirepass", "secret"), ("AUTH", "default", "secret"))
    right = BrokerClient(server.address, login=fixed("secret"))  # the bell has none
    async with sweeping(right, bell, KEYS):
        await asyncio.sleep(0.2)
        send_one(broker, KEYS, time_to_live_ms=100)
        await until(lambda: dead_letters(broker))
    await right.close()


async def test_a_queue_that_cannot_be_swept_does_not_hold_the_others_up(
    broker: BlockingBroker, client: BrokerClient, bell: Bell
) -> None:
    deliveries.configure(broker, KEYS, dead_letter_expired=True)
    broken = QueueKeys("broken")
    broker.raw(("SET", broken.state, "no hash"))
    async with sweeping(client, bell, broken, KEYS):
        send_one(broker, KEYS, time_to_live_ms=200)
        await until(lambda: dead_letters(broker))
