"""Due work when nobody calls: locks that expire, messages that become visible or too old, in one broker's queues."""

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from partitionedqueue.broker import calls
from partitionedqueue.broker.bell import Bell, Listening
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Swept
from partitionedqueue.broker.waiting import AT_ONCE, seconds_until
from partitionedqueue.model import limits
from partitionedqueue.model.errors import BrokerUnavailable, PartitionedQueueError


@dataclass(slots=True, eq=False)
class _Queue:
    """One queue, and when (by the loop's clock) it is to be swept next."""

    keys: QueueKeys
    next_s: float
    swept_s: float
    listening: Listening | None = None


class Sweeper:
    """Sweeps queues of one broker (their sub-queues with them) when the broker says that something falls due.

    It hears by the bell of what falls due sooner than was known, and is `limits.SWEEP_RUNG_S` late at most; while it
    does not hear, it asks every `limits.UNHEARD_ASK_S`. A broker that is away is tried again for ever, ever less often
    up to `limits.RECONNECT_DELAY_S_MAX`.
    """

    def __init__(self, client: BrokerClient, bell: Bell, queues: Iterable[QueueKeys]) -> None:
        self._client = client
        self._bell = bell
        self._keys = tuple(queues)
        self._rang = asyncio.Event()
        self._delay_s = limits.RECONNECT_DELAY_S_MIN

    async def run(self) -> None:
        """Sweep until cancelled."""
        loop = asyncio.get_running_loop()
        queues = [_Queue(keys, loop.time(), 0.0) for keys in self._keys]
        for queue in queues:
            queue.listening = self._bell.listen(queue.keys.wake, partial(self._rung, queue))
        try:
            while queues:
                self._rang.clear()
                due = [queue for queue in queues if queue.next_s <= loop.time()]
                if due:
                    await self._sweep(due[: limits.SWEEPS_AT_ONCE_MAX])
                await self._wait(min(queue.next_s for queue in queues) - loop.time())
        finally:
            for queue in queues:
                if queue.listening is not None:
                    queue.listening.end()

    def _rung(self, queue: _Queue, payload: bytes | None) -> None:
        if payload:  # a session has something: nothing that falls due
            return
        soonest = queue.swept_s + limits.SWEEP_RUNG_S
        if soonest < queue.next_s:
            queue.next_s = soonest
            self._rang.set()

    async def _wait(self, pause_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(AT_ONCE, pause_s)):
                await self._rang.wait()

    async def _sweep(self, due: Sequence[_Queue]) -> None:
        loop = asyncio.get_running_loop()
        for queue in due:
            queue.swept_s = loop.time()
            queue.next_s = loop.time() + limits.ASK_AGAIN_S_MAX  # unless it rings while it is swept
        try:
            outcomes = await asyncio.gather(*map(self._swept, due))
        except BrokerUnavailable:
            for queue in due:
                queue.next_s = loop.time() + self._delay_s
            self._delay_s = min(self._delay_s * 2, limits.RECONNECT_DELAY_S_MAX)
            return
        self._delay_s = limits.RECONNECT_DELAY_S_MIN
        for queue, swept in zip(due, outcomes, strict=True):
            queue.next_s = min(queue.next_s, loop.time() + _pause_s(queue, swept))

    async def _swept(self, queue: _Queue) -> Swept:
        try:
            return await self._client.call(calls.sweep(queue.keys))
        except BrokerUnavailable:
            raise
        except PartitionedQueueError:  # a queue of a later layout, say: it must not hold the others up
            return Swept(-1, 0)


def _pause_s(queue: _Queue, swept: Swept) -> float:
    heard = queue.listening is not None and queue.listening.in_effect
    pause_s = max(limits.SWEEP_S_MIN, seconds_until(swept.next_due_ms, swept.now_ms))
    return pause_s if heard else min(pause_s, limits.UNHEARD_ASK_S)
