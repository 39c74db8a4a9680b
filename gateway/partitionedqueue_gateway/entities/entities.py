"""All queues in use by this process."""

import asyncio
from types import TracebackType
from typing import Self

from partitionedqueue.model.entity_name import is_entity_name, object_name
from partitionedqueue.model.errors import BrokerUnavailable
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.addresses import EntityAddress, SubQueue
from partitionedqueue_gateway.entities.background import Background
from partitionedqueue_gateway.entities.brokers import Brokers
from partitionedqueue_gateway.entities.catalog import Catalog
from partitionedqueue_gateway.entities.entity import Entity
from partitionedqueue_gateway.entities.failures import EntityNotFound, QueueGone
from partitionedqueue_gateway.entities.queue import Queue, QueueName


class Entities:
    """An async context, inside that of its brokers: at its end what is under way to nobody goes back."""

    def __init__(self, catalog: Catalog, brokers: Brokers, *, default_namespace: str = "default") -> None:
        self._catalog = catalog
        self._brokers = brokers
        self._default_namespace = default_namespace
        self._background = Background()
        self._open: dict[QueueName, dict[SubQueue, Entity]] = {}
        self._queues: dict[QueueName, Queue] = {}  # as those that are open knew them last
        catalog.listen(self._queue_changed)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        entities = [entity for several in self._open.values() for entity in several.values()]
        await asyncio.gather(*(entity.close() for entity in entities))
        await self._background.close(limits.ENTITIES_CLOSE_S_MAX)

    def open(self, address: EntityAddress) -> Entity:
        """The entity of an address, the same object for all who ask.

        Raises EntityNotFound; BrokerUnavailable while the queues have not been read yet: it may be among them.
        """
        name = QueueName(address.namespace or self._default_namespace, object_name(address.name))
        queue = self._catalog.queues.get(name) if is_entity_name(address.name) else None
        if queue is None:
            if not self._catalog.knows(name.namespace):
                raise BrokerUnavailable(f"whether there is a messaging entity '{address}' is not known yet; try again")
            raise EntityNotFound(address.path)
        several = self._open.setdefault(name, {})
        entity = several.get(address.sub_queue)
        if entity is None:
            self._queues[name] = queue
            entity = several[address.sub_queue] = Entity(address, queue.spec, self._brokers.of(queue), self._background)
        return entity

    def _queue_changed(self, name: QueueName, queue: Queue | None) -> None:
        before = self._queues.get(name)
        if before is None:
            return
        if queue is not None and queue.is_served_as(before):
            self._queues[name] = queue
            for entity in self._open.get(name, {}).values():
                entity.changed(queue.spec)
            return
        del self._queues[name]
        for entity in self._open.pop(name, {}).values():
            entity.lose(QueueGone(entity.address.path))
            self._background.start(entity.close())
