"""What the API server makes of crds/: every rule, in its own words, with nobody else at work."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.cluster.cluster import Cluster, CommandFailed
from harness.queue_manifests import CHANGES, PARTITIONED, REFUSED, TAKEN, Change, Refused, manifest
from harness.resting_operators import RestingOperators
from partitionedqueue.model.queue_spec import API_VERSION

CRDS = Path(__file__).parents[2] / "crds"
CRD = "crd/partitionedqueues.messaging.partitionedqueue.io"
POLICY = "deletion.messaging.partitionedqueue.io"
EXAMPLES = sorted((CRDS / "examples").glob("*.yaml"))


@pytest.fixture(scope="module")
def place(cluster: Cluster) -> Iterator[str]:
    """A namespace on a cluster that knows our resources; what was not there before goes again."""
    operators = RestingOperators(cluster)
    there = POLICY in cluster.kubectl("get", "validatingadmissionpolicies", "-o", "name")
    cluster.kubectl("apply", "-f", str(CRDS))
    cluster.kubectl("wait", "--for=condition=Established", CRD, "--timeout=30s")
    name = f"crds-{os.getpid()}"
    cluster.kubectl("create", "namespace", name)
    _wait_for_the_policy(cluster, name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")
    if not there:
        cluster.kubectl("delete", "-f", str(CRDS), "--wait=false")
    operators.wake()


def _wait_for_the_policy(cluster: Cluster, place: str) -> None:
    """The API server takes a new policy up after a moment."""
    make(cluster, place, manifest("probe"), status={"messages": 1})
    deadline = time.monotonic() + 30
    while "Forbidden" not in refusal(cluster, place, "delete", "pq", "probe", "--dry-run=server"):
        assert time.monotonic() < deadline, "the deletion policy is not in force"
        time.sleep(0.2)


def make(cluster: Cluster, place: str, queue: dict[str, Any], *, status: dict[str, Any] | None = None) -> str:
    """Make a queue, as an operator would have found it; gives its name."""
    cluster.kubectl("create", "-n", place, "-f", "-", input=json.dumps(queue))
    name = str(queue["metadata"]["name"])
    if status is not None:
        tell_status(cluster, place, name, status)
    return name


def tell_status(cluster: Cluster, place: str, name: str, status: dict[str, Any]) -> None:
    patch = json.dumps({"status": status})
    cluster.kubectl("patch", "pq", name, "-n", place, "--subresource=status", "--type=merge", "-p", patch)


def refusal(cluster: Cluster, place: str, *arguments: str, queue: dict[str, Any] | None = None) -> str:
    """What the API server says against it; nothing where it agrees."""
    try:
        cluster.kubectl(*arguments, "-n", place, input=None if queue is None else json.dumps(queue))
    except CommandFailed as error:
        return str(error)
    return ""


def labelled(case: Refused | Change | dict[str, Any]) -> str:
    return json.dumps(case if isinstance(case, dict) else case[0])[:60]


@pytest.mark.parametrize("case", REFUSED, ids=labelled)
def test_a_queue_that_cannot_be_is_refused_in_words(cluster: Cluster, place: str, case: Refused) -> None:
    said = refusal(cluster, place, "create", "--dry-run=server", "-f", "-", queue=manifest(**case.spec))
    assert (case.its_own or case.words) in said


def test_names_that_pods_could_not_have_are_refused(cluster: Cluster, place: str) -> None:
    for name, words in (
        ("x" * 46, "may not be more than 45"),
        ("a.b", "use up to 45 lower-case letters"),
        ("1a", "with a letter first"),
    ):
        assert words in refusal(cluster, place, "create", "--dry-run=server", "-f", "-", queue=manifest(name))
    assert not refusal(cluster, place, "create", "--dry-run=server", "-f", "-", queue=manifest("x" * 45))


@pytest.mark.parametrize("spec", TAKEN, ids=labelled)
def test_a_queue_that_can_be_is_taken(cluster: Cluster, place: str, spec: dict[str, Any]) -> None:
    assert not refusal(cluster, place, "create", "--dry-run=server", "-f", "-", queue=manifest(**spec))


@pytest.mark.parametrize("case", CHANGES, ids=lambda case: f"{labelled(case)} to {json.dumps(case.after)[:60]}")
def test_changes_are_refused_in_words_or_taken(cluster: Cluster, place: str, case: Change) -> None:
    name = make(cluster, place, manifest(f"change-{CHANGES.index(case)}", **case.before))
    said = refusal(cluster, place, "replace", "-f", "-", queue=manifest(name, **case.after))
    assert (case.words in said) if case.words else not said


def test_what_is_left_out_stands_in_the_queue_with_its_default(cluster: Cluster, place: str) -> None:
    name = make(cluster, place, manifest("plain"))
    assert json.loads(cluster.kubectl("get", "pq", name, "-n", place, "-o", "json"))["spec"] == {
        "enablePartitioning": False,
        "partitionLayout": "SixteenPerGB",
        "sizeGB": 1,
        "requiresSession": False,
        "requiresDuplicateDetection": False,
        "lockDuration": "PT1M",
        "maxDeliveryCount": 10,
        "deadLetteringOnMessageExpiration": False,
        "duplicateDetectionHistoryTimeWindow": "PT10M",
        "status": "Active",
        "durability": "Always",
        "deletionPolicy": "DeleteIfEmpty",
    }


def test_a_change_of_the_status_of_a_queue_is_no_change_of_its_spec(cluster: Cluster, place: str) -> None:
    name = make(cluster, place, manifest("reported"), status={"messages": 3, "availability": "Limited"})
    queue = json.loads(cluster.kubectl("get", "pq", name, "-n", place, "-o", "json"))
    assert (queue["metadata"]["generation"], queue["status"]["messages"]) == (1, 3)
    cluster.kubectl("patch", "pq", name, "-n", place, "--type=merge", "-p", '{"status":{"messages":0}}')
    assert cluster.kubectl("get", "pq", name, "-n", place, "-o", "jsonpath={.status.messages}") == "3"
    bad = refusal(
        cluster,
        place,
        "patch",
        "pq",
        name,
        "--subresource=status",
        "--type=merge",
        "-p",
        '{"status":{"availability":"Fine"}}',
    )
    assert "Unsupported value" in bad


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_taken_as_they_stand(cluster: Cluster, place: str, path: Path) -> None:
    assert not refusal(cluster, place, "apply", "--dry-run=server", "-f", str(path))


def test_kubectl_explains_every_field(cluster: Cluster, place: str) -> None:
    schema = yaml.safe_load((CRDS / "partitionedqueues.yaml").read_text())["spec"]["versions"][0]["schema"]
    for part in ("spec", "status"):
        said = cluster.kubectl("explain", f"pq.{part}", "--recursive")
        for field in schema["openAPIV3Schema"]["properties"][part]["properties"]:
            assert f"\n  {field}\t" in said, field
    assert "ISO 8601 duration from PT5S to PT5M" in " ".join(cluster.kubectl("explain", "pq.spec.lockDuration").split())


def test_kubectl_lists_queues_readably(cluster: Cluster, place: str) -> None:
    status = {
        "readyPartitions": "15/16",
        "availability": "Limited",
        "counts": {"active": 12, "deadLetter": 3},
        "maxSizeInMegabytes": 16384,
        "messages": 15,
        "sizeInBytes": 4096,
        "brokerImage": "partitionedqueue/broker:1",
    }
    make(cluster, place, manifest("shown", **PARTITIONED), status=status)
    head, line = cluster.kubectl("get", "pq", "shown", "-n", place).splitlines()
    assert head.split("  ")[0] == "NAME"
    columns = "NAME", "PARTITIONS", "AVAILABILITY", "ACTIVE", "DEAD-LETTER", "MAX SIZE (MB)", "AGE"
    assert [name for name in columns if name in head] == list(columns)
    assert line.split()[:6] == ["shown", "15/16", "Limited", "12", "3", "16384"]
    wide = cluster.kubectl("get", "messaging", "shown", "-n", place, "-o", "wide")
    assert all(word in wide for word in ("MESSAGES", "SIZE", "IMAGE", "4096", "partitionedqueue/broker:1"))


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("one", {"messages": 1, "countsComplete": True}, "queue one holds 1 message, and its deletionPolicy is"),
        (
            "many",
            {"messages": 1234, "countsComplete": True},
            "queue many holds 1234 messages, and its deletionPolicy is",
        ),
        (
            "unknown",
            {"messages": 0, "countsComplete": False},
            "may hold messages: not every partition could be counted",
        ),
        (
            "some",
            {"messages": 5, "countsComplete": False},
            "holds 5 messages, and more perhaps in partitions that do not",
        ),
    ],
)
def test_a_queue_with_messages_is_not_deleted_and_it_says_what_to_do(
    cluster: Cluster, place: str, name: str, status: dict[str, Any], words: str
) -> None:
    make(cluster, place, manifest(name), status=status)
    said = refusal(cluster, place, "delete", "pq", name)
    assert words in said
    assert "deletionPolicy is DeleteIfEmpty" in said
    patch = f"kubectl patch pq {name} -n {place} --type merge -p '" + '{"spec":{"deletionPolicy":"Delete"}}' + "'"
    assert patch in said  # and what it says works
    cluster.kubectl("patch", "pq", name, "-n", place, "--type", "merge", "-p", '{"spec":{"deletionPolicy":"Delete"}}')
    cluster.kubectl("delete", "pq", name, "-n", place, "--timeout=10s")


@pytest.mark.parametrize(
    ("name", "spec", "status"),
    [
        ("never-made", {}, None),
        ("never-counted", {}, {"availability": "Unavailable"}),
        ("empty", {}, {"messages": 0, "countsComplete": True}),
        ("given-up", {"deletionPolicy": "Delete"}, {"messages": 9, "countsComplete": False}),
        ("kept", {"deletionPolicy": "Retain"}, {"messages": 9, "countsComplete": True}),
        ("kept-for-certain", {"deletionPolicy": "Retain"}, {"messages": 9, "deletionPolicy": "Retain"}),
        ("lost-for-certain", {"deletionPolicy": "Delete"}, {"messages": 9, "deletionPolicy": "Delete"}),
    ],
)
def test_other_queues_are_deleted_at_once(
    cluster: Cluster, place: str, name: str, spec: dict[str, Any], status: dict[str, Any] | None
) -> None:
    make(cluster, place, manifest(name, **spec), status=status)
    cluster.kubectl("delete", "pq", name, "-n", place, "--timeout=10s")


@pytest.mark.parametrize("policy", ["Retain", "DeleteIfEmpty"])
def test_a_queue_is_not_deleted_before_its_volumes_are_kept_from_going_with_it(
    cluster: Cluster, place: str, policy: str
) -> None:
    name = make(
        cluster,
        place,
        manifest(f"was-delete-{policy.lower()}", deletionPolicy=policy),
        status={"messages": 0, "countsComplete": True, "deletionPolicy": "Delete"},
    )
    assert "the new one is not carried out yet" in refusal(cluster, place, "delete", "pq", name)
    tell_status(cluster, place, name, {"deletionPolicy": policy})
    cluster.kubectl("delete", "pq", name, "-n", place, "--timeout=10s")


def test_a_pruned_set_of_queues_keeps_the_full_one(cluster: Cluster, place: str) -> None:
    for name, messages in (("full", 7), ("drained", 0)):
        queue = manifest(name)
        queue["metadata"]["labels"] = {"set": "pruned"}
        make(cluster, place, queue, status={"messages": messages, "countsComplete": True})
    assert "queue full holds 7 messages" in refusal(cluster, place, "delete", "pq", "-l", "set=pruned")
    assert cluster.kubectl("get", "pq", "-n", place, "-l", "set=pruned", "-o", "name").split() == [
        "partitionedqueue.messaging.partitionedqueue.io/full"
    ]


def test_a_request_to_delete_all_of_a_namespaces_queues_keeps_the_full_one(
    cluster: Cluster, place: str, namespace: str
) -> None:
    make(cluster, namespace, manifest("full"), status={"messages": 7})
    url = f"/apis/{API_VERSION}/namespaces/{namespace}/partitionedqueues"
    with pytest.raises(CommandFailed, match="queue full holds 7 messages"):
        cluster.kubectl("delete", "--raw", url)


def test_deleting_a_namespace_with_a_full_queue_ends(cluster: Cluster, place: str) -> None:
    ending = f"{place}-ending"
    cluster.kubectl("create", "namespace", ending)
    make(cluster, ending, manifest("full"), status={"messages": 7, "countsComplete": False})
    cluster.kubectl("delete", "namespace", ending, "--timeout=60s")
    assert "NotFound" in refusal(cluster, place, "get", "namespace", ending)


def test_what_an_owner_takes_with_it_goes_though_full(cluster: Cluster, place: str) -> None:
    cluster.kubectl("create", "configmap", "owner", "-n", place)
    uid = cluster.kubectl("get", "configmap", "owner", "-n", place, "-o", "jsonpath={.metadata.uid}")
    queue = manifest("owned")
    queue["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]
    make(cluster, place, queue, status={"messages": 7})
    cluster.kubectl("delete", "configmap", "owner", "-n", place)
    cluster.kubectl("wait", "--for=delete", "pq/owned", "-n", place, "--timeout=60s")
