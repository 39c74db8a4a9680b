"""Which queues are to be looked at, each by one worker at a time; what fails is tried again, later and later."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Final

from partitionedqueue_operator.observed import Key

WORKERS: Final = 16
RETRY_S_MIN: Final = 0.5
RETRY_S_MAX: Final = 60.0
_log = logging.getLogger(__name__)


class Work:
    """A set of keys that are due. A key that is added while it is worked on is worked on once more."""

    def __init__(self, do: Callable[[Key], Awaitable[float | None]], *, expected: type[Exception] = Exception) -> None:
        self._do = do
        self._expected = expected  # what may be raised; anything else is a fault of this program
        self._due: dict[Key, None] = {}
        self._running: set[Key] = set()
        self._again: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._ready = asyncio.Event()
        self.done = 0
        self.failed = 0

    @property
    def waiting(self) -> int:
        """How many are due now."""
        return len(self._due) + len(self._running)

    def add(self, key: Key, *, after_s: float = 0.0) -> None:
        """The queue is due, now or after some seconds; the sooner of two times holds."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if after_s > 0:
            if timer is not None and timer.when() <= loop.time() + after_s:
                return
            if timer is not None:
                timer.cancel()
            self._timers[key] = loop.call_later(after_s, self.add, key)
            return
        if timer is not None:
            timer.cancel()
            del self._timers[key]
        if key in self._running:
            self._again.add(key)
        elif key not in self._due:
            self._due[key] = None
            self._ready.set()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._worker())

    async def _worker(self) -> None:
        while True:
            while not self._due:
                self._ready.clear()
                await self._ready.wait()
            key = next(iter(self._due))
            del self._due[key]
            self._running.add(key)
            try:
                await self._once(key)
            finally:
                self._running.discard(key)
                if key in self._again:
                    self._again.discard(key)
                    self.add(key)

    async def _once(self, key: Key) -> None:
        try:
            look_again_s = await self._do(key)
        except Exception as error:  # noqa: BLE001 -- one queue's trouble must not end the others'
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            self.failed += 1
            delay = min(RETRY_S_MIN * 2 ** min(failures - 1, 10), RETRY_S_MAX) * random.uniform(0.5, 1.0)
            _log.warning("queue %s: %s; tried again in %.1f s", key, str(error) or type(error).__name__, delay)
            known = isinstance(error, self._expected) or failures > 1
            _log.log(logging.DEBUG if known else logging.ERROR, "queue %s", key, exc_info=error)
            self.add(key, after_s=delay)
            return
        self.done += 1
        self._failures.pop(key, None)
        if look_again_s is not None:
            self.add(key, after_s=look_again_s)
