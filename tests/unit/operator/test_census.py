"""What no watch has told of is found out, and a list that is older than the watch fools nobody."""

import asyncio
from typing import Any, cast

import pytest

from partitionedqueue_operator import census as census_module
from partitionedqueue_operator.census import Census
from partitionedqueue_operator.cluster.api import Api, ApiFault
from partitionedqueue_operator.cluster.cache import Cache
from partitionedqueue_operator.cluster.kinds import PODS, QUEUES, Kind
from partitionedqueue_operator.controller import Controller
from partitionedqueue_operator.observed import Key
from partitionedqueue_operator.settings import Settings


class Server:
    """Lists what it is told to list, and has what it is told to have."""

    def __init__(self) -> None:
        self.listed: set[tuple[str, str, str]] = set()
        self.there: dict[str, str] = {}

    async def names(self, *_: object) -> set[tuple[str, str, str]]:
        return self.listed

    async def get(self, _kind: Kind, _namespace: str, name: str) -> dict[str, Any] | None:
        return {"metadata": {"uid": self.there[name]}} if name in self.there else None


def known(*names: str) -> tuple[Server, Cache, Census]:
    server, cache = Server(), Cache()
    controller = Controller(Settings(broker_image="i"), cache, cast("Any", None))
    for name in names:
        metadata = {"name": name, "namespace": "n", "uid": f"u-{name}"}
        controller.seen(QUEUES, {"metadata": metadata, "spec": {}}, gone=False)
    return server, cache, Census(cast("Api", server), controller, lambda _: "", ())


async def test_what_has_gone_unnoticed_is_given_up() -> None:
    server, cache, census = known("a", "b")
    server.listed, server.there = {("n", "a", "u-a")}, {"a": "u-a"}
    await census._count(QUEUES)
    assert cache.queue(Key("n", "a"))
    assert cache.queue(Key("n", "b")) is None


async def test_what_an_old_list_does_not_have_yet_is_kept() -> None:
    server, cache, census = known("a", "b")
    server.there = {"a": "u-a", "b": "another"}
    await census._count(QUEUES)
    assert cache.queue(Key("n", "a"))
    assert cache.queue(Key("n", "b")) is None  # one of its name, and not the same


async def test_a_stranger_with_our_labels_keeps_nobody_from_leading() -> None:
    server, cache, census = known()
    server.listed = {("n", "no-number", "u-1")}
    labels = {"messaging.partitionedqueue.io/queue": "orders"}
    cache.put(PODS, {"metadata": {"name": "no-number", "namespace": "n", "uid": "u-1", "labels": labels}})
    async with asyncio.timeout(5):
        await census._await(PODS)


async def test_what_no_watch_tells_of_is_named_and_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(census_module, "LOOK_AGAIN_S", 0.001)
    monkeypatch.setattr(census_module, "LOOKS", 2)
    server, _, census = known()
    server.listed = {("n", "a", "u-a")}
    async with asyncio.timeout(30):
        await census.await_all()
    assert census.complete.is_set()
    assert "1 partitionedqueues are not known yet: n/a" in caplog.text


async def test_a_census_that_is_refused_says_what_it_waits_for() -> None:
    server, _, census = known()
    assert census.waits_for == "partitionedqueues.messaging.partitionedqueue.io to be installed"

    async def names(*_: object) -> set[tuple[str, str, str]]:
        raise ApiFault(403, "the operator may not list them")

    server.names = names  # type: ignore[method-assign]
    waiting = asyncio.create_task(census.await_all())
    await asyncio.sleep(0.01)
    assert census.waits_for == "a list of partitionedqueues: the operator may not list them"
    waiting.cancel()


async def test_a_census_that_failed_is_taken_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(census_module, "AFTER_A_LIST_S", 0.01)
    server, cache, census = known("a")
    answers: list[Exception | None] = [ApiFault(0, "away"), ApiFault(503, "busy"), None]
    listing = server.names

    async def names(*_: object) -> set[tuple[str, str, str]]:
        if (fault := answers.pop(0)) is not None:
            raise fault
        return await listing()

    server.names = names  # type: ignore[method-assign]
    running = asyncio.create_task(census.run())
    census.ask_for(QUEUES)
    await asyncio.sleep(0.3)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert cache.queue(Key("n", "a")) is None


async def test_a_namespace_without_rights_keeps_nobody_from_the_others() -> None:
    server, cache, census = known("a")

    async def names(_kind: Kind, namespace: str, _selector: str) -> set[tuple[str, str, str]]:
        if namespace == "n":
            raise ApiFault(403, "queues are forbidden in n")
        return {("other", "b", "u-b")}

    server.names = names  # type: ignore[assignment, method-assign]
    census._namespaces = ("n", "other")
    await census._count(QUEUES)
    assert cache.queue(Key("n", "a"))  # nobody knows otherwise
    assert await census._missing(QUEUES) == {("other", "b", "u-b")}
    census._namespaces = ("n",)
    with pytest.raises(ApiFault):
        await census._there(QUEUES)
