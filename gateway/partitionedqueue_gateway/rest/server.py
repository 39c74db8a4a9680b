"""The HTTP server: what every request passes through, how many there may be, and how it comes to its end."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.catalog import Catalog
from partitionedqueue_gateway.entities.totals import Standings
from partitionedqueue_gateway.rest import shapes
from partitionedqueue_gateway.rest.api import Api
from partitionedqueue_gateway.rest.health import Health
from partitionedqueue_gateway.rest.metrics import Metrics

_log = logging.getLogger(__name__)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


Answered = Counter[tuple[str, int]]


def for_operations(
    catalog: Catalog, standings: Standings, health: Health, answered: Answered, upgrades: Sequence[web.RouteDef]
) -> web.Application:
    """All that is answered over HTTP. `upgrades` leave it for another protocol, which has bounds of its own."""
    rooms = (health, Api(catalog, standings), Metrics(catalog, standings, answered))
    return _application([route for room in rooms for route in room.routes()], answered, upgrades)


def for_everybody(answered: Answered, upgrades: Sequence[web.RouteDef]) -> web.Application:
    """What is answered on ports that lead out of the cluster: nothing that asks for no login."""
    return _application([], answered, upgrades)


def _application(
    routes: Sequence[web.RouteDef], answered: Answered, upgrades: Sequence[web.RouteDef]
) -> web.Application:
    unbounded = {"/healthz", "/readyz", *(route.path for route in upgrades)}
    app = web.Application(
        middlewares=[_counted(answered), _bounded(unbounded)], client_max_size=limits.REQUEST_BYTES_MAX
    )
    app.router.add_routes([*routes, *upgrades])
    return app


@asynccontextmanager
async def serving(app: web.Application) -> AsyncIterator[Callable[[], asyncio.Protocol]]:
    """Serve the connections that are handed over; in the end what is under way is given `limits.END_S_MAX`."""
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=limits.IDLE_S_MAX, shutdown_timeout=limits.END_S_MAX)
    await runner.setup()
    try:
        yield _NewConnection(runner)
    finally:
        await runner.cleanup()


class _Closed(asyncio.Protocol):
    """A connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class _NewConnection:
    """Makes the protocol of each connection. aiohttp counts one from the loop's next turn on; until then we do."""

    def __init__(self, runner: web.AppRunner) -> None:
        self._runner = runner
        self._new = 0

    def __call__(self) -> asyncio.Protocol:
        server = self._runner.server
        if server is None or len(server.connections) + self._new >= limits.CONNECTIONS_MAX:
            return _Closed()
        self._new += 1
        asyncio.get_running_loop().call_soon(self._counted)
        return server()

    def _counted(self) -> None:
        self._new -= 1


def _counted(answered: Counter[tuple[str, int]]) -> Any:
    @web.middleware
    async def counted(request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Count answers by the route's own text: paths that somebody made up make no series."""
        resource = request.match_info.route.resource
        route = resource.canonical if resource is not None else "none"
        try:
            response = await handler(request)
        except web.HTTPException as error:
            reason, words = error.reason.replace(" ", ""), f"{request.method} {request.path}: {error.reason.lower()}"
            response = web.json_response(shapes.error(reason, words), status=error.status)
            if "Allow" in error.headers:
                response.headers["Allow"] = error.headers["Allow"]
        except Exception:
            answered[route, 500] += 1
            _log.exception("%s %s failed", request.method, request.path)
            raise
        answered[route, response.status] += 1
        if not response.prepared:
            response.headers["Cache-Control"] = "no-store"
            response.enable_compression()
        return response

    return counted


def _bounded(unbounded: Container[str]) -> Any:
    under_way = 0

    @web.middleware
    async def bounded(request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Refuse what is too much, but never the kubelet's questions nor what only begins as HTTP."""
        nonlocal under_way
        if under_way >= limits.REQUESTS_AT_ONCE_MAX and request.path not in unbounded:
            words = f"{under_way} requests are under way; ask again in a moment"
            return web.json_response(shapes.error("TooManyRequests", words), status=503, headers={"Retry-After": "1"})
        under_way += 1
        try:
            return await handler(request)
        finally:
            under_way -= 1

    return bounded
