"""`/api/v1`: how queues stand, for programs and for `kubectl pq`."""

import asyncio

from aiohttp import web

from partitionedqueue_gateway.entities.catalog import Catalog
from partitionedqueue_gateway.entities.queue import QueueName
from partitionedqueue_gateway.entities.totals import Standings
from partitionedqueue_gateway.rest import shapes


class Api:
    """Answers from the catalog and from the brokers."""

    def __init__(self, catalog: Catalog, standings: Standings) -> None:
        self._catalog = catalog
        self._standings = standings

    def routes(self) -> list[web.RouteDef]:
        """What is answered here."""
        return [
            web.get("/api/v1/queues", self.queues),
            web.get("/api/v1/namespaces/{namespace}/queues", self.queues),
            web.get("/api/v1/namespaces/{namespace}/queues/{queue}", self.queue),
        ]

    async def queues(self, request: web.Request) -> web.Response:
        """Every queue, or those of one namespace, by name."""
        only = request.match_info.get("namespace")
        wanted = [queue for name, queue in sorted(self._catalog.queues.items()) if only in {None, name.namespace}]
        reports = await self._standings.of_all(wanted)
        unreadable = [
            {"namespace": name.namespace, "name": name.name, "message": words}
            for name, words in sorted(self._catalog.unreadable.items())
            if only in {None, name.namespace}
        ]
        catalog = {
            "synced": self._catalog.synced,
            "ageSeconds": round(self._catalog.age_s(asyncio.get_running_loop().time()), 1),
        }
        body = {"queues": [shapes.queue(one) for one in reports], "unreadable": unreadable, "catalog": catalog}
        return web.json_response(body)

    async def queue(self, request: web.Request) -> web.Response:
        """One queue, with each of its partitions."""
        name = QueueName(request.match_info["namespace"], request.match_info["queue"])
        queue = self._catalog.queues.get(name)
        if queue is None:
            return self._no_such_queue(name)
        report, libraries = await self._standings.of(queue), await self._standings.libraries(queue)
        each = [
            shapes.partition(number, one, address, about)
            for number, (one, address, about) in enumerate(
                zip(report.partitions, queue.brokers, libraries, strict=True)
            )
        ]
        return web.json_response({**shapes.queue(report), "eachPartition": each})

    def _no_such_queue(self, name: QueueName) -> web.Response:
        words = self._catalog.unreadable.get(name)
        if words is not None:
            return web.json_response(shapes.error("NotUnderstood", words), status=409)
        if not self._catalog.synced:
            words = "the queues are not known yet; ask again in a moment"
            return web.json_response(shapes.error("NotSynced", words), status=503)
        words = f"this gateway knows no queue {name.name} in namespace {name.namespace}"
        return web.json_response(shapes.error("NoSuchQueue", words), status=404)
