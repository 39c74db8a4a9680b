"""A new generation of a spec: its status is decided by what its objects have become, not by what they were."""

import copy
from typing import Any, cast

from partitionedqueue_operator.cluster.cache import Cache
from partitionedqueue_operator.cluster.differences import differs
from partitionedqueue_operator.cluster.kinds import BY_NAME, PODS, QUEUES
from partitionedqueue_operator.controller import Controller
from partitionedqueue_operator.observed import Key
from partitionedqueue_operator.settings import Settings

KEY = Key("shop", "orders")


class Kubernetes:
    """Takes what is applied; its StatefulSet's controller has not looked yet where there is a new generation."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.status: dict[str, Any] = {}

    async def make_so(self, key: Key, wanted: dict[str, Any]) -> bool:
        name = wanted["metadata"]["name"]
        live = self.cache.children(key).get((wanted["kind"], name))
        if live is not None and not differs(wanted, live):
            return False
        body = {**copy.deepcopy(wanted), "status": dict(live["status"]) if live else status_of_workload()}
        body["metadata"] |= {"uid": name, "generation": live["metadata"]["generation"] + 1 if live else 1}
        self.cache.put(BY_NAME[wanted["kind"]], body)
        return True

    async def write_status(self, _queue: object, status: dict[str, Any]) -> bool:
        self.status = status
        return True

    async def tell(self, *_: object) -> None:
        """Nobody listens."""


def status_of_workload() -> dict[str, Any]:
    return {"observedGeneration": 1, "updateRevision": "r", "currentRevision": "r"}


def queue(generation: int, durability: str) -> dict[str, Any]:
    metadata = {"name": KEY.name, "namespace": KEY.namespace, "uid": "u-1", "generation": generation}
    return {"metadata": metadata, "spec": {"durability": durability}}


def pod() -> dict[str, Any]:
    labels = {"messaging.partitionedqueue.io/queue": "orders"}
    metadata = {"name": "orders-broker-0", "namespace": KEY.namespace, "uid": "p-0", "labels": labels}
    container = {"name": "broker", "containerID": "c", "state": {"running": {"startedAt": "now"}}}
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"podIP": "198.18.0.1", "conditions": conditions, "containerStatuses": [container]}
    return {"metadata": metadata, "status": status}


async def test_a_queue_whose_brokers_have_yet_to_start_anew_is_not_ready_for_a_moment_before() -> None:
    cache = Cache()
    kubernetes = Kubernetes(cache)
    controller = Controller(Settings(broker_image="i"), cache, cast("Any", kubernetes))
    controller.seen(QUEUES, queue(1, "Always"), gone=False)
    await controller.reconcile(KEY)
    controller.seen(PODS, pod(), gone=False)
    controller.seen(QUEUES, queue(2, "EverySecond"), gone=False)
    await controller.reconcile(KEY)
    ready = next(c for c in kubernetes.status["conditions"] if c["type"] == "Ready")
    assert (ready["status"], ready["reason"], ready["observedGeneration"]) == ("False", "RollingOut", 2)
