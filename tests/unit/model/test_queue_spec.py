from pathlib import Path
from typing import Any

import pytest

from harness.queue_manifests import CHANGES, REFUSED, TAKEN, Refused, manifest
from partitionedqueue.model.broker_pods import ImagePullPolicy
from partitionedqueue.model.errors import InvalidManifest
from partitionedqueue.model.queue_spec import QueueSpec, parse_manifests

EXAMPLE = Path(__file__).parents[3] / "crds/examples/flights.yaml"


def test_the_example_is_read() -> None:
    (queue,) = parse_manifests(EXAMPLE.read_text(), source="flights.yaml")
    assert (queue.name, queue.partitions, queue.partition_gb, queue.max_size_in_megabytes) == (
        "flights",
        16,
        1,
        16 * 1024,
    )


@pytest.mark.parametrize(
    ("spec", "partitions", "partition_gb"),
    [
        ({"sizeGB": 5}, 80, 1),
        ({"sizeGB": 5, "partitionLayout": "Sixteen"}, 16, 5),
        ({"enablePartitioning": False, "sizeGB": 80}, 1, 80),
    ],
)
def test_size_and_layout_give_the_partitions(spec: dict[str, Any], partitions: int, partition_gb: int) -> None:
    queue = QueueSpec.from_manifest(manifest(**{"enablePartitioning": True, **spec}), source="a.yaml")
    assert (queue.partitions, queue.partition_gb) == (partitions, partition_gb)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: str(case.spec)[:60])
def test_bad_specs_are_refused_in_words(case: Refused) -> None:
    with pytest.raises(InvalidManifest) as refusal:
        QueueSpec.from_manifest(manifest(**case.spec), source="a.yaml")
    assert str(refusal.value).startswith("a.yaml: ")
    assert case.words in str(refusal.value)


@pytest.mark.parametrize("spec", [*TAKEN, *(spec for change in CHANGES for spec in change[:2])], ids=str)
def test_good_specs_are_read(spec: dict[str, Any]) -> None:
    assert QueueSpec.from_manifest(manifest(**spec), source="a.yaml").name == "flights"


def test_a_refusal_says_where_and_what_stands_there_and_what_to_write() -> None:
    with pytest.raises(InvalidManifest) as refusal:
        QueueSpec.from_manifest(manifest(lockDuration="PT4S"), source="a.yaml")
    assert str(refusal.value) == (
        "a.yaml: spec.lockDuration is 'PT4S'; write an ISO 8601 duration from PT5S to PT5M, such as PT1M"
    )


@pytest.mark.parametrize("name", ["", "Flights", "a.b", "-a", "a-", "1a", "a\n", "x" * 46, None, 1])
def test_names_that_pods_could_not_have_are_refused(name: Any) -> None:
    with pytest.raises(InvalidManifest, match="use up to 45 lower-case letters"):
        QueueSpec.from_manifest(manifest(name), source="a.yaml")


def test_a_null_is_as_good_as_nothing() -> None:
    spec: dict[str, Any] = {"sizeGB": None, "lockDuration": None, "broker": None, "storage": {"size": None}}
    assert QueueSpec.from_manifest(manifest(**spec), source="a") == QueueSpec(name="flights")


def test_there_is_a_spec_even_if_nothing_is_in_it() -> None:
    without = {key: value for key, value in manifest().items() if key != "spec"}
    with pytest.raises(InvalidManifest, match=r"^a: spec must be a mapping"):
        QueueSpec.from_manifest(without, source="a")


def test_what_concerns_pods_keeps_the_shape_that_kubernetes_has() -> None:
    toleration = {"key": "dedicated", "operator": "Exists"}
    broker = QueueSpec.from_manifest(
        manifest(
            broker={
                "imagePullSecrets": [{"name": "registry"}],
                "imagePullPolicy": "Never",
                "resources": {"requests": {"cpu": 1}, "limits": {"memory": "2Gi"}},
                "nodeSelector": {"disk": "fast"},
                "tolerations": [toleration],
                "affinity": {"nodeAffinity": {}},
            }
        ),
        source="a",
    ).broker
    assert broker.image is None
    assert broker.image_pull_policy is ImagePullPolicy.NEVER
    assert broker.image_pull_secrets == ({"name": "registry"},)
    assert (broker.resources.requests, broker.resources.limits) == ({"cpu": "1"}, {"memory": "2Gi"})
    assert (broker.node_selector, broker.tolerations) == ({"disk": "fast"}, (toleration,))
    assert broker.affinity == {"nodeAffinity": {}}


@pytest.mark.parametrize(
    ("spec", "size"),
    [
        ({}, "4Gi"),
        ({"sizeGB": 10}, "40Gi"),
        ({"enablePartitioning": True, "sizeGB": 5}, "4Gi"),
        ({"enablePartitioning": True, "sizeGB": 5, "partitionLayout": "Sixteen"}, "20Gi"),
        ({"storage": {"size": "3Gi"}}, "3Gi"),
    ],
)
def test_a_volume_is_as_large_as_is_said_or_four_times_the_partition(spec: dict[str, Any], size: str) -> None:
    assert QueueSpec.from_manifest(manifest(**spec), source="a").volume_size == size


@pytest.mark.parametrize("text", ["", "a: [", "- 1", "kind: Queue", "apiVersion: v1\nkind: PartitionedQueue"])
def test_texts_that_are_no_manifest_are_refused(text: str) -> None:
    with pytest.raises(InvalidManifest, match=r"^a\.yaml: "):
        parse_manifests(text, source="a.yaml")


def test_two_queues_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidManifest, match="2 queues named flights"):
        parse_manifests(EXAMPLE.read_text() + "\n---\n" + EXAMPLE.read_text(), source="a.yaml")
