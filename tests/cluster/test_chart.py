"""The chart on a cluster: install, a queue, upgrade, uninstall; nothing that was acknowledged is lost on the way.

The tests are one story and run in this order; each leaves the release installed.
"""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from harness.cluster.cluster import Cluster, CommandFailed
from harness.cluster.own import OwnCluster
from harness.live_queue import LiveQueue
from harness.patience import eventually
from harness.release import CHART, Release

ROOT = CHART.parents[1]
EXAMPLE = ROOT / "crds/examples/orders.yaml"
AVAILABLE_SECONDS_MAX = 90
EVERYTHING = ("serviceMonitor.enabled=true", "dashboards.enabled=true", "watchNamespaces={a,b}")


def rendered(cluster: Cluster, *values: str, more: tuple[str, ...] = ()) -> str:
    sets = [word for value in values for word in ("--set", value)]
    return cluster.helm("template", "other", str(CHART), "--namespace", "default", *sets, *more)


def test_helm_finds_nothing_wrong_with_it(cluster: Cluster) -> None:
    for values in ((), EVERYTHING):
        sets = [word for value in values for word in ("--set", value)]
        assert "0 chart(s) failed" in cluster.helm("lint", str(CHART), *sets)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("operator.replicas=two", "at '/operator/replicas': got string, want integer"),
        ("operator.replica=2", "at '/operator': additional properties 'replica' not allowed"),
        ("image.pullPolicy=Sometimes", "value must be one of 'IfNotPresent', 'Always', 'Never'"),
        ("broker.image.tag=latest", "broker.image.tag is latest, of which nobody can say what it is"),
    ],
)
def test_a_wrong_value_is_refused_in_words(cluster: Cluster, value: str, words: str) -> None:
    with pytest.raises(CommandFailed) as refused:
        rendered(cluster, value)
    assert words in str(refused.value)


def test_a_digest_and_a_registry_name_the_image_exactly(cluster: Cluster) -> None:
    digest = f"sha256:{'0' * 64}"
    text = rendered(cluster, "image.registry=registry.example.com/mirror", f"broker.image.digest={digest}")
    assert f"registry.example.com/mirror/partitionedqueue/broker:0.1.0.dev0@{digest}" in text


@pytest.mark.parametrize("values", [(), (*EVERYTHING, "serviceMonitor.enabled=false"), ("gateway.enabled=false",)])
def test_the_api_server_takes_every_object(cluster: Cluster, values: tuple[str, ...]) -> None:
    """Its own validation, strict about names of fields; nothing is stored."""
    text = rendered(cluster, *values, "crds.enabled=false")
    text = text.replace("namespace: a\n", "namespace: default\n").replace("namespace: b\n", "namespace: default\n")
    applied = cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", input=text)
    assert applied.count("(server dry run)") == text.count("\nkind: ")


def test_its_pods_are_as_restricted_as_pod_security_asks(release: Release) -> None:
    """Admission would have said so in a warning, and in an error where it is enforced."""
    label = "pod-security.kubernetes.io/enforce=restricted"
    said = release.cluster.kubectl("label", "namespace", release.namespace, label, "--overwrite", "--dry-run=server")
    assert "violate" not in said
    release.cluster.kubectl("label", "namespace", release.namespace, label, "--overwrite")
    for component in ("operator", "gateway"):
        nodes = {pod["spec"]["nodeName"] for pod in release.pods(component)}
        assert len(nodes) == 2, f"both pods of {component} are on {nodes}"


def wide(queue: LiveQueue) -> str:
    return queue.kubectl("get", "pq", queue.name)


def uids(queue: LiveQueue) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in queue.pods()}


@pytest.fixture(scope="module")
def orders(own_cluster: OwnCluster, release: Release) -> Iterator[LiveQueue]:
    """The example's queue, in a namespace where nothing but restricted pods may run."""
    namespace = f"chart-{time.time_ns() % 10**9}"
    own_cluster.kubectl("create", "namespace", namespace)
    own_cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    queue = LiveQueue(own_cluster, namespace)
    since = time.monotonic()
    queue.kubectl("apply", "-f", str(EXAMPLE))
    eventually(
        lambda: queue.status.get("availability") == "Available" and queue.status["readyPartitions"] == "16/16",
        "the example's queue is not Available",
        2 * AVAILABLE_SECONDS_MAX,
    )
    took = time.monotonic() - since
    print(f"16 partitions Available after {took:.0f} s")  # noqa: T201 -- what a reader of the run wants to know
    yield queue
    own_cluster.kubectl("delete", "namespace", namespace, "--wait=false", "--ignore-not-found")
    assert took < AVAILABLE_SECONDS_MAX


def test_a_queue_that_is_applied_becomes_available_and_kubectl_shows_it(orders: LiveQueue) -> None:
    head, row = wide(orders).splitlines()
    assert head.split("  ")[0] == "NAME"
    for column in ("PARTITIONS", "AVAILABILITY", "ACTIVE", "DEAD-LETTER", "MAX SIZE (MB)", "AGE"):
        assert column in head
    assert row.split()[:6] == ["orders", "16/16", "Available", "0", "0", "16384"]
    assert len(uids(orders)) == 16
    assert all(pod["status"]["containerStatuses"][0]["ready"] for pod in orders.pods())


CALLER = """
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  labels: {labels}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  securityContext: {{runAsNonRoot: true, runAsUser: 10001, seccompProfile: {{type: RuntimeDefault}}}}
  containers:
    - name: caller
      image: {image}
      imagePullPolicy: Never
      command: [sleep, "600"]
      resources: {{requests: {{cpu: 1m, memory: 4Mi}}}}
      securityContext: {{allowPrivilegeEscalation: false, capabilities: {{drop: [ALL]}}}}
"""


def test_only_pods_that_are_labelled_as_clients_reach_a_broker(orders: LiveQueue, own_cluster: OwnCluster) -> None:
    """The harness's own enforcer holds the policies; the two callers differ in the label alone."""
    image = orders.pods()[0]["spec"]["containers"][0]["image"]
    callers = {"client": '{messaging.partitionedqueue.io/broker-client: "true"}', "stranger": "{}"}
    pods = "---".join(CALLER.format(name=name, labels=labels, image=image) for name, labels in callers.items())
    orders.kubectl("apply", "-f", "-", input=pods)
    orders.kubectl("wait", "--for=condition=Ready", "pod", *callers, "--timeout=60s")

    def hears(name: str, host: str) -> str:
        script = f"exec 3<>/dev/tcp/{host}/6379; echo PING >&3; head -c 7 <&3"
        try:
            return orders.kubectl("exec", name, "--", "timeout", "3", "bash", "-c", script)
        except CommandFailed:
            return ""

    broker = f"orders-broker-3.orders-broker.{orders.namespace}.svc"
    eventually(lambda: hears("client", broker) == "-NOAUTH", "a client does not reach the broker", 20)
    assert hears("stranger", broker) == ""
    assert hears("orders-broker-5", broker) == "", "brokers call nobody"
    orders.kubectl("delete", "pod", *callers, "--wait=false")


def test_helm_test_passes(release: Release, orders: LiveQueue) -> None:
    assert "Phase:          Succeeded" in release.helm("test", release.name)


def test_an_upgrade_with_other_values_leaves_the_brokers_alone(release: Release, orders: LiveQueue) -> None:
    for partition in range(16):
        orders.send(partition, [f"{partition} before the upgrade"])
    before, operators = uids(orders), {pod["metadata"]["name"] for pod in release.pods("operator")}
    try:
        # A broker image that no node has: whoever restarted a broker for it would never be ready again.
        release.install("--set", "broker.image.tag=9.9.9", "--set", "operator.podAnnotations.changed=yes")
        eventually(
            lambda: not operators & {pod["metadata"]["name"] for pod in release.pods("operator")},
            "the operator was not replaced",
            60,
        )
        orders.kubectl("patch", "pq", "orders", "--type=merge", "-p", json.dumps({"spec": {"maxDeliveryCount": 7}}))
        orders.settled()
        assert uids(orders) == before
        assert [orders.settings(partition)[1] for partition in range(16)] == [7] * 16
        assert [orders.totals(partition).messages for partition in range(16)] == [1] * 16
    finally:
        release.install()


def test_uninstalling_ends_and_leaves_queues_brokers_and_messages(release: Release, orders: LiveQueue) -> None:
    cluster, before = release.cluster, uids(orders)
    eventually(lambda: orders.status.get("messages") == 16, "the messages are not counted", 90)
    try:
        since = time.monotonic()
        release.uninstall()
        assert time.monotonic() - since < 90
        assert not release.is_installed()
        eventually(lambda: not release.pods("operator") + release.pods("gateway"), "its pods have not gone", 60)
        assert uids(orders) == before
        assert "orders" in wide(orders)
        assert [orders.totals(partition).messages for partition in range(16)] == [1] * 16
        # The API server itself still holds back who would delete what is full.
        with pytest.raises(CommandFailed, match="queue orders holds 16 messages"):
            orders.kubectl("delete", "pq", "orders")
        # A whole namespace goes, though nobody looks after its queue any more.
        other = LiveQueue(cluster, f"{orders.namespace}-b", "another")
        cluster.kubectl("create", "namespace", other.namespace)
        other.apply()
        cluster.kubectl("delete", "namespace", other.namespace, "--timeout=90s")
    finally:
        release.install()
    orders.settled()
    assert uids(orders) == before


def test_a_namespace_goes_with_its_full_queue(orders: LiveQueue) -> None:
    orders.cluster.kubectl("delete", "namespace", orders.namespace, "--timeout=110s")


def test_the_custom_resources_were_kept_as_such(release: Release) -> None:
    found: dict[str, Any] = json.loads(
        release.cluster.kubectl("get", "crd", "partitionedqueues.messaging.partitionedqueue.io", "-o", "json")
    )
    assert found["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
