"""A queue over real brokers, as a gateway's wires use it, in the loop of the test."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import Any

from harness.redis_servers import Broker
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Totals
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model import limits
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.message import Message
from partitionedqueue.model.queue_spec import QueueSpec
from partitionedqueue.model.stored_message import decode, encode
from partitionedqueue_gateway.entities.addresses import parse
from partitionedqueue_gateway.entities.brokers import Brokers
from partitionedqueue_gateway.entities.catalog import Catalog
from partitionedqueue_gateway.entities.entities import Entities
from partitionedqueue_gateway.entities.entity import Entity
from partitionedqueue_gateway.entities.queue import Queue
from partitionedqueue_gateway.entities.receiver import Receiver
from partitionedqueue_gateway.entities.session import Session
from partitionedqueue_gateway.entities.taken import Taken

NAME = "letters"
KEYS = QueueKeys(NAME)


class NoPasswords:
    """A source of a test's own: the test writes the catalog."""

    async def feed(self, catalog: Catalog) -> None:
        raise AssertionError("nobody feeds here")

    async def password(self, queue: Queue) -> str | None:
        return None


@dataclass
class Bench:
    """One gateway's worth of a queue, and its brokers."""

    servers: Sequence[Broker]
    catalog: Catalog
    entities: Entities
    queue: Queue

    @property
    def entity(self) -> Entity:
        return self.open()

    def open(self, path: str = NAME) -> Entity:
        return self.entities.open(parse(path))

    def put(self, partition: int, *bodies: str, keys: QueueKeys = KEYS, **fields: Any) -> None:
        """Send past the gateway, to one partition."""
        put(self.servers[partition], *bodies, keys=keys, **fields)

    def totals(self, partition: int) -> Totals:
        with BlockingBroker(self.servers[partition].address) as client:
            return client.call(calls.totals(KEYS))

    def in_all(self, what: Callable[[Totals], int]) -> int:
        """Added up over the partitions that run."""
        return sum(what(self.totals(n)) for n, server in enumerate(self.servers) if server.process is not None)

    def calls_so_far(self) -> int:
        """Commands of the library that brokers have carried out."""
        return sum(map(calls_of, self.servers))


def put(server: Broker, *bodies: str, keys: QueueKeys = KEYS, **fields: Any) -> None:
    messages = [encode(Message(body=body.encode(), **fields)) for body in bodies]
    with BlockingBroker(server.address) as client:
        for at in range(0, len(messages), 1000):
            several = messages[at : at + 1000]
            no_ids = bytes(limits.FINGERPRINT_BYTES * len(several))
            client.call(calls.send(keys, several, fingerprints=no_ids))


def calls_of(server: Broker) -> int:
    with closing(server.connect()) as connection:
        stats = connection.info("commandstats")
    return sum(int(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"]) for name in ("fcall", "fcall_ro"))


def configure(servers: Sequence[Broker], spec: QueueSpec) -> None:
    """As the operator does."""
    for number, server in enumerate(servers):
        with BlockingBroker(server.address) as client:
            settings = BrokerSettings.of(spec)
            client.call(calls.configure(KEYS, partition=number, partitions=len(servers), settings=settings))


def queue_over(servers: Sequence[Broker], *, uid: str = "1", **spec: Any) -> Queue:
    described = QueueSpec(name=NAME, enable_partitioning=len(servers) > 1, size_gb=max(1, len(servers) // 16), **spec)
    return Queue(spec=described, uid=uid, brokers=tuple(server.address for server in servers))


@asynccontextmanager
async def bench(servers: Sequence[Broker], *, told: bool = True, **spec: Any) -> AsyncIterator[Bench]:
    """A gateway's entities for an `async with` block; `told`: the brokers are told of the spec."""
    queue = queue_over(servers, **spec)
    if told:
        configure(servers, queue.spec)
    catalog = Catalog()
    catalog.expect("", 0.0)
    catalog.replace("", [queue], {})
    async with Brokers(catalog, NoPasswords()) as brokers, Entities(catalog, brokers) as entities:
        yield Bench(servers, catalog, entities, queue)


@dataclass
class Hand:
    """Receives, and keeps what it was given and told."""

    entity: Entity
    delete: bool = False
    session: Session | None = None
    got: list[Taken] = field(default_factory=list)
    lost: list[PartitionedQueueError] = field(default_factory=list)
    then: Callable[[Sequence[Taken]], None] | None = None

    def __post_init__(self) -> None:
        self.receiver: Receiver = self.entity.receiver(
            self._take, delete=self.delete, session=self.session, on_lost=self.lost.append
        )

    def _take(self, messages: Sequence[Taken]) -> None:
        self.got += messages
        if self.then is not None:
            self.then(messages)

    @property
    def bodies(self) -> list[str]:
        return bodies(self.got)

    async def has(self, count: int, seconds: float = 10.0) -> float:
        """Wait until it has so many; gives how long that took."""
        return await until(lambda: len(self.got) >= count, seconds)

    async def receive(self, count: int, seconds: float = 10.0) -> list[Taken]:
        """Want so many and wait for them."""
        have = len(self.got)
        self.receiver.want(count)
        await self.has(have + count, seconds)
        return self.got[have:]


def bodies(messages: Iterable[Taken]) -> list[str]:
    return [decode(one.stored).body.decode() for one in messages]


async def until(what: Callable[[], object], seconds: float = 10.0) -> float:
    """Wait until something is so; gives how long that took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(seconds):
        while not what():  # noqa: ASYNC110 -- another process decides
            await asyncio.sleep(0.002)
    return loop.time() - began
