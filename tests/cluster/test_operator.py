"""A queue under the operator's care, on a real cluster: made, changed, hurt, repaired."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cluster.own import OwnCluster
from harness.installed_operator import image, installation  # noqa: F401 -- fixtures
from harness.live_queue import PARTITIONED, LiveQueue
from harness.operator_process import Installation, OperatorProcess
from harness.patience import eventually
from partitionedqueue.broker import access
from partitionedqueue.model.errors import LoginRefused

PARTITIONS = range(16)
READY_S_MAX = 180  # on a machine that does a good deal else; alone, some 20 s
NOTICED_S_MAX = 5


@pytest.fixture(scope="module")
def operator(installation: Installation, image: str) -> Iterator[OperatorProcess]:  # noqa: F811
    with OperatorProcess(installation, image) as one:
        yield one.leading()


@pytest.fixture(scope="module")
def orders(own_cluster: OwnCluster, operator: OperatorProcess, rotated: tuple[LiveQueue, str]) -> Iterator[LiveQueue]:
    """A queue of 16 partitions that all tests here share; each leaves it well."""
    namespace = f"orders-{time.time_ns() % 10**9}"
    own_cluster.kubectl("create", "namespace", namespace)
    queue = LiveQueue(own_cluster, namespace)
    queue.apply(**PARTITIONED)
    yield queue
    own_cluster.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="module")
def rotated(own_cluster: OwnCluster, operator: OperatorProcess) -> Iterator[tuple[LiveQueue, str]]:
    """A queue whose Secret has had another password for the gateway since the beginning, and that password."""
    namespace = f"rotated-{time.time_ns() % 10**9}"
    own_cluster.kubectl("create", "namespace", namespace)
    queue = LiveQueue(own_cluster, namespace)
    queue.apply()
    queue.settled(READY_S_MAX)
    passwords = {user: queue.password(user) for user in access.USERS} | {access.GATEWAY: "another"}
    changed = {"stringData": {"gateway-password": "another", "users.acl": access.users_file(passwords)}}
    queue.kubectl("patch", "secret", queue.workload, "-p", json.dumps(changed))
    yield queue, "another"
    own_cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def test_sixteen_brokers_are_ready_and_the_status_says_so(orders: LiveQueue) -> None:
    status = orders.settled(READY_S_MAX)
    assert status["availability"] == "Available"
    assert status["partitions"] == {"total": 16, "ready": 16}
    assert status["maxSizeInMegabytes"] == 16 * 1024
    assert status["messages"] == 0
    assert status["countsComplete"] is True
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "Ready": "True", "Available": "True", "Progressing": "False", "Accepted": "True", "Deletable": "True",
    }  # fmt: skip
    assert len(orders.events("Configured")) == 1
    assert orders.events("PartitionUnavailable") == []


def test_counts_are_added_up_over_the_partitions(orders: LiveQueue) -> None:
    before = orders.settled()["messages"]
    for partition in (0, 7, 15):
        orders.send(partition, ["one", "two"])
    eventually(lambda: orders.status["messages"] == before + 6, f"not counted: {orders.status}", 45)
    status = orders.status
    assert status["counts"]["active"] == before + 6
    assert status["sizeInBytes"] > 0
    assert orders.condition("Deletable")["reason"] == "HoldsMessages"


def test_a_change_reaches_all_sixteen_brokers(orders: LiveQueue) -> None:
    orders.settled()
    orders.apply(**PARTITIONED, lockDuration="PT2M", maxDeliveryCount=7)
    orders.settled(30)
    assert {orders.settings(partition) for partition in PARTITIONS} == {(120_000, 7)}


def test_a_change_is_tried_again_until_a_partition_that_is_down_has_it_too(orders: LiveQueue) -> None:
    orders.settled()
    orders.kubectl("annotate", "statefulset", orders.workload, "kubernetes.io/description=held", "--overwrite")
    held = orders.pods()[3]["metadata"]["name"]
    partition = int(held.rpartition("-")[2])
    _freeze(orders, held, "STOP")
    try:
        orders.apply(**PARTITIONED, lockDuration="PT3M")
        ready = eventually(
            lambda: (c := orders.condition("Ready"))["status"] == "False" and held in c["message"] and c,
            f"nobody names {held}: {orders.status}",
            60,
        )
        assert ready["reason"] == "PartitionsUnavailable"
        assert orders.status["availability"] == "Limited"
        others = {orders.settings(n) for n in PARTITIONS if n != partition}
        assert {lock_ms for lock_ms, _ in others} == {180_000}
    finally:
        _freeze(orders, held, "CONT")
    orders.settled(60)
    assert orders.settings(partition)[0] == 180_000


def _freeze(queue: LiveQueue, pod: str, signal: str) -> None:
    script = f"for p in /proc/[0-9]*; do grep -q -- -server $p/comm && kill -{signal} ${{p#/proc/}}; done; true"
    queue.kubectl("exec", pod, "--", "sh", "-c", script)


def test_a_killed_broker_is_named_within_five_seconds_and_loses_nothing(orders: LiveQueue) -> None:
    before = orders.settled()["messages"]
    orders.send(5, [f"message {n}" for n in range(100)])
    held = orders.totals(5).messages
    with orders.watched() as told:
        killed = time.monotonic()
        orders.kubectl("delete", "pod", f"{orders.workload}-5", "--grace-period=0", "--force", "--wait=false")
        after_s, status = told.first(killed, "Limited")
        assert after_s <= NOTICED_S_MAX
        assert [sick["pod"] for sick in status["unavailablePartitions"]] == [f"{orders.workload}-5"]
        orders.settled(90)
    assert orders.totals(5).messages == held
    eventually(lambda: orders.status["messages"] == before + 100, f"not counted: {orders.status}", 45)
    assert any("broker-5" in words for words in orders.events("PartitionUnavailable"))


def test_a_broker_process_that_is_killed_starts_again_with_all_it_had(orders: LiveQueue) -> None:
    orders.settled()
    orders.send(6, [f"message {n}" for n in range(100)])
    held = orders.totals(6).messages
    with orders.watched() as told:
        killed = time.monotonic()
        orders.kill_broker(6)
        assert told.first(killed, "Limited")[0] <= NOTICED_S_MAX
        orders.settled(60)
    assert orders.totals(6).messages == held


def test_all_sixteen_killed_at_once_come_back_with_every_message(orders: LiveQueue) -> None:
    orders.settled()
    for partition in PARTITIONS:
        orders.send(partition, [f"all {n}" for n in range(10)])
    held = [orders.totals(partition).messages for partition in PARTITIONS]
    with orders.watched() as told:
        killed = time.monotonic()
        label = f"messaging.partitionedqueue.io/queue={orders.name}"
        orders.kubectl("delete", "pods", "--grace-period=0", "--force", "--wait=false", "-l", label)
        assert told.first(killed, "Limited")[0] <= NOTICED_S_MAX
        orders.settled(180)
    assert [orders.totals(partition).messages for partition in PARTITIONS] == held


@pytest.mark.parametrize("kind", ["service", "configmap", "secret", "poddisruptionbudget", "networkpolicy"])
def test_what_is_deleted_by_hand_comes_back_as_it_was(orders: LiveQueue, kind: str) -> None:
    orders.settled()
    before = orders.get(kind, orders.workload)
    orders.kubectl("delete", kind, orders.workload)
    after = eventually(lambda: orders.get(kind, orders.workload), f"no {kind} any more", 10)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    for part in ("data", "spec"):
        assert _timeless(after.get(part)) == _timeless(before.get(part))


def _timeless(part: object) -> object:
    return {k: v for k, v in part.items() if k != "clusterIPs"} if isinstance(part, dict) else part


def test_a_stateful_set_deleted_by_hand_comes_back_with_every_message(orders: LiveQueue) -> None:
    orders.settled()
    held = [orders.totals(partition).messages for partition in (0, 5, 15)]
    before = orders.get("statefulset", orders.workload)["metadata"]["uid"]
    orders.kubectl("delete", "statefulset", orders.workload, "--wait=false")
    eventually(
        lambda: orders.get("statefulset", orders.workload).get("metadata", {}).get("uid", before) != before,
        "the StatefulSet does not come back",
        60,
    )
    orders.settled(120)
    assert [orders.totals(partition).messages for partition in (0, 5, 15)] == held


def test_what_is_changed_by_hand_is_put_right(orders: LiveQueue) -> None:
    orders.settled()
    orders.kubectl("patch", "service", orders.workload, "-p", '{"spec":{"selector":{"extra":"x"}}}')
    orders.kubectl("patch", "configmap", orders.workload, "-p", '{"data":{"PQ_DURABILITY":"None"}}')
    orders.kubectl("patch", "pdb", orders.workload, "--type=merge", "-p", '{"spec":{"maxUnavailable":16}}')
    orders.kubectl("label", "service", orders.workload, "messaging.partitionedqueue.io/queue-")

    def right() -> bool:
        service = orders.get("service", orders.workload)
        return (
            "extra" not in service["spec"]["selector"]
            and service["metadata"]["labels"].get("messaging.partitionedqueue.io/queue") == orders.name
            and orders.get("configmap", orders.workload)["data"]["PQ_DURABILITY"] == "Always"
            and orders.get("pdb", orders.workload)["spec"]["maxUnavailable"] == 1
        )

    eventually(right, "it stays wrong", 15)


def test_a_queue_at_rest_costs_no_writes(orders: LiveQueue, operator: OperatorProcess) -> None:
    orders.settled()
    time.sleep(6)
    before = operator.writes()
    time.sleep(45)
    assert operator.writes() == before


def test_the_watches_outlive_the_api_server(orders: LiveQueue, own_cluster: OwnCluster) -> None:
    orders.settled()
    own_cluster.restart_api_server()
    orders.apply(**PARTITIONED, lockDuration="PT4M")
    orders.settled(60)
    assert orders.settings(11)[0] == 240_000


def test_what_is_somebody_elses_is_left_alone(
    own_cluster: OwnCluster, operator: OperatorProcess, namespace: str
) -> None:
    queue = LiveQueue(own_cluster, namespace, "mine")
    foreign = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine-broker"}, "stringData": {"own": "1"}}
    queue.kubectl("create", "-f", "-", input=json.dumps(foreign))
    queue.apply()
    refused = queue.awaited("Accepted", "NameConflict")
    assert "Secret mine-broker" in refused["message"]
    assert list(queue.get("secret", "mine-broker")["data"]) == ["own"]
    queue.kubectl("delete", "secret", "mine-broker")
    queue.awaited("Accepted", "Accepted", 45)
    queue.settled(60)


def test_users_that_have_changed_reach_a_broker_that_runs(rotated: tuple[LiveQueue, str]) -> None:
    """The Secret was changed when this module began: the kubelet and the operator have their times for it."""
    queue, password = rotated
    assert queue.password("gateway") == password, "the operator has put back what the file of users agrees with"

    def is_let_in() -> bool:
        try:
            return queue.totals(0).messages == 0
        except LoginRefused:
            return False

    eventually(is_let_in, "the broker has not read its users again", 300)
    assert queue.pods()[0]["status"]["containerStatuses"][0]["restartCount"] == 0


def test_every_log_line_is_calm(operator: OperatorProcess) -> None:
    lines = Path(operator.log).read_text().splitlines()
    assert [line for line in lines if "Traceback" in line] == []
