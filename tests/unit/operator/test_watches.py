"""kopf's watches against an API server that falls silent in every way it can, and in the end they themselves do."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web

from partitionedqueue_operator import freshness as freshness_module
from partitionedqueue_operator import handlers
from partitionedqueue_operator.cluster.access import Access
from partitionedqueue_operator.cluster.kinds import WATCHED, Kind
from partitionedqueue_operator.controller import Controller
from partitionedqueue_operator.freshness import Freshness
from partitionedqueue_operator.settings import Settings

STALE_S = 1.5
ASKED_FOR = (
    Kind("Namespace", "", "v1", "namespaces"),
    Kind("CustomResourceDefinition", "apiextensions.k8s.io", "v1", "customresourcedefinitions"),
)
"""What kopf will not begin without, although it is not to watch it."""


class Server:
    """Lists nothing, and ends a watch when its time is over: unless it is frozen, then it takes and says nothing."""

    def __init__(self) -> None:
        self.frozen = False
        self.asked = 0
        self.address = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        while self.frozen:  # noqa: ASYNC110 -- as a process that is stopped
            await asyncio.sleep(0.05)
        if "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.sleep(float(request.query["timeoutSeconds"]))
        return response

    async def discover(self, request: web.Request) -> web.Response:
        """What kopf asks before it watches: which kinds there are."""
        group, version = request.match_info.get("group", ""), request.match_info["version"]
        found = [
            {"name": kind.plural, "singularName": "", "namespaced": True, "kind": kind.name, "verbs": ["list", "watch"]}
            for kind in (*WATCHED, *ASKED_FOR)
            if (kind.group, kind.version) == (group, version)
        ]
        return web.json_response({"resources": found})


class ToTheServer:
    """Access without TLS and credentials."""

    def __init__(self, server: Server) -> None:
        self.server = server.address

    async def headers(self) -> dict[str, str]:
        return {}

    def session(self, *, headers: dict[str, str], traces: list[aiohttp.TraceConfig]) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(headers=headers, trace_configs=traces)


@asynccontextmanager
async def watching(server: Server, watched: list[asyncio.AbstractEventLoop]) -> AsyncIterator[Freshness]:
    """`watched` gets the event loop of kopf's thread."""
    app = web.Application()
    app.router.add_get("/apis", _groups)
    app.router.add_get("/api", _versions)
    app.router.add_get("/api/{version}", server.discover)
    app.router.add_get("/apis/{group}/{version}", server.discover)
    app.router.add_get("/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.address = "http://{}:{}".format(*runner.addresses[0])

    def relisted(_kind: Kind) -> None:
        watched.append(asyncio.get_running_loop())

    fresh = Freshness(WATCHED, relisted)
    access, controller = cast("Access", ToTheServer(server)), cast("Controller", None)
    watches = handlers.Watches(Settings(broker_image="i"), access, controller, fresh)
    running = asyncio.create_task(watches.run())
    try:
        yield fresh
    finally:
        server.frozen = False
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await runner.cleanup()


async def _groups(_: web.Request) -> web.Response:
    groups = {(kind.group, kind.version) for kind in (*WATCHED, *ASKED_FOR) if kind.group}
    versions = [(group, {"groupVersion": f"{group}/{version}", "version": version}) for group, version in groups]
    found = [{"name": group, "versions": [one], "preferredVersion": one} for group, one in versions]
    return web.json_response({"groups": found})


async def _versions(_: web.Request) -> web.Response:
    return web.json_response({"versions": ["v1"]})


async def until(holds: Callable[[], Any], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 -- it comes to hold in another thread
            await asyncio.sleep(0.05)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred times as quick as in a cluster."""
    monkeypatch.setattr(handlers, "WATCH_S_MAX", 0.4)
    monkeypatch.setattr(handlers, "LONGEST_RETRY_S", 0.2)
    monkeypatch.setattr(handlers, "END_S_MAX", 2.0)
    monkeypatch.setattr(freshness_module, "STALE_S", STALE_S)
    configured = handlers._configured

    def quicker() -> Any:
        settings = configured()
        settings.watching.client_timeout = settings.watching.inactivity_timeout = 0.7
        settings.networking.request_timeout = 0.7
        settings.watching.reconnect_backoff = 0.1
        return settings

    monkeypatch.setattr(handlers, "_configured", quicker)


async def test_watches_that_hear_no_news_are_well_and_so_are_those_whose_api_server_says_nothing() -> None:
    server, loops = Server(), list[asyncio.AbstractEventLoop]()
    async with watching(server, loops) as fresh:
        await until(lambda: len(loops) >= len(WATCHED))
        await asyncio.sleep(1.5 * STALE_S)
        assert fresh.stale() == []
        server.frozen = True
        await asyncio.sleep(2 * STALE_S)
        assert fresh.stale() == []  # they try, and know that nobody answers: to begin anew would help nobody
        server.frozen, asked = False, server.asked
        await until(lambda: server.asked > asked + len(WATCHED))
        assert fresh.stale() == []


async def test_watches_that_have_frozen_themselves_are_noticed() -> None:
    server, loops = Server(), list[asyncio.AbstractEventLoop]()
    async with watching(server, loops) as fresh:
        await until(lambda: len(loops) >= len(WATCHED))
        loops[0].call_soon_threadsafe(time.sleep, 2 * STALE_S)
        await until(lambda: len(fresh.stale()) == len(WATCHED))
        assert any(words.startswith("pods for ") for words in fresh.stale())
        await until(lambda: not fresh.stale())
