"""How queues stand right now: all partitions are asked at once, and whoever asks meanwhile shares the answer."""

import asyncio
import time
from collections.abc import Iterable, Sequence

from partitionedqueue.broker import calls
from partitionedqueue.broker.replies import About
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.brokers import Brokers
from partitionedqueue_gateway.entities.catalog import Catalog
from partitionedqueue_gateway.entities.health import PartitionReport, QueueReport, queue_report_of, report_of
from partitionedqueue_gateway.entities.queue import Queue, QueueName
from partitionedqueue_gateway.entities.shared import Shared


class _Standing:
    """What is asked of one queue."""

    def __init__(self, brokers: Brokers, queue: Queue) -> None:
        self.queue = queue
        self.report = Shared(self._report, fresh_s=limits.REPORT_FRESH_S)
        self.libraries = Shared(self._libraries, fresh_s=limits.REPORT_FRESH_S)
        self._brokers = brokers
        self._resting_until_s: dict[int, float] = {}  # partitions that took long to fail

    async def _report(self) -> QueueReport:
        queue = self.queue
        partitions = await asyncio.gather(*(self._totals(queue, n) for n in range(queue.spec.partitions)))
        return queue_report_of(queue, partitions, int(time.time() * 1000))

    async def _totals(self, queue: Queue, partition: int) -> PartitionReport:
        began_s = _now_s()
        if self.report.last is not None and began_s < self._resting_until_s.get(partition, 0.0):
            return self.report.last.partitions[partition]
        try:
            totals = await self._brokers.ask(queue, partition, calls.totals(queue.keys))
        except PartitionedQueueError as error:
            now_s = _now_s()
            self._resting_until_s[partition] = now_s + limits.SICK_REST_FACTOR * (now_s - began_s)
            return report_of(queue, partition, error)
        self._resting_until_s.pop(partition, None)
        return report_of(queue, partition, totals)

    async def _libraries(self) -> Sequence[About | None]:
        sick = (await self.report.get()).sick
        queue = self.queue
        return await asyncio.gather(*(self._library(queue, n, sick=n in sick) for n in range(queue.spec.partitions)))

    async def _library(self, queue: Queue, partition: int, *, sick: bool) -> About | None:
        if sick:
            return None
        try:
            return await self._brokers.ask(queue, partition, calls.about())
        except PartitionedQueueError:
            return None


class Standings:
    """The reports of all queues, none older than `limits.REPORT_FRESH_S` where there was time to ask."""

    def __init__(self, catalog: Catalog, brokers: Brokers) -> None:
        self._catalog = catalog
        self._brokers = brokers
        self._standings: dict[QueueName, _Standing] = {}
        catalog.listen(self._queue_changed)

    async def of(self, queue: Queue) -> QueueReport:
        """How one queue stands."""
        return await self._standing(queue).report.get()

    async def libraries(self, queue: Queue) -> Sequence[About | None]:
        """Which library each partition runs; None where it does not serve or does not say."""
        return await self._standing(queue).libraries.get()

    async def of_all(self, queues: Iterable[Queue]) -> list[QueueReport]:
        """How many queues stand. One that was not heard out in time is given as it was, or as not known."""
        wanted = list(queues)
        asking = [asyncio.ensure_future(self.of(queue)) for queue in wanted]
        if asking:
            _, late = await asyncio.wait(asking, timeout=limits.REPORTS_WAIT_S_MAX)
            for one in late:
                one.cancel()  # only the waiting: what is being asked is there for the next who wants it
        return [
            one.result() if one.done() else self._standing(queue).report.last or QueueReport(queue, (), 0)
            for queue, one in zip(wanted, asking, strict=True)
        ]

    async def close(self) -> None:
        """Ask no more."""
        for standing in self._standings.values():
            await standing.report.close()
            await standing.libraries.close()

    def _standing(self, queue: Queue) -> _Standing:
        known = self._catalog.queues.get(queue.name)
        if known is None or not known.is_served_as(queue):
            return _Standing(self._brokers, queue)  # it went while somebody asked: nothing of it is kept
        if queue.name not in self._standings:
            self._standings[queue.name] = _Standing(self._brokers, known)
        return self._standings[queue.name]

    def _queue_changed(self, name: QueueName, queue: Queue | None) -> None:
        standing = self._standings.get(name)
        if standing is None:
            return
        if queue is not None and queue.is_served_as(standing.queue):
            standing.queue = queue
        else:
            del self._standings[name]  # whoever is asking finds out by itself: its connections are closed


def _now_s() -> float:
    return asyncio.get_running_loop().time()
