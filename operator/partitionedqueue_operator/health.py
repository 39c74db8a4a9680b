"""What the operator tells of itself over HTTP: /healthz, /readyz, /metrics.

It is served from a thread of its own: a kubelet that asks a busy operator must not take it for a dead one.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from aiohttp import web

from partitionedqueue_operator.census import Census
from partitionedqueue_operator.cluster.api import Api
from partitionedqueue_operator.conditions.standing import condition_in
from partitionedqueue_operator.controller import Controller
from partitionedqueue_operator.freshness import Freshness
from partitionedqueue_operator.loops import Pulse

SHUTDOWN_S: Final = 2.0
STUCK_S: Final = 60.0
LATELY_S: Final = 30.0


class Health:
    """Answers the kubelet and Prometheus."""

    def __init__(self, api: Api, controller: Controller, freshness: Freshness, census: Census, pulse: Pulse) -> None:
        self._api = api
        self._census = census
        self._controller = controller
        self._freshness = freshness
        self._pulse = pulse

    async def serve(self, port: int) -> None:
        """Until cancelled."""
        app = web.Application()
        app.router.add_get("/healthz", self._answer(self._healthy))
        app.router.add_get("/readyz", self._answer(self._ready))
        app.router.add_get("/metrics", self._metrics)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_S)
        await runner.setup()
        try:
            await web.TCPSite(runner, port=port).start()
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    @staticmethod
    def _answer(look: Callable[[], str]) -> Callable[[web.Request], "asyncio.Future[web.Response]"]:
        async def answer(_request: web.Request) -> web.Response:
            trouble = look()
            return web.Response(text=f"{trouble or 'ok'}\n", status=503 if trouble else 200)

        return answer  # type: ignore[return-value]

    def _healthy(self) -> str:
        if (stuck_s := self._pulse.late_s(time.monotonic())) > STUCK_S:
            return f"the event loop has been stuck for {stuck_s:.0f} s"
        stale = self._freshness.stale()
        return f"nothing was heard of {', '.join(stale)}" if stale else ""

    def _ready(self) -> str:
        return "" if self._census.complete.is_set() else f"waiting for {self._census.waits_for}"

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(text="".join(self._lines()), content_type="text/plain", charset="utf-8")

    def _lines(self) -> Iterator[str]:
        controller, queues = self._controller, list(self._controller.cache.queues())  # the other thread goes on
        yield from _metric("leading", "gauge", "1 where this operator acts", int(controller.leading))
        yield from _metric("queue_depth", "gauge", "queues that are due", controller.work.waiting)
        yield from _metric("reconciled_total", "counter", "queues looked at", controller.work.done)
        yield from _metric("failed_total", "counter", "of these, tries that failed", controller.work.failed)
        yield from _metric("broker_calls_total", "counter", "brokers asked", controller.brokers.calls_made)
        late_s = self._pulse.late_s(time.monotonic() - LATELY_S)
        yield from _metric("late_seconds", "gauge", "how late its event loop was, at most, in 30 s", round(late_s, 3))
        refused = len(self._freshness.refused())
        yield from _metric("watches_refused", "gauge", "watches that the API server does not allow", refused)
        availability = Counter(queue.status.get("availability", "Unknown") for queue in queues)
        yield "# HELP pq_operator_queues queues by availability\n# TYPE pq_operator_queues gauge\n"
        yield from (f'pq_operator_queues{{availability="{word}"}} {n}\n' for word, n in sorted(availability.items()))
        ready = sum(condition_in(queue.status, "Ready").get("status") == "True" for queue in queues)
        yield from _metric("queues_ready", "gauge", "queues whose spec holds in every partition", ready)
        yield "# HELP pq_operator_api_requests_total requests to the API server\n"
        yield "# TYPE pq_operator_api_requests_total counter\n"
        for (verb, kind, status), count in sorted(self._api.requests.copy().items()):
            labels = f'verb="{verb}",kind="{kind}",code="{status}"'
            yield f"pq_operator_api_requests_total{{{labels}}} {count}\n"


def _metric(name: str, kind: str, words: str, value: float) -> Iterator[str]:
    yield f"# HELP pq_operator_{name} {words}\n# TYPE pq_operator_{name} {kind}\npq_operator_{name} {value}\n"
