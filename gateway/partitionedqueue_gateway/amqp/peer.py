"""The client at the other end of a connection: what it may do, what it holds here, and how its links reach it."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.access import Access
from partitionedqueue_gateway.amqp import conditions
from partitionedqueue_gateway.amqp.backlog import Backlog
from partitionedqueue_gateway.amqp.endpoint import Endpoint
from partitionedqueue_gateway.amqp.engine.link import Link
from partitionedqueue_gateway.amqp.standing import Standing
from partitionedqueue_gateway.entities.addresses import EntityAddress
from partitionedqueue_gateway.entities.entities import Entities
from partitionedqueue_gateway.entities.session import Session

_log = logging.getLogger(__name__)


class Services:
    """What all connections of one process share; made in the process that uses it."""

    def __init__(self, entities: Entities, access: Access, *, container_id: str = "partitionedqueue") -> None:
        self.entities = entities
        self.access = access
        self.container_id = container_id
        self.backlog = Backlog()
        self._ids = map(f"{os.urandom(8).hex()}{{:016x}}".format, count(1))
        self._releases: set[asyncio.Task[None]] = set()

    def release(self, session: Session) -> None:
        """Let a session go; a connection that has ended does not cut this short."""
        asyncio.get_running_loop().call_soon(self._release, session)  # behind what its client has just settled in it

    def _release(self, session: Session) -> None:
        task = asyncio.get_running_loop().create_task(session.release())
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    async def close(self) -> None:
        """Wait for what was let go, once no connection is left."""
        await asyncio.sleep(0)
        if self._releases:
            await asyncio.wait(self._releases, timeout=limits.PEER_CLOSE_S_MAX)

    def new_message_id(self) -> str:
        """For a message that has none; as long as Azure's, and never given twice."""
        return next(self._ids)


class Peer:
    """One connection's client. `answer_soon`: have what is said to it sent in this turn of the loop."""

    def __init__(self, services: Services, answer_soon: Callable[[], None], claims_changed: Callable[[], None]) -> None:
        self.services = services
        self.answer_soon = answer_soon
        self.standing = Standing(services.access, claims_changed)
        self.sessions: dict[tuple[EntityAddress, str], Session] = {}
        self.endpoints: dict[Link, Endpoint] = {}
        self.reads = True
        """Whether it takes what is sent to it."""
        self.unanswered_bytes = 0
        """Of messages that it has sent and that are not stored yet, and of requests that are under way."""
        self.answers_bytes = 0
        """Of answers that wait until it takes them."""
        self._tasks: set[asyncio.Task[None]] = set()

    def allow(self, endpoint: Endpoint) -> bool:
        """Whether its claims still hold a link."""
        now_s = time.time()
        return any(self.standing.allow(right, endpoint.path, now_s) for right in endpoint.rights)

    def add(self, endpoint: Endpoint) -> None:
        """A link has something behind it now."""
        endpoint.link.context = endpoint
        self.endpoints[endpoint.link] = endpoint

    def forget(self, link: Link) -> None:
        """A link is over, whoever ended it."""
        endpoint = self.endpoints.pop(link, None)
        if endpoint is not None:
            endpoint.close()

    def detach(self, link: Link, error: BaseException) -> None:
        """End a link for a reason."""
        self.forget(link)
        end = link.detach if link.attached else link.refuse
        end(conditions.amqp_error(error))
        self.answer_soon()

    def begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Do something that takes a while; it is cancelled with the connection, if it has not ended by itself."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a client's request failed", exc_info=error)

    @property
    def busy(self) -> bool:
        """Whether something that was begun goes on."""
        return bool(self._tasks)

    def close(self) -> None:
        """The connection is gone."""
        for task in [*self._tasks]:
            task.cancel()
        for link in [*self.endpoints]:
            self.forget(link)
