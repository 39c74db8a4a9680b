"""The cluster source against an API server of a few lines that does what a real one does only now and then."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from kubernetes.client.configuration import Configuration

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.catalog_sources.api_server import ApiServer
from partitionedqueue_gateway.catalog_sources.cluster import ClusterSource
from partitionedqueue_gateway.entities.catalog import Catalog
from partitionedqueue_gateway.entities.failures import NoCredentials
from partitionedqueue_gateway.entities.queue import QueueName

PATH = "/apis/messaging.partitionedqueue.io/v1alpha1/partitionedqueues"
ORDERS = QueueName("shop", "orders")


def queue(name: str = "orders", *, version: int = 1, uid: str = "1", **spec: object) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": str(version)}
    kind = {"apiVersion": "messaging.partitionedqueue.io/v1alpha1", "kind": "PartitionedQueue"}
    return {**kind, "metadata": metadata, "spec": {"enablePartitioning": True, **spec}}


class FakeApiServer:
    """Lists `items`, and gives what is put into `events` to the watch that is open. Counts what it is asked."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.version = 1
        self.events: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()  # None: the connection breaks
        self.lists = 0
        self.watched_from: list[str] = []
        self.refuse: tuple[int, str] | None = None
        self.secret: dict[str, str] | None = None
        self.url = ""

    async def list_or_watch(self, request: web.Request) -> web.StreamResponse:
        if self.refuse is not None:
            status, words = self.refuse
            return web.json_response({"kind": "Status", "message": words, "code": status}, status=status)
        if "watch" in request.query:
            return await self._watch(request)
        self.lists += 1
        start = int(request.query.get("continue", "0"))
        end = start + int(request.query["limit"])
        more = {"continue": str(end)} if end < len(self.items) else {}
        bare = [{name: one[name] for name in ("metadata", "spec", "status") if name in one} for one in self.items]
        return web.json_response({"items": bare[start:end], "metadata": {"resourceVersion": str(self.version), **more}})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        self.watched_from.append(request.query["resourceVersion"])
        assert request.query["allowWatchBookmarks"] == "true"
        response = web.StreamResponse()
        await response.prepare(request)
        while (event := await self.events.get()) is not None:
            line = json.dumps(event).encode() + b"\n"
            for piece in (line[: len(line) // 2], line[len(line) // 2 :]):  # lines do not come in one piece
                await response.write(piece)
                await asyncio.sleep(0)
        assert request.transport is not None
        request.transport.abort()
        return response

    async def give_secret(self, request: web.Request) -> web.Response:
        assert request.match_info["name"] == "orders-broker"
        if self.secret is None:
            return web.json_response({"kind": "Status", "message": "not found", "code": 404}, status=404)
        return web.json_response({"data": self.secret})


@asynccontextmanager
async def fake() -> AsyncIterator[FakeApiServer]:
    server = FakeApiServer()
    app = web.Application()
    app.router.add_get(PATH, server.list_or_watch)
    app.router.add_get("/api/v1/namespaces/shop/secrets/{name}", server.give_secret)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def source_of(server: FakeApiServer) -> ClusterSource:
    configuration = Configuration()
    configuration.host = server.url
    return ClusterSource(ApiServer(configuration))


async def until(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not what():  # noqa: ASYNC110 -- what is waited for tells nobody
            await asyncio.sleep(0.01)


@asynccontextmanager
async def following(server: FakeApiServer) -> AsyncIterator[Catalog]:
    """A catalog that is fed until the block ends, once it is synced."""
    catalog = Catalog()
    feeding = asyncio.create_task(source_of(server).feed(catalog))
    try:
        await until(lambda: catalog.synced and bool(server.watched_from))
        yield catalog
        assert not feeding.done(), "the source has given up"
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)


async def test_queues_are_listed_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LIST_PAGE_MAX", 2)
    async with fake() as server:
        server.items = [queue(f"orders-{n}") for n in range(5)]
        async with following(server) as catalog:
            assert sorted(name.name for name in catalog.queues) == [f"orders-{n}" for n in range(5)]
            address = catalog.queues[QueueName("shop", "orders-3")].brokers[15]
            assert str(address) == "orders-3-broker-15.orders-3-broker.shop.svc:6379"


async def test_changes_are_heard_in_their_order() -> None:
    async with fake() as server, following(server) as catalog:
        assert not catalog.queues
        await server.events.put({"type": "ADDED", "object": queue(version=2)})
        await until(lambda: ORDERS in catalog.queues)
        await server.events.put({"type": "MODIFIED", "object": queue(version=3, maxDeliveryCount=3)})
        await until(lambda: catalog.queues[ORDERS].spec.max_delivery_count == 3)
        await server.events.put({"type": "DELETED", "object": queue(version=4)})
        await until(lambda: not catalog.queues)


async def test_a_watch_that_breaks_goes_on_where_it_was_without_listing_again() -> None:
    async with fake() as server, following(server) as catalog:
        await server.events.put({"type": "ADDED", "object": queue(version=7)})
        bookmark = {"kind": "PartitionedQueue", "metadata": {"resourceVersion": "9"}}
        await server.events.put({"type": "BOOKMARK", "object": bookmark})
        await server.events.put(None)
        await until(lambda: len(server.watched_from) == 2)
        assert server.watched_from == ["1", "9"]
        assert server.lists == 1
        assert ORDERS in catalog.queues


async def test_after_410_gone_what_is_missing_from_the_new_list_has_gone() -> None:
    async with fake() as server:
        server.items = [queue("orders"), queue("letters")]
        async with following(server) as catalog:
            heard: list[tuple[QueueName, bool]] = []
            catalog.listen(lambda name, queue: heard.append((name, queue is not None)))
            server.items, server.version = [queue("letters"), queue("parcels")], 20
            expired = {"kind": "Status", "code": 410, "message": "too old resource version"}
            await server.events.put({"type": "ERROR", "object": expired})
            await until(lambda: len(server.watched_from) == 2)
            assert server.watched_from[1] == "20"
            assert sorted(name.name for name in catalog.queues) == ["letters", "parcels"]
            assert heard == [(ORDERS, False), (QueueName("shop", "parcels"), True)]


async def test_a_silent_watch_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WATCH_SILENT_S_MAX", 0.2)
    async with fake() as server, following(server) as catalog:
        await until(lambda: len(server.watched_from) >= 3)
        assert catalog.synced
        assert server.lists == 1


async def test_an_api_server_that_is_away_leaves_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RETRY_S_MAX", 0.2)
    async with fake() as server:
        server.items = [queue()]
        async with following(server) as catalog:
            server.refuse = (503, "the API server is starting")
            await server.events.put(None)
            await until(lambda: "the API server is starting" in str(catalog.scopes[""].trouble))
            assert catalog.synced
            assert ORDERS in catalog.queues
            server.refuse = None
            await server.events.put({"type": "ADDED", "object": queue("letters", version=5)})
            await until(lambda: len(catalog.queues) == 2)
            assert catalog.scopes[""].trouble is None


async def test_a_cluster_without_the_definition_is_told_in_words_until_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "RETRY_S_MAX", 0.2)
    async with fake() as server:
        server.refuse = (404, "404 page not found")
        catalog = Catalog()
        feeding = asyncio.create_task(source_of(server).feed(catalog))
        try:
            await until(lambda: bool(catalog.scopes) and catalog.scopes[""].trouble is not None)
            assert "CustomResourceDefinition is not installed" in str(catalog.scopes[""].trouble)
            assert not catalog.synced
            server.refuse = None
            await until(lambda: catalog.synced)
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)


async def test_a_queue_of_a_later_version_is_named_and_the_others_are_served() -> None:
    async with fake() as server:
        server.items = [queue("letters"), queue("orders", telepathy=True)]
        async with following(server) as catalog:
            assert [name.name for name in catalog.queues] == ["letters"]
            assert "telepathy" in catalog.unreadable[ORDERS]
            await server.events.put({"type": "MODIFIED", "object": queue(version=3)})
            await until(lambda: ORDERS in catalog.queues)
            assert not catalog.unreadable


async def test_what_the_operator_does_not_accept_is_known_as_such() -> None:
    async with fake() as server:
        refused = {"type": "Accepted", "status": "False", "reason": "NameConflict", "message": "a Secret is in the way"}
        server.items = [{**queue(), "status": {"conditions": [refused]}}]
        async with following(server) as catalog:
            assert catalog.queues[ORDERS].held_back == "NameConflict: a Secret is in the way"


@pytest.mark.parametrize("garbage", [{"type": "ADDED"}, {"object": {}}, {"type": "ADDED", "object": {"metadata": {}}}])
async def test_an_event_that_makes_no_sense_leads_to_a_new_list(garbage: dict[str, Any]) -> None:
    async with fake() as server, following(server) as catalog:
        server.items = [queue()]
        await server.events.put(garbage)
        await until(lambda: ORDERS in catalog.queues)


async def test_an_event_beyond_the_bound_is_not_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WATCH_EVENT_BYTES_MAX", 4096)
    monkeypatch.setattr(limits, "RETRY_S_MAX", 0.2)
    async with fake() as server, following(server) as catalog:
        await server.events.put({"type": "ADDED", "object": {"words": "x" * 100_000}})
        await until(lambda: catalog.scopes[""].trouble is not None)
        assert "more than 4096 bytes" in str(catalog.scopes[""].trouble)


async def test_passwords_are_read_from_the_secret_of_the_queue() -> None:
    async with fake() as server:
        server.items = [queue()]
        async with following(server) as catalog:
            found, source = catalog.queues[ORDERS], source_of(server)
            with pytest.raises(NoCredentials, match="Secret shop/orders-broker is not there yet"):
                await source.password(found)
            server.secret = {"gateway-password": base64.b64encode(b"open sesame").decode()}
            assert await source.password(found) == "open sesame"
            server.secret = {"another": ""}
            with pytest.raises(NoCredentials, match="has no usable gateway-password"):
                await source.password(found)
            await source._api.close()
