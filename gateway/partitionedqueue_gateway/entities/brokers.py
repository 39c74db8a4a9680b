"""The connections to all brokers: made when there is something to ask, kept, and closed when their queue goes."""

import asyncio
from types import TracebackType
from typing import Self, TypeVar

from partitionedqueue.broker import access
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.model.errors import BrokerUnavailable, LoginRefused
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.catalog import Catalog, CatalogSource
from partitionedqueue_gateway.entities.failures import QueueGone
from partitionedqueue_gateway.entities.logins import Login
from partitionedqueue_gateway.entities.queue import Queue, QueueName

T = TypeVar("T")


class _Member:
    """A queue that was asked something: its password, and a client for each partition."""

    def __init__(self, queue: Queue, login: Login) -> None:
        self.queue = queue
        self.login = login
        self._clients: dict[int, tuple[str | None, BrokerClient]] = {}

    def client(self, partition: int, password: str | None) -> tuple[BrokerClient, BrokerClient | None]:
        """The client of a partition, and one with an older password that it replaces."""
        had = self._clients.get(partition)
        if had is not None and had[0] == password:
            return had[1], None
        address = self.queue.brokers[partition]
        user = access.GATEWAY if password is not None else None
        new = BrokerClient(address, timeout_s=limits.PARTITION_ANSWER_S_MAX, username=user, password=password)
        self._clients[partition] = (password, new)
        return new, had[1] if had is not None else None

    async def close(self) -> None:
        for _, client in self._clients.values():
            await client.close()


class Brokers:
    """An async context: what it opened is closed when it ends."""

    def __init__(self, catalog: Catalog, source: CatalogSource) -> None:
        self._catalog = catalog
        self._source = source
        self._members: dict[QueueName, _Member] = {}
        self._connects = asyncio.Semaphore(limits.CONNECTS_AT_ONCE_MAX)
        self._closing = asyncio.TaskGroup()
        catalog.listen(self._queue_changed)

    async def __aenter__(self) -> Self:
        await self._closing.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for name in [*self._members]:
            self._forget(name)
        await self._closing.__aexit__(kind, error, at)

    async def ask(self, queue: Queue, partition: int, call: Call[T]) -> T:
        """Ask one partition, for at most `limits.PARTITION_ANSWER_S_MAX` once it is its turn to connect.

        Raises QueueGone, NoCredentials, what `BrokerClient.call` raises, and BrokerUnavailable where it took too long.
        """
        member = self._member(queue)
        password = await member.login.password()
        try:
            return await self._ask(member, partition, password, call)
        except LoginRefused:
            if not await member.login.changed(password):
                raise
        return await self._ask(self._member(queue), partition, await member.login.password(), call)

    def _member(self, queue: Queue) -> _Member:
        known = self._catalog.queues.get(queue.name)
        if known is None or not known.is_served_as(queue):
            raise QueueGone(f"queue {queue.name} has gone")
        if queue.name not in self._members:
            self._members[queue.name] = _Member(queue, Login(self._source, queue))
        return self._members[queue.name]

    async def _ask(self, member: _Member, partition: int, password: str | None, call: Call[T]) -> T:
        client, older = member.client(partition, password)
        if older is not None:
            self._closing.create_task(older.close())
        if client.connected:
            return await self._in_time(client, call)
        async with self._connects:
            return await self._in_time(client, call)

    @staticmethod
    async def _in_time(client: BrokerClient, call: Call[T]) -> T:
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

    def _queue_changed(self, name: QueueName, queue: Queue | None) -> None:
        member = self._members.get(name)
        if member is not None and (queue is None or not member.queue.is_served_as(queue)):
            self._forget(name)

    def _forget(self, name: QueueName) -> None:
        member = self._members.pop(name, None)
        if member is not None:
            self._closing.create_task(member.close())
