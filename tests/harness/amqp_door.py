"""A door for AMQP in the test's own process: a socket, the conversation behind it, and queues over real brokers."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from harness.entities_in_use import NoPasswords
from harness.redis_servers import Broker
from partitionedqueue.broker import calls
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model.placement import BrokerAddress
from partitionedqueue.model.queue_spec import QueueSpec
from partitionedqueue_gateway.access.access import Access
from partitionedqueue_gateway.amqp.conversation import Conversation, Services
from partitionedqueue_gateway.entities.brokers import Brokers
from partitionedqueue_gateway.entities.catalog import Catalog
from partitionedqueue_gateway.entities.entities import Entities
from partitionedqueue_gateway.entities.queue import Queue


class SocketWire(asyncio.Protocol):
    """One connection's socket."""

    def __init__(self, door: "Door") -> None:
        self._door = door
        self._transport: asyncio.Transport | None = None
        self.conversation: Conversation | None = None

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    @property
    def peer(self) -> str:
        return "test"

    @property
    def encrypted(self) -> bool:
        return self._door.encrypted

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=1 << 20)
        self.conversation = Conversation(self, self._door.services)
        self._door.wires.append(self)

    def data_received(self, data: bytes) -> None:
        assert self.conversation is not None
        self.conversation.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        assert self.conversation is not None
        self._door.wires.remove(self)
        self.conversation.connection_lost()

    def pause_writing(self) -> None:
        assert self.conversation is not None
        self.conversation.pause_writing()

    def resume_writing(self) -> None:
        assert self.conversation is not None
        self.conversation.resume_writing()

    def write(self, buffers: Sequence[bytes]) -> None:
        self.transport.writelines(buffers)

    def pause_reading(self) -> None:
        self.transport.pause_reading()

    def resume_reading(self) -> None:
        self.transport.resume_reading()

    def close(self) -> None:
        self.transport.close()

    def abort(self) -> None:
        self.transport.abort()


@dataclass
class Door:
    """What a test has of it: the port, the queues it knows, the connections that stand."""

    catalog: Catalog
    entities: Entities
    services: Services
    port: int = 0
    encrypted: bool = False
    """Whether conversations are told that TLS is around them."""
    wires: list[SocketWire] = field(default_factory=list)


@asynccontextmanager
async def amqp_door(
    queues: Sequence[Queue] = (), access: Access | None = None, *, port: int = 0
) -> AsyncIterator[Door]:
    """Serve queues on a loopback port; everybody may do everything unless `access` says otherwise."""
    catalog = Catalog()
    catalog.expect("", 0.0)
    catalog.replace("", queues, {})
    async with Brokers(catalog, NoPasswords()) as brokers, Entities(catalog, brokers) as entities:
        door = Door(catalog, entities, Services(entities, access or Access(None)))
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: SocketWire(door), "127.0.0.1", port)
        door.port = server.sockets[0].getsockname()[1]
        try:
            yield door
        finally:
            server.close()
            for wire in [*door.wires]:
                wire.abort()
            await server.wait_closed()
            await asyncio.sleep(0)
            await door.services.close()


@asynccontextmanager
async def served(
    brokers: Sequence[Broker], access: Access | None = None, **queues: Mapping[str, object]
) -> AsyncIterator[Door]:
    """Queues over the same brokers, partitioned where there are several; one named orders, where none is named."""
    addresses = [broker.address for broker in brokers]
    specs = [
        QueueSpec(name=name, enable_partitioning=len(addresses) > 1, **settings)  # type: ignore[arg-type]
        for name, settings in (queues or {"orders": {}}).items()
    ]
    async with amqp_door([await queue_over(addresses, spec) for spec in specs], access) as door:
        yield door


async def queue_over(addresses: Sequence[BrokerAddress], spec: QueueSpec) -> Queue:
    """A queue on brokers that run already, which are told of it."""
    queue = Queue(spec=spec, uid=f"uid-of-{spec.name}", brokers=tuple(addresses))
    for number, address in enumerate(addresses):
        client = BrokerClient(address)
        try:
            await client.call(
                calls.configure(
                    QueueKeys(spec.name),
                    partition=number,
                    partitions=len(addresses),
                    settings=BrokerSettings.of(spec),
                )
            )
        finally:
            await client.close()
    return queue
