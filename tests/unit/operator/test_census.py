"""What no watch has told of is found out, and a list that is older than the watch fools nobody."""

from typing import Any, cast

from partitionedqueue_operator.census import Census
from partitionedqueue_operator.cluster.api import Api
from partitionedqueue_operator.cluster.cache import Cache
from partitionedqueue_operator.cluster.kinds import QUEUES, Kind
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
