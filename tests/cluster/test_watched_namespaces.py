"""An operator that has rights in some namespaces only, as `watchNamespaces` of the chart gives it."""

import secrets
from collections.abc import Iterator

import pytest

from harness.cluster.own import OwnCluster
from harness.installed_operator import image  # noqa: F401 -- a fixture
from harness.live_queue import LiveQueue
from harness.operator_process import Installation, OperatorProcess


@pytest.fixture
def queues(own_cluster: OwnCluster) -> Iterator[dict[str, LiveQueue]]:
    """One queue in each of three namespaces, not made yet."""
    mark = secrets.token_hex(3)
    made = {name: LiveQueue(own_cluster, f"{name}-{mark}") for name in ("shop", "billing", "elsewhere")}
    for queue in made.values():
        own_cluster.kubectl("create", "namespace", queue.namespace)
    yield made
    for queue in made.values():
        own_cluster.kubectl("delete", "namespace", queue.namespace, "--wait=false", "--ignore-not-found")


@pytest.fixture
def operator(
    own_cluster: OwnCluster,
    queues: dict[str, LiveQueue],
    image: str,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[OperatorProcess]:
    watched = (queues["shop"].namespace, queues["billing"].namespace)
    installation = Installation(own_cluster, tmp_path_factory.mktemp("watched"), watched=watched)
    with OperatorProcess(installation, image) as one:
        yield one.leading()
    installation.end()


def test_it_looks_after_these_and_goes_on_for_the_others_when_one_of_them_is_deleted(
    own_cluster: OwnCluster, queues: dict[str, LiveQueue], operator: OperatorProcess
) -> None:
    shop, elsewhere = queues["shop"], queues["elsewhere"]
    for queue in (elsewhere, shop):
        queue.apply()
    shop.settled()
    assert elsewhere.status == {}
    assert not elsewhere.get("statefulset", elsewhere.workload)
    own_cluster.kubectl("delete", "namespace", queues["billing"].namespace, "--timeout=60s")
    operator.end()
    operator.start()
    operator.leading()  # although it cannot list what is no more
    shop.apply(lockDuration="PT2M")
    shop.settled(30)
    assert shop.settings(0)[0] == 120_000
    assert operator.answer("/healthz")[0] == 200
