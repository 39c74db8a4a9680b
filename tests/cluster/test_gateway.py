"""The gateway as the chart deploys it: it hears of queues from the cluster, and of their counts from the brokers."""

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from harness.cluster.cluster import Cluster, CommandFailed
from harness.cluster.own import OwnCluster
from harness.live_queue import PARTITIONED, LiveQueue
from harness.patience import eventually
from harness.release import Release

READY_S_MAX = 240  # on a machine that does a good deal else
HEARD_S_MAX = 15


@dataclass(frozen=True)
class Door:
    """The gateway's Service, asked through the API server as `kubectl pq` does."""

    release: Release

    def get(self, path: str) -> str:
        service = f"/api/v1/namespaces/{self.release.namespace}/services/{self.release.name}-gateway:http/proxy"
        return self.release.cluster.kubectl("get", "--raw", service + path)

    def queue(self, queue: LiveQueue) -> dict[str, Any]:
        """One queue with its partitions; empty where the gateway knows none of that name."""
        try:
            answer = self.get(f"/api/v1/namespaces/{queue.namespace}/queues/{queue.name}")
        except CommandFailed as error:
            if "NotFound" in str(error):
                return {}
            raise
        found: dict[str, Any] = json.loads(answer)
        return found


@pytest.fixture(scope="module")
def release(cluster: Cluster) -> Release:
    installed = Release(cluster)
    installed.install()
    return installed


@pytest.fixture(scope="module")
def door(release: Release) -> Door:
    return Door(release)


@pytest.fixture(scope="module")
def orders(cluster: Cluster, release: Release) -> Iterator[LiveQueue]:
    """A queue of 16 partitions that all tests here share; each leaves it well."""
    namespace = f"gateway-{time.time_ns() % 10**9}"
    cluster.kubectl("create", "namespace", namespace)
    queue = LiveQueue(cluster, namespace)
    queue.apply(**PARTITIONED)
    queue.settled(READY_S_MAX)
    assert release.pods("gateway")
    yield queue
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def restarts(release: Release) -> int:
    pods = release.pods("gateway")
    return sum(one["restartCount"] for pod in pods for one in pod["status"]["containerStatuses"])


def test_two_gateways_are_ready_and_write_nothing(release: Release) -> None:
    pods = release.pods("gateway")
    assert len(pods) == 2
    for pod in pods:
        security = pod["spec"]["containers"][0]["securityContext"]
        assert security["readOnlyRootFilesystem"]
        assert {"type": "Ready", "status": "True"}.items() <= {
            **next(one for one in pod["status"]["conditions"] if one["type"] == "Ready")
        }.items()


def test_counts_come_from_the_brokers_themselves(door: Door, orders: LiveQueue) -> None:
    before = door.queue(orders)["messages"]
    for partition in (0, 7, 15):
        orders.send(partition, ["one", "two"])
    found = eventually(
        lambda: one if (one := door.queue(orders))["messages"] == before + 6 else None, "not counted", HEARD_S_MAX
    )
    assert found["availability"] == "Available"
    assert found["partitions"] == {"total": 16, "ready": 16}
    assert found["counts"]["active"] == before + 6
    each = found["eachPartition"]
    assert sum(one["messages"] for one in each) == before + 6
    assert each[7]["address"] == f"orders-broker-7.orders-broker.{orders.namespace}.svc:6379"
    assert {one["libraryVersion"] for one in each} == {orders.status["libraryVersion"]}


def test_a_pod_that_is_killed_is_named_and_comes_back(door: Door, orders: LiveQueue) -> None:
    orders.kubectl("delete", "pod", "orders-broker-3", "--grace-period=0", "--force", "--wait=false")

    def limited() -> dict[str, Any] | None:
        found = door.queue(orders)
        return found if found["availability"] == "Limited" else None

    found = eventually(limited, "nobody noticed", HEARD_S_MAX)
    assert [one["pod"] for one in found["unavailablePartitions"]] == ["orders-broker-3"]
    assert found["countsComplete"] is False
    eventually(lambda: door.queue(orders)["availability"] == "Available", "it is not back", READY_S_MAX)


def test_queues_are_known_from_when_they_are_applied_until_they_are_deleted(
    door: Door, cluster: Cluster, namespace: str
) -> None:
    small = LiveQueue(cluster, namespace, "small")
    assert door.queue(small) == {}
    small.apply()
    eventually(lambda: door.queue(small), "it was not heard of", HEARD_S_MAX)
    small.settled(READY_S_MAX)
    eventually(lambda: door.queue(small)["availability"] == "Available", "it does not serve", HEARD_S_MAX)
    small.delete()
    eventually(lambda: door.queue(small) == {}, "it is still there", HEARD_S_MAX)


def test_metrics_name_the_queue(door: Door, orders: LiveQueue) -> None:
    lines = door.get("/metrics").splitlines()
    assert f'pq_queue_partitions_up{{namespace="{orders.namespace}",queue="orders"}} 16' in lines
    assert "pq_gateway_synced 1" in lines


def test_an_api_server_that_is_killed_is_outlived(
    door: Door, release: Release, own_cluster: OwnCluster, orders: LiveQueue, namespace: str
) -> None:
    before = restarts(release)
    own_cluster.restart_api_server()
    assert door.queue(orders)["availability"] == "Available"
    small = LiveQueue(own_cluster, namespace, "small")
    small.apply()
    eventually(lambda: door.queue(small), "it was not heard of", 60)
    assert restarts(release) == before


def test_rolling_gateways_over_loses_no_request(release: Release, own_cluster: OwnCluster, orders: LiveQueue) -> None:
    service = f"{release.name}-gateway"
    found = own_cluster.kubectl(
        "get", "service", service, "-n", release.namespace, "-o", "jsonpath={.spec.clusterIP} {.spec.ports[0].port}"
    )
    url = "http://{}:{}/api/v1/namespaces/{}/queues".format(*found.split(), orders.namespace)
    answers, failures = [0], list[str]()
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            try:
                with urllib.request.urlopen(url, timeout=20) as answer:
                    assert len(json.load(answer)["queues"]) == 1
                answers[0] += 1
            except (OSError, AssertionError) as error:
                failures.append(str(error))
            time.sleep(0.05)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        own_cluster.kubectl("rollout", "restart", f"deployment/{service}", "-n", release.namespace)
        status = ("rollout", "status", f"deployment/{service}", "-n", release.namespace, f"--timeout={READY_S_MAX}s")
        own_cluster.kubectl(*status, seconds=READY_S_MAX + 20)
        eventually(lambda: len(release.pods("gateway")) == 2, "the old ones are still there", 60)
    finally:
        done.set()
        asking.join()
    assert failures == []
    assert answers[0] > 20
