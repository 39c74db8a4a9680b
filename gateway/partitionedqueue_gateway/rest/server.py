"""The HTTP server: what every request passes through, how many there may be, and how it comes to its end."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

from aiohttp import web
from aiohttp.http import HttpProcessingError

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.catalog import Catalog
from partitionedqueue_gateway.entities.totals import Standings
from partitionedqueue_gateway.rest import failures, shapes
from partitionedqueue_gateway.rest.api import Api
from partitionedqueue_gateway.rest.connections import Connections
from partitionedqueue_gateway.rest.health import Health
from partitionedqueue_gateway.rest.metrics import Metrics
from partitionedqueue_gateway.rest.refusals import TooManyRequests

_log = logging.getLogger(__name__)
_aiohttp_log = logging.getLogger(f"{__name__}.aiohttp")
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


Answered = Counter[tuple[str, int]]
_CONNECTIONS: Final = web.AppKey("connections", Connections)
NOWHERE: Final = "none"
"""Answers of no route are counted together."""


class Room(Protocol):
    """Something that answers requests."""

    @property
    def waits(self) -> bool:
        """Whether its requests may wait for long: the bound of those under way is not for them."""

    def routes(self) -> Sequence[web.RouteDef]:
        """What is answered here."""


def for_operations(
    catalog: Catalog,
    standings: Standings,
    health: Health,
    answered: Answered,
    upgrades: Sequence[web.RouteDef],
    *,
    rooms: Sequence[Room] = (),
) -> web.Application:
    """All that is answered over HTTP. `upgrades` leave it for another protocol, which has bounds of its own."""
    own = (health, Api(catalog, standings), Metrics(catalog, standings, answered))
    return _application([route for room in own for route in room.routes()], rooms, answered, upgrades)


def for_everybody(
    answered: Answered, upgrades: Sequence[web.RouteDef], *, rooms: Sequence[Room] = ()
) -> web.Application:
    """What is answered on ports that lead out of the cluster: nothing of operations, which asks for no login."""
    return _application([], rooms, answered, upgrades)


def _application(
    operations: Sequence[web.RouteDef], rooms: Sequence[Room], answered: Answered, upgrades: Sequence[web.RouteDef]
) -> web.Application:
    """`rooms` answer for entities and refuse as Azure does; what stands before them keeps its paths to itself."""
    own = {route.path for route in (*operations, *upgrades)}
    if operations:
        own.add(NOWHERE)
    unbounded = {"/healthz", "/readyz", *(route.path for route in upgrades)}
    connections = Connections()
    app = web.Application(
        middlewares=[_counted(answered, own, connections), _bounded(unbounded)],
        client_max_size=limits.REQUEST_BYTES_MAX,
    )
    app[_CONNECTIONS] = connections
    app.router.add_routes([*operations, *upgrades])
    for room in rooms:
        added = app.router.add_routes(room.routes())
        if room.waits:
            unbounded.update(_name_of(route) for route in added)
    return app


def _name_of(route: web.AbstractRoute) -> str:
    """The route's own text: paths that somebody made up make no series."""
    return route.resource.canonical if route.resource is not None else NOWHERE


@asynccontextmanager
async def serving(app: web.Application) -> AsyncIterator[Callable[[], asyncio.Protocol]]:
    """Serve the connections that are handed over; in the end what is under way is given `limits.END_S_MAX`."""
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=_aiohttp_log,
        keepalive_timeout=limits.IDLE_S_MAX,
        shutdown_timeout=limits.END_S_MAX,
        max_field_size=limits.HEADER_BYTES_MAX,
        auto_decompress=False,  # a few bytes could become gigabytes
        handler_cancellation=True,  # nobody waits for a message whose client has gone
    )
    await runner.setup()
    try:
        yield _NewConnection(runner, app.get(_CONNECTIONS, Connections()))
    finally:
        await runner.cleanup()


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether a failure is our concern: what is no HTTP is answered 400, and would fill the log, with keys maybe."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError | web.RequestPayloadError)


_aiohttp_log.addFilter(_is_ours)


class _Closed(asyncio.Protocol):
    """A connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class _NewConnection:
    """Makes the protocol of each connection. aiohttp counts one from the loop's next turn on; until then we do."""

    def __init__(self, runner: web.AppRunner, connections: Connections) -> None:
        self._runner = runner
        self._connections = connections
        self._new = 0

    def __call__(self) -> asyncio.Protocol:
        server = self._runner.server
        if server is None:
            return _Closed()
        if len(server.connections) + self._new >= limits.CONNECTIONS_MAX and not self._connections.make_room():
            return _Closed()
        self._new += 1
        asyncio.get_running_loop().call_soon(self._counted)
        made = server()
        self._connections.new(made)
        return made

    def _counted(self) -> None:
        self._new -= 1


def _counted(answered: Counter[tuple[str, int]], operations: Container[str], connections: Connections) -> Any:
    @web.middleware
    async def counted(request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Count answers, and turn failures into them."""
        route = _name_of(request.match_info.route)
        connections.begin(request.protocol)
        try:
            response = await handler(request)
        except (web.HTTPException, PartitionedQueueError) as error:
            response = _refused(request, error) if route in operations else failures.answer_to(request, error)
        except Exception as error:
            if route in operations:
                answered[route, 500] += 1
                _log.exception("%s %s failed", request.method, request.path)
                raise
            response = failures.answer_to(request, error)
        finally:
            connections.end(request.protocol)
        answered[route, response.status] += 1
        if not response.prepared:
            response.headers["Cache-Control"] = "no-store"
            if route in operations:
                response.enable_compression()
        return response

    return counted


def _refused(request: web.Request, error: web.HTTPException | PartitionedQueueError) -> web.Response:
    if isinstance(error, PartitionedQueueError):
        refusal = failures.told(error)
        reason, status, words = type(error).__name__, refusal.status, refusal.words
        headers = {"Retry-After": str(refusal.retry_s)} if refusal.retry_s else {}
    else:
        reason, status = error.reason.replace(" ", ""), error.status
        words = f"{request.method} {request.path}: {error.reason.lower()}"
        headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
    return web.json_response(shapes.error(reason, words), status=status, headers=headers)


def _bounded(unbounded: Container[str]) -> Any:
    under_way = 0

    @web.middleware
    async def bounded(request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Refuse what is too much, but never the kubelet's questions nor what only begins as HTTP."""
        nonlocal under_way
        if _name_of(request.match_info.route) in unbounded:
            return await handler(request)
        if under_way >= limits.REQUESTS_AT_ONCE_MAX:
            raise TooManyRequests(f"{under_way} requests are under way; ask again in a moment")
        under_way += 1
        try:
            return await handler(request)
        finally:
            under_way -= 1

    return bounded
