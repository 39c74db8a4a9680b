"""Queues as the administration has them: looked up, made, changed and deleted, each until it shows."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Final

from partitionedqueue.model.errors import BrokerUnavailable
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.catalog import Catalog
from partitionedqueue_gateway.entities.changes import ChangeRefused, QueueChanges, QueueExists
from partitionedqueue_gateway.entities.failures import EntityNotFound
from partitionedqueue_gateway.entities.health import Availability
from partitionedqueue_gateway.entities.queue import Queue, QueueName
from partitionedqueue_gateway.entities.totals import Standings
from partitionedqueue_gateway.rest.administration import queue_properties
from partitionedqueue_gateway.rest.administration.atom import Description
from partitionedqueue_gateway.rest.refusals import TooManyRequests

EARLIER_GOING: Final = "EarlierQueueGoing:"
"""Why the operator holds a queue back for a while: what an earlier one of the name has left is on its way out."""


class Queues:
    """Read in the catalog, changed where they are written down."""

    def __init__(self, catalog: Catalog, standings: Standings, changes: QueueChanges) -> None:
        self._catalog = catalog
        self._standings = standings
        self._changes = changes
        self._creating = 0
        self._finishing: set[asyncio.Future[None]] = set()
        self._news = asyncio.Event()  # that the catalog has changed; another one for each time
        catalog.listen(self._heard)

    def all(self) -> Collection[Queue]:
        """Every queue."""
        return self._catalog.queues.values()

    async def find(self, name: QueueName) -> Queue | None:
        """One of them. Raises BrokerUnavailable where it is not known yet whether there is one."""
        queue = self._catalog.queues.get(name)
        if queue is None and not self._catalog.knows(name.namespace):
            raise BrokerUnavailable("the queues are not known yet; try again")
        return queue

    async def create(self, name: QueueName, title: str, given: Description) -> Queue:
        """Make one and wait until its partitions serve: a send that comes right after finds them.

        Past `limits.CREATE_WAIT_S_MAX` it is given as it stands; sends wait for its brokers then. Raises QueueExists,
        ChangeRefused (also where the operator does not take it: then nothing stays of it), and others of `changes`.
        """
        if self._creating >= limits.CREATIONS_AT_ONCE_MAX:
            raise TooManyRequests(f"{self._creating} queues are being made; ask again in a moment")
        self._creating += 1
        try:
            return await self._create(name, title, given)
        finally:
            self._creating -= 1

    async def _create(self, name: QueueName, title: str, given: Description) -> Queue:
        if not {"", name.namespace} & self._catalog.scopes.keys():
            raise ChangeRefused(f"the namespace {name.namespace} is not served by this gateway")
        if await self.find(name) is not None:
            raise QueueExists(f"Conflict. The messaging entity '{title}' already exists.")
        await self._changes.create(name, queue_properties.manifest(name, title, given))
        deadline_s = _now_s() + limits.CREATE_WAIT_S_MAX
        await self._until(lambda: name in self._catalog.queues, limits.CREATE_WAIT_S_MAX)
        while (queue := self._catalog.queues.get(name)) is not None:
            if queue.held_back is not None and not queue.held_back.startswith(EARLIER_GOING):
                await self._to_its_end(self._changes.delete(queue, refused=True))
                raise ChangeRefused(queue.held_back)
            serves = (await self._standings.of(queue)).availability is Availability.AVAILABLE
            if serves or _now_s() > deadline_s:
                return queue
            await asyncio.sleep(limits.CREATE_LOOK_S)
        raise BrokerUnavailable(f"'{title}' was made, and is not seen yet; ask for it in a moment.")

    async def change(self, name: QueueName, given: Description) -> Queue:
        """Change one; as it is then. Raises EntityNotFound, ChangeRefused, and others of `changes`."""
        queue = await self.find(name)
        if queue is None:
            raise EntityNotFound(name.name)
        generation = await self._changes.change(queue, queue_properties.changes(queue.spec, given))

        def shows() -> bool:
            now = self._catalog.queues.get(name)
            return now is None or now.generation >= generation

        await self._until(shows, limits.CHANGE_WAIT_S_MAX)
        return self._catalog.queues.get(name, queue)

    async def delete(self, name: QueueName, path: str) -> None:
        """Delete one with what it holds. Raises EntityNotFound, ChangeRefused, and others of `changes`."""
        queue = await self.find(name)
        if queue is None:
            raise EntityNotFound(path)
        await self._to_its_end(self._changes.delete(queue))

        def has_gone() -> bool:
            now = self._catalog.queues.get(name)
            return now is None or now.uid != queue.uid

        await self._until(has_gone, limits.CHANGE_WAIT_S_MAX)

    async def _to_its_end(self, work: Coroutine[Any, Any, None]) -> None:
        """Though the client may go: half of it would be worse than all of it."""
        task = asyncio.ensure_future(work)
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)
        await asyncio.shield(task)

    async def _until(self, what: Callable[[], bool], within_s: float) -> None:
        """Until it is so, or that time has passed: the answer says how it is then."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not what():
                    await self._news.wait()

    def _heard(self, _name: QueueName, _queue: Queue | None) -> None:
        self._news.set()
        self._news = asyncio.Event()


def _now_s() -> float:
    return asyncio.get_running_loop().time()
