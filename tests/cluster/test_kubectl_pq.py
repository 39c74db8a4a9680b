"""`kubectl pq` as a person types it: kubectl finds the plugin, and the API server is all that it can reach."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cluster.cluster import Cluster, program
from harness.live_queue import PARTITIONED, LiveQueue
from harness.patience import eventually
from harness.release import Release

READY_S_MAX = 240
NOTICED_S_MAX = 30


@pytest.fixture(scope="module")
def orders(cluster: Cluster) -> Iterator[LiveQueue]:
    """A queue of 16 partitions that all tests here share; each leaves it well."""
    Release(cluster).install()
    namespace = f"kubectl-pq-{time.time_ns() % 10**9}"
    cluster.kubectl("create", "namespace", namespace)
    queue = LiveQueue(cluster, namespace)
    queue.apply(**PARTITIONED)
    queue.settled(READY_S_MAX)
    yield queue
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def kubectl_pq(cluster: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    kubectl = Path(program("kubectl"))
    scripts = Path(sys.executable).parent
    path = os.pathsep.join([str(scripts), str(kubectl.parent), os.environ["PATH"]])
    return subprocess.run(
        [str(kubectl), "pq", *words],
        env={**cluster.environment, "PATH": path, "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_status_is_a_table_that_a_person_reads(orders: LiveQueue) -> None:
    done = kubectl_pq(orders.cluster, "status", "-n", orders.namespace)
    assert done.returncode == 0, done.stdout + done.stderr
    headings, row = done.stdout.splitlines()
    assert headings.split()[:4] == ["QUEUE", "PARTITIONS", "AVAILABILITY", "ACTIVE"]
    assert row.split()[:3] == ["orders", "16/16", "Available"]
    everywhere = kubectl_pq(orders.cluster, "status", "-A")
    assert f"{orders.namespace}  orders" in everywhere.stdout


def test_partitions_have_their_pods_and_the_brokers_own_counts(orders: LiveQueue) -> None:
    orders.send(5, ["one", "two", "three"])
    shown = json.loads(kubectl_pq(orders.cluster, "partitions", "orders", "-n", orders.namespace, "--json").stdout)
    assert shown["countsFrom"] == "gateway pq-system/pq-gateway"
    assert [one["pod"] for one in shown["partitions"]] == [f"orders-broker-{n}" for n in range(16)]
    assert all(one["ready"] and one["node"].startswith("node-") for one in shown["partitions"])
    assert [one["partition"] for one in shown["partitions"] if one["messages"] >= 3] == [5]
    done = kubectl_pq(orders.cluster, "partitions", "orders", "-n", orders.namespace)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 17
    assert done.stderr == ""


def test_a_partition_that_finds_no_node_is_named_with_what_the_scheduler_says(
    orders: LiveQueue, cluster: Cluster
) -> None:
    nodes = cluster.kubectl("get", "nodes", "-o", "name").split()
    cluster.kubectl("cordon", *nodes)
    try:
        orders.kubectl("delete", "pod", "orders-broker-3", "--grace-period=0", "--force", "--wait=false")
        eventually(lambda: orders.status["availability"] == "Limited", "nobody noticed", NOTICED_S_MAX)
        status = kubectl_pq(cluster, "status", "orders", "-n", orders.namespace)
        assert status.returncode == 1
        assert "orders: partition 3 (orders-broker-3) does not serve: " in status.stdout

        def is_explained() -> bool:
            done = kubectl_pq(cluster, "partitions", "orders", "-n", orders.namespace)
            assert done.returncode == 1
            return "partition 3 (orders-broker-3) does not serve: Unschedulable: " in done.stdout

        eventually(is_explained, "it is not explained", NOTICED_S_MAX)
    finally:
        cluster.kubectl("uncordon", *nodes)
    orders.settled(READY_S_MAX)
    assert kubectl_pq(cluster, "status", "orders", "-n", orders.namespace).returncode == 0


def test_without_a_gateway_it_says_so_and_shows_what_else_is_known(orders: LiveQueue) -> None:
    done = kubectl_pq(orders.cluster, "partitions", "orders", "-n", orders.namespace, "--gateway", "nowhere/none")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no counts by partition, as gateway nowhere/none could not be asked" in done.stderr
    rows = done.stdout.splitlines()[1:]
    assert len(rows) == 16
    assert rows[0].split()[:4] == ["0", "orders-broker-0", rows[0].split()[2], "yes"]


def test_what_is_not_there_is_said_in_words(orders: LiveQueue) -> None:
    done = kubectl_pq(orders.cluster, "status", "parcels", "-n", orders.namespace)
    assert done.returncode == 1
    assert f"there is no queue parcels in namespace {orders.namespace}" in done.stderr
    done = kubectl_pq(orders.cluster, "status", "-n", "nowhere")
    assert (done.returncode, done.stdout) == (0, "No queues in namespace nowhere\n")
    done = kubectl_pq(orders.cluster, "status", "--context", "elsewhere")
    assert done.returncode == 1
    assert "no cluster is known" in done.stderr
