"""One answer for all who ask at the same time, and for a while after."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Asked for when somebody wants it and the last answer is too old; whoever comes meanwhile waits with them.

    Those who wait may leave: the asking goes on, and its answer is there for the next.
    """

    def __init__(self, ask: Callable[[], Awaitable[T]], *, fresh_s: float) -> None:
        self._ask = ask
        self._fresh_s = fresh_s
        self._answered_s = 0.0
        self._asking: asyncio.Task[T] | None = None
        self.last: T | None = None

    async def get(self) -> T:
        """An answer that is fresh. Raises what the asking raises."""
        if self.last is not None and asyncio.get_running_loop().time() - self._answered_s < self._fresh_s:
            return self.last
        if self._asking is None:
            self._asking = asyncio.create_task(self._take())
            self._asking.add_done_callback(self._ended)
        return await asyncio.shield(self._asking)

    async def close(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _take(self) -> T:
        self.last = await self._ask()
        self._answered_s = asyncio.get_running_loop().time()
        return self.last

    def _ended(self, task: "asyncio.Task[T]") -> None:
        self._asking = None
        if not task.cancelled():
            task.exception()  # all that waited may have left
