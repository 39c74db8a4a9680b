"""A session that a receiver of this gateway holds."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

from partitionedqueue.broker import calls
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import AcceptedSession, SessionLock
from partitionedqueue.model.errors import PartitionedQueueError, SessionLockLost
from partitionedqueue_gateway import limits

T = TypeVar("T")
_EXPIRED = "The session lock has expired on the session '{}'. Request another session receiver."


class Session:
    """Made by `Entity.accept_session`; its lock lasts until `locked_until_ms`, or until it is released.

    What it is asked waits for a broker that is away, up to `limits.SETTLE_S_MAX`.
    """

    def __init__(self, client: BrokerClient, keys: QueueKeys, partition: int, accepted: AcceptedSession) -> None:
        assert accepted.session is not None
        self.lock: SessionLock = accepted.session
        self.partition = partition
        self.locked_until_ms = accepted.locked_until_ms
        self.lost: PartitionedQueueError | None = None
        """Why it is lost; None while it is held."""
        self._client = client
        self._keys = keys
        self._told: list[Callable[[PartitionedQueueError], None]] = []
        self._loop = asyncio.get_running_loop()
        self._ahead_ms = accepted.now_ms - self._loop.time() * 1000  # the broker's clock of the loop's
        self._released = False
        self._expiry = self._loop.call_at(self._ends_s, self._expire)

    @property
    def session_id(self) -> str:
        """'' is one, too."""
        return self.lock.session_id

    @property
    def is_held(self) -> bool:
        """Neither lost nor released."""
        return self.lost is None and not self._released

    def on_lost(self, told: Callable[[PartitionedQueueError], None]) -> None:
        """Have somebody told, once, when its lock is known to be lost (not when it is released).

        SessionLockLost, or EntityNotFound where the queue has gone. At once where it is lost already.
        """
        if self.lost is not None:
            told(self.lost)
        else:
            self._told.append(told)

    async def renew(self) -> int:
        """Hold it for another lock duration; gives until when. Raises SessionLockLost, BrokerUnavailable."""
        self.locked_until_ms = await self._ask(calls.renew_session(self._keys, self.lock))
        if self.is_held:
            self._expiry.cancel()
            self._expiry = self._loop.call_at(self._ends_s, self._expire)
        return self.locked_until_ms

    async def get_state(self) -> bytes | None:
        """What was kept with it. Raises as `renew`."""
        return await self._ask(calls.get_session_state(self._keys, self.lock))

    async def set_state(self, value: bytes | None) -> None:
        """Keep something with it; None takes it away. Raises as `renew`."""
        await self._ask(calls.set_session_state(self._keys, self.lock, value))

    async def release(self) -> None:
        """Let it go: what is held in it goes back, uncounted. Never raises; harmless when done twice."""
        if not self.is_held:
            return
        self._released = True
        self._expiry.cancel()
        self._told.clear()
        with contextlib.suppress(PartitionedQueueError):
            await self._client.call(calls.release_session(self._keys, self.lock), patience_s=limits.SETTLE_S_MAX)

    def lose(self, error: PartitionedQueueError) -> None:
        """Its lock is known to be lost."""
        if not self.is_held:
            return
        self.lost = error
        self._expiry.cancel()
        told, self._told = self._told, []
        for one in told:
            one(error)

    @property
    def _ends_s(self) -> float:
        return (self.locked_until_ms - self._ahead_ms) / 1000

    def _expire(self) -> None:
        self.lose(SessionLockLost(_EXPIRED.format(self.session_id)))

    async def _ask(self, call: Call[T]) -> T:
        if self.lost is not None:
            raise self.lost.with_traceback(None)
        try:
            return await self._client.call(call, patience_s=limits.SETTLE_S_MAX)
        except SessionLockLost as error:
            self.lose(error)
            raise
