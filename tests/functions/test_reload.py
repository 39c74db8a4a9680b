"""A new library loaded into a broker at work: nothing is lost, and no call notices."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import layouts
from harness.deliveries import body_of, stored
from harness.redis_servers import Broker, running_broker
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.library import library_text
from partitionedqueue.broker.replies import Settlement

KEYS = QueueKeys("flights")
SECONDS, LEASE_MS = 3.0, 60_000
RELOADS_LEAST = 20


def another_version(number: int) -> str:
    """The library as if it were another version: nothing that was cached by the one before is there."""
    return re.sub(r"LIBRARY_VERSION = '[^']+'", f"LIBRARY_VERSION = '1.0.{number}'", library_text(), count=1)


class Work:
    """What the clients have done."""

    def __init__(self) -> None:
        self.until = asyncio.get_running_loop().time() + SECONDS
        self.sent: list[bytes] = []
        self.completed: list[bytes] = []
        self.claimed: list[bytes] = []
        self.reloads = 0

    @property
    def over(self) -> bool:
        """After a while, and not before there were enough reloads: a busy machine takes longer for them."""
        return asyncio.get_running_loop().time() > self.until and self.reloads >= RELOADS_LEAST


async def send(client: BrokerClient, work: Work, name: str) -> None:
    number = 0
    while not work.over:
        number += 1
        bodies = [b"%s %d %d" % (name.encode(), number, i) for i in range(1 + number % 5)]
        call = calls.send(KEYS, [stored(body) for body in bodies], sender=name, number=number)
        assert (await client.call(call)).first > 0
        if number % 7 == 0:
            assert (await client.call(call)).first == 0  # repeated: known from before, whichever library was there
        work.sent += bodies


async def receive(client: BrokerClient, work: Work, all_sent: asyncio.Event) -> None:
    while True:
        sent = all_sent.is_set()
        received = await client.call(calls.receive(KEYS, most=30, lock_ms=LEASE_MS))
        several = [Settlement(run.lock, run.first, run.first + len(run.messages) - 1) for run in received.runs]
        if not several:
            if sent:
                return
            await asyncio.sleep(0.002)
            continue
        if len(work.completed) % 3 == 0:
            assert (await client.call(calls.renew_lock(KEYS, several, lock_ms=LEASE_MS))).refused == []
        if len(work.completed) % 5 == 0 and len(several) > 1:  # never all of them: it would be so for ever
            assert await client.call(calls.abandon(KEYS, several[:1], counted=False)) == []
            several, received.runs[:1] = several[1:], []
        assert await client.call(calls.complete(KEYS, several)) == []
        work.completed += [body_of(one) for run in received.runs for one in run.messages]


async def claim(client: BrokerClient, broker: BlockingBroker, work: Work) -> None:
    position = (await client.call(calls.claim_open(KEYS, "spark", "job", LEASE_MS))).next
    while not work.over:
        end = (await client.call(calls.claim(KEYS, "spark", "job", LEASE_MS, position, 40))).end
        found = (await client.call(calls.claimed(KEYS, "spark", position, end))).entries
        for entry in found:
            for number in range(entry.first, entry.first + entry.count):
                segment, index = divmod(number - 1, 256)
                words = ("LINDEX", KEYS.segment(segment), index)
                work.claimed.append(body_of(broker.raw(words)[0]))
        while await client.call(calls.claim_acknowledge(KEYS, "spark", "job", end)):
            pass
        position = end
        await asyncio.sleep(0.005)


async def reload(client: BrokerClient, broker: BlockingBroker, work: Work) -> None:
    while not work.over:
        await asyncio.to_thread(broker.raw, ("FUNCTION", "LOAD", "REPLACE", another_version(work.reloads)))
        assert (await client.call(calls.about())).library == f"1.0.{work.reloads}"
        work.reloads += 1
        await asyncio.sleep(0.02)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path) as server:
        yield server


async def test_a_library_loaded_under_load_loses_nothing_and_breaks_no_call(broker: Broker) -> None:
    work, all_sent = Work(), asyncio.Event()
    clients = [BrokerClient(broker.address) for _ in range(6)]
    with BlockingBroker(broker.address) as plain, BlockingBroker(broker.address) as loading:
        async with asyncio.TaskGroup() as receiving:
            receiving.create_task(receive(clients[3], work, all_sent))
            async with asyncio.TaskGroup() as sending:
                for name, client in zip(("a", "b", "c"), clients, strict=False):
                    sending.create_task(send(client, work, name))
                sending.create_task(claim(clients[4], plain, work))
                sending.create_task(reload(clients[5], loading, work))
            all_sent.set()
        left = await clients[0].call(calls.totals(KEYS))
    for client in clients:
        await client.close()
    assert sorted(work.completed + work.claimed) == sorted(work.sent)
    assert (left.messages, left.bytes, left.locked, left.claimed) == (0, 0, 0, 0)
    assert min(len(work.completed), len(work.claimed)) > 100


@pytest.mark.parametrize("version", layouts.VERSIONS)
async def test_many_that_meet_old_data_at_once_bring_it_up_to_date_once(version: str, tmp_path: Path) -> None:
    queues = layouts.expected(version)
    with layouts.upgraded(layouts.FOLDER / version, tmp_path / "data") as (broker, _):
        clients = [BrokerClient(broker.address) for _ in range(16)]
        async with asyncio.TaskGroup() as group:
            for client in clients:
                for queue in queues.values():
                    group.create_task(client.call(calls.send(queue.keys, [stored(b"new")])))
        for client in clients:
            await client.close()
        for queue in queues.values():
            totals = broker.call(calls.totals(queue.keys))
            assert totals.messages == len(queue.rows) + len(clients)
            assert totals.last == queue.last + len(clients)
