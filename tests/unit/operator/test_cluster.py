"""What is decided is done: once, and to nothing that is not ours. The API server is a dictionary here."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from partitionedqueue_operator.cluster.api import Api, ApiFault
from partitionedqueue_operator.cluster.cache import Cache
from partitionedqueue_operator.cluster.cluster import Cluster, NotOurs
from partitionedqueue_operator.cluster.kinds import BY_NAME, QUEUES, Kind
from partitionedqueue_operator.conditions.telling import Telling
from partitionedqueue_operator.observed import OPERATOR, Key, Queue

KEY = Key("shop", "orders")
OURS = {"messaging.partitionedqueue.io/queue": "orders"}
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def service(port: int = 1) -> dict[str, Any]:
    metadata = {"name": "orders-broker", "namespace": "shop", "labels": OURS}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": port}]}}


class Server:
    """Objects by kind and name; `mutate` is somebody's admission webhook."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.asked: list[str] = []
        self.mutate: Callable[[dict[str, Any]], None] = lambda body: None

    async def get(self, kind: Kind, _namespace: str, name: str) -> dict[str, Any] | None:
        self.asked.append(f"get {kind.name}")
        return self.objects.get((kind.name, name))

    async def apply(self, kind: Kind, body: dict[str, Any], part: str = "") -> dict[str, Any]:
        self.asked.append(f"apply {kind.name}{part}")
        made = json.loads(json.dumps(body))
        self.mutate(made)
        made["metadata"] |= {"uid": "u", "resourceVersion": "1", "managedFields": [{"manager": OPERATOR}]}
        self.objects[kind.name, made["metadata"]["name"]] = made
        return dict(made)

    async def create(self, kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(f"create {kind.name}")
        return body

    async def merge(self, kind: Kind, _namespace: str, _name: str, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(f"merge {kind.name} {body.get('count')}")
        return body


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def cache() -> Cache:
    return Cache()


@pytest.fixture
def cluster(server: Server, cache: Cache) -> Cluster:
    return Cluster(cast("Api", server), cache)


async def test_what_is_not_there_is_looked_for_and_made_and_then_left_alone(cluster: Cluster, server: Server) -> None:
    assert await cluster.make_so(KEY, service())
    assert not await cluster.make_so(KEY, service())
    assert server.asked == ["get Service", "apply Service"]


async def test_what_is_wanted_otherwise_is_made_so(cluster: Cluster, server: Server) -> None:
    await cluster.make_so(KEY, service())
    assert await cluster.make_so(KEY, service(port=2))
    assert server.objects["Service", "orders-broker"]["spec"]["ports"] == [{"port": 2}]


async def test_what_was_changed_by_hand_is_put_right(cluster: Cluster, server: Server, cache: Cache) -> None:
    await cluster.make_so(KEY, service())
    changed = json.loads(json.dumps(server.objects["Service", "orders-broker"]))
    changed["spec"]["ports"] = []
    changed["metadata"]["resourceVersion"] = "2"
    cache.put(BY_NAME["Service"], changed)
    assert await cluster.make_so(KEY, service())


async def test_what_somebody_else_has_made_is_not_taken_over(cluster: Cluster, server: Server) -> None:
    foreign = service()
    foreign["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    server.objects["Service", "orders-broker"] = foreign
    with pytest.raises(NotOurs, match="Service orders-broker"):
        await cluster.make_so(KEY, service())
    assert server.asked == ["get Service"]


async def test_our_labels_alone_make_nothing_ours(cluster: Cluster, server: Server, cache: Cache) -> None:
    foreign = service(port=7)
    foreign["metadata"] |= {"uid": "u", "managedFields": [{"manager": "kubectl"}]}
    server.objects["Service", "orders-broker"] = foreign
    cache.put(BY_NAME["Service"], foreign)
    with pytest.raises(NotOurs):
        await cluster.make_so(KEY, service())


async def test_an_admission_webhook_that_wants_it_otherwise_is_not_fought_with(
    cluster: Cluster, server: Server
) -> None:
    server.mutate = lambda body: body["spec"]["ports"].append({"port": 99})
    assert await cluster.make_so(KEY, service())
    assert not await cluster.make_so(KEY, service())


async def test_a_claim_is_the_stateful_sets_and_is_only_told_something_more(
    cluster: Cluster, server: Server, cache: Cache
) -> None:
    metadata = {"name": "data-orders-broker-0", "namespace": "shop", "uid": "u", "labels": OURS}
    owner = {"kind": "PartitionedQueue", "name": "orders", "uid": "q-1"}
    claim = {"kind": "PersistentVolumeClaim", "metadata": {**metadata, "ownerReferences": [owner]}}
    assert await cluster.make_so(KEY, claim)
    assert server.asked == ["apply PersistentVolumeClaim"]
    assert server.objects["PersistentVolumeClaim", "data-orders-broker-0"]["metadata"].get("annotations") is None
    assert cache.claims(KEY)[0].queues == ("q-1",)


async def test_the_same_event_once_more_only_counts_up(cluster: Cluster, server: Server) -> None:
    for _ in range(3):
        await cluster.tell(KEY, "u", Telling("PartitionUnavailable", "partition 3"), NOW)
    assert server.asked == ["create Event", "merge Event 2", "merge Event 3"]


async def test_an_event_that_cannot_be_posted_is_no_trouble(cluster: Cluster, server: Server) -> None:
    async def refuse(*_: object) -> dict[str, Any]:
        raise ApiFault(403, "the namespace is being terminated")

    server.create = refuse  # type: ignore[assignment, method-assign]
    await cluster.tell(KEY, "u", Telling("VolumesKept", "kept", warning=True), NOW)


def queue(uid: str = "u") -> dict[str, Any]:
    return {"metadata": {"name": "orders", "namespace": "shop", "uid": uid}, "spec": {}}


async def test_a_status_that_is_answered_after_the_queues_end_brings_no_queue_back(
    cluster: Cluster, server: Server, cache: Cache
) -> None:
    cache.put(QUEUES, queue())
    server.mutate = lambda _: cast("None", cache.remove(QUEUES, "shop", "orders", "u"))
    assert await cluster.write_status(Queue.of(queue()), {})
    assert cache.queue(KEY) is None


@pytest.mark.parametrize("there", [None, queue("another")])
async def test_a_status_of_a_queue_that_is_gone_tells_that_it_is_gone(
    cluster: Cluster, server: Server, there: dict[str, Any] | None
) -> None:
    refuse(server, 404 if there is None else 409)
    if there is not None:
        server.objects[QUEUES.name, "orders"] = there
    assert not await cluster.write_status(Queue.of(queue()), {})


async def test_a_status_that_is_refused_while_the_queue_is_there_is_a_fault(cluster: Cluster, server: Server) -> None:
    refuse(server, 409)
    server.objects[QUEUES.name, "orders"] = queue()
    with pytest.raises(ApiFault, match="no"):
        await cluster.write_status(Queue.of(queue()), {})


def refuse(server: Server, status: int) -> None:
    async def apply(*_: object, **__: object) -> dict[str, Any]:
        raise ApiFault(status, "no")

    server.apply = apply  # type: ignore[method-assign]
