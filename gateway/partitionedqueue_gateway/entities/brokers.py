"""The connections to all brokers: made when there is something to ask, kept, and closed when their queue goes."""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Self, TypeVar

from partitionedqueue.broker.bell import Bell
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.model.errors import BrokerUnavailable
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.background import Background
from partitionedqueue_gateway.entities.catalog import Catalog, CatalogSource
from partitionedqueue_gateway.entities.failures import QueueGone
from partitionedqueue_gateway.entities.logins import QueueLogin
from partitionedqueue_gateway.entities.queue import Queue, QueueName

T = TypeVar("T")


class QueueBrokers:
    """The brokers of one queue: a client and, once somebody listens, a bell for each partition, in order."""

    def __init__(self, queue: Queue, source: CatalogSource) -> None:
        login = QueueLogin(source, queue).login
        self.queue = queue
        self.clients: Sequence[BrokerClient] = [BrokerClient(address, login=login) for address in queue.brokers]
        self._login = login
        self._bells: dict[int, Bell] = {}

    def bell(self, partition: int) -> Bell:
        """For all who listen to this partition."""
        if partition not in self._bells:
            self._bells[partition] = Bell(self.queue.brokers[partition], login=self._login)
        return self._bells[partition]

    async def close(self) -> None:
        """Whatever is asked fails from now on."""
        for bell in self._bells.values():
            await bell.close()
        for client in self.clients:
            await client.close()


class Brokers:
    """An async context: what it opened is closed when it ends."""

    def __init__(self, catalog: Catalog, source: CatalogSource) -> None:
        self._catalog = catalog
        self._source = source
        self._known: dict[QueueName, QueueBrokers] = {}
        self._connects = asyncio.Semaphore(limits.CONNECTS_AT_ONCE_MAX)
        self._closing = Background()
        catalog.listen(self._queue_changed)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for name in [*self._known]:
            self._forget(name)
        await self._closing.close(limits.ENTITIES_CLOSE_S_MAX)

    def of(self, queue: Queue) -> QueueBrokers:
        """Those of a queue. Raises QueueGone where it has gone, or another has taken its name."""
        known = self._catalog.queues.get(queue.name)
        if known is None or not known.is_served_as(queue):
            raise QueueGone(str(queue.name))
        if queue.name not in self._known:
            self._known[queue.name] = QueueBrokers(queue, self._source)
        return self._known[queue.name]

    async def ask(self, queue: Queue, partition: int, call: Call[T]) -> T:
        """Ask one partition, for at most `limits.PARTITION_ANSWER_S_MAX` once it is its turn to connect.

        Raises QueueGone, NoCredentials, what `BrokerClient.call` raises, and BrokerUnavailable where it took too long.
        """
        client = self.of(queue).clients[partition]
        if client.connected:
            return await in_time(client, call)
        async with self._connects:
            self.of(queue)
            return await in_time(client, call)

    def _queue_changed(self, name: QueueName, queue: Queue | None) -> None:
        brokers = self._known.get(name)
        if brokers is not None and (queue is None or not brokers.queue.is_served_as(queue)):
            self._forget(name)

    def _forget(self, name: QueueName) -> None:
        brokers = self._known.pop(name, None)
        if brokers is not None:
            self._closing.start(brokers.close())


async def in_time(client: BrokerClient, call: Call[T]) -> T:
    """Ask a broker for at most `limits.PARTITION_ANSWER_S_MAX`; BrokerUnavailable where it took too long."""
    try:
        async with asyncio.timeout(limits.PARTITION_ANSWER_S_MAX):
            try:
                return await client.call(call)
            except BrokerUnavailable as error:
                if not (error.outcome_unknown and call.repeatable):
                    raise
                return await client.call(call)  # the connection had stood idle, and was dead
    except TimeoutError:
        words = f"broker {client.address} did not answer within {limits.PARTITION_ANSWER_S_MAX:g} s"
        raise BrokerUnavailable(words, outcome_unknown=True) from None
