"""The gateway's password at each queue's brokers: read once, and again when a broker no longer takes it."""

import asyncio

from partitionedqueue.broker import access
from partitionedqueue.broker.logins import Credentials
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.catalog import CatalogSource
from partitionedqueue_gateway.entities.failures import NoCredentials
from partitionedqueue_gateway.entities.queue import Queue


class QueueLogin:
    """The password of one queue. All that ask at once wait for one reading of it."""

    def __init__(self, source: CatalogSource, queue: Queue) -> None:
        self._source = source
        self._queue = queue
        self._password: str | None = None
        self._failure: str | None = "it has not been read yet"
        self._read_s = -limits.PASSWORD_AGAIN_S_MIN
        self._reading = asyncio.Lock()

    async def login(self, refused: Credentials | None) -> Credentials | None:
        """As it was read last, unless a broker has just refused it; None where the brokers ask for none.

        Raises NoCredentials.
        """
        async with self._reading:
            if self._failure is not None or (refused is not None and refused.password == self._password):
                await self._read()
        if self._failure is not None:
            raise NoCredentials(self._failure)
        return Credentials(access.GATEWAY, self._password) if self._password is not None else None

    async def _read(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._read_s < limits.PASSWORD_AGAIN_S_MIN:
            return
        self._read_s = now_s
        try:
            self._password = await self._source.password(self._queue)
            self._failure = None
        except PartitionedQueueError as error:
            self._failure = str(error)
