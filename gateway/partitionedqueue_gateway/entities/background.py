"""Work that nobody waits for, but that somebody owns: it is ended when its owner is."""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from typing import Any

from partitionedqueue.model.errors import PartitionedQueueError

_log = logging.getLogger(__name__)


class Background:
    """Tasks, each of which may fail by itself."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something. A failure of the domain's is expected; any other is a defect, and logged."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def close(self, within_s: float) -> None:
        """Wait for what is under way; cancel what takes longer."""
        deadline = asyncio.get_running_loop().time() + within_s
        while self._tasks and (left_s := deadline - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait([*self._tasks], timeout=left_s)
        late = [*self._tasks]
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not isinstance(error, PartitionedQueueError):
            _log.error("a defect", exc_info=error)


async def settled(work: Awaitable[Any]) -> None:
    """Wait for something whose failure does not matter: the broker lets locks expire by itself."""
    try:
        await work
    except PartitionedQueueError as error:
        _log.debug("not done: %s", error)
