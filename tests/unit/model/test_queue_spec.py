from pathlib import Path
from typing import Any

import pytest

from partitionedqueue.model.errors import InvalidManifest
from partitionedqueue.model.queue_spec import QueueSpec, parse_manifests

EXAMPLE = Path(__file__).parents[3] / "crds/examples/flights.yaml"


def manifest(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "messaging.partitionedqueue.io/v1alpha1",
        "kind": "PartitionedQueue",
        "metadata": {"name": "flights"},
        "spec": {"enablePartitioning": True, **spec},
    }


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
    queue = QueueSpec.from_manifest(manifest(**spec), source="a.yaml")
    assert (queue.partitions, queue.partition_gb) == (partitions, partition_gb)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"sizeGb": 1}, "unknown field spec.sizeGb; the fields are enablePartitioning"),
        ({"sizeGB": 6}, "spec.sizeGB is 6; a partitioned queue has 1, 2, 3, 4, 5"),
        ({"sizeGB": 0}, "spec.sizeGB is 0"),
        ({"sizeGB": "1"}, "whole number"),
        ({"sizeGB": True}, "whole number"),
        ({"enablePartitioning": False, "sizeGB": 6}, "1, 2, 3, 4, 5, 10, 20, 40, 80"),
        ({"partitionLayout": "Eight"}, "spec.partitionLayout is 'Eight'; it is one of SixteenPerGB, Sixteen"),
        ({"lockDuration": "PT4S"}, "from 5 s to 300 s, such as PT1M"),
        ({"lockDuration": 60}, "ISO 8601"),
        ({"maxDeliveryCount": 2001}, "from 1 to 2000"),
        ({"requiresSession": "yes"}, "write true or false"),
        ({"requiresSession": True, "forwardTo": "a"}, "forwardTo"),
    ],
)
def test_bad_specs_are_refused_in_words(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidManifest) as refusal:
        QueueSpec.from_manifest(manifest(**spec), source="a.yaml")
    assert str(refusal.value).startswith("a.yaml: ")
    assert words in str(refusal.value)


@pytest.mark.parametrize("text", ["", "a: [", "- 1", "kind: Queue", "apiVersion: v1\nkind: PartitionedQueue"])
def test_texts_that_are_no_manifest_are_refused(text: str) -> None:
    with pytest.raises(InvalidManifest, match=r"^a\.yaml: "):
        parse_manifests(text, source="a.yaml")


def test_two_queues_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidManifest, match="2 queues named flights"):
        parse_manifests(EXAMPLE.read_text() + "\n---\n" + EXAMPLE.read_text(), source="a.yaml")
