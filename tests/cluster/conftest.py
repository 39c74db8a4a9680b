"""One cluster for the whole run, and a namespace of its own for each test."""

import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cluster import choice, images
from harness.cluster.cluster import Cluster
from harness.cluster.own import OwnCluster
from harness.live_queue import LiveQueue
from harness.release import Release

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
_SPARK = _ROOT / "spark-on-k8s/manifests"
_TEST_SECONDS = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE) and item.get_closest_marker("timeout") is None:
            # The fixtures have limits of their own: the first cluster on a machine takes a quarter of an hour.
            item.add_marker(pytest.mark.timeout(_TEST_SECONDS, func_only=True))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster of two nodes: KUBECONFIG's, or one that is made for this run and gone after it."""
    with choice.for_tests() as made:
        yield made


@pytest.fixture(scope="session")
def own_cluster(cluster: Cluster) -> OwnCluster:
    """For tests that lose a node, stop the API server or dial pods: more than any other cluster lets one do."""
    if not isinstance(cluster, OwnCluster):
        pytest.skip(f"needs a cluster made by harness.cluster.own; this run's is {cluster.kubeconfig}")
    return cluster


@pytest.fixture(scope="session")
def release(cluster: Cluster) -> Release:
    """The chart, installed once; whoever uninstalls it installs it again."""
    installed = Release(cluster)
    installed.install()
    return installed


@pytest.fixture(scope="session")
def flights(cluster: Cluster, release: Release) -> Iterator[LiveQueue]:
    """The demo's queue, what Spark needs beside it, and a pod to send from, all as restricted as can be.

    Once for the run, since 16 brokers and Spark's image take their time: who uses it leaves it empty.
    """
    assert release.pods("operator")
    cluster.load("spark", version=images.chart_version())
    namespace = _made(cluster, "flights")
    cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    queue = LiveQueue(cluster, namespace, "flights")
    queue.kubectl("apply", "-f", str(_ROOT / "crds/examples/flights.yaml"), "-f", str(_SPARK / "spark.yaml"))
    queue.settled()
    queue.kubectl("apply", "-f", str(_SPARK / "sender.yaml"))
    queue.kubectl("wait", "--for=condition=Ready", "pod/sender", "--timeout=100s")
    yield queue
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty namespace named for its test; deleted afterwards, which is not waited for."""
    name = _made(cluster, re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).removeprefix("test-")[:40].strip("-"))
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def _made(cluster: Cluster, words: str) -> str:
    """A new namespace's name, once pods are let into it."""
    name = f"{words}-{secrets.token_hex(3)}"
    cluster.kubectl("create", "namespace", name)
    # Pods are refused until the controller manager has made it.
    cluster.kubectl("wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=60s")
    return name
