"""Pods and claims, as the API server tells of them, in the operator's few words."""

from typing import Any

import pytest

from partitionedqueue_operator.observed import Claim, Pod

RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


def pod(state: dict[str, Any] | None = None, *, ready: str = "False", phase: str = "Running", **more: Any) -> Pod:
    container = {"name": "broker", "image": "i", "containerID": "c", "state": state or {}, **more.pop("container", {})}
    status = {"phase": phase, "podIP": "198.18.0.1", "conditions": [{"type": "Ready", "status": ready}]}
    status |= {"containerStatuses": [container] if state is not None else [], **more.pop("status", {})}
    metadata = {"name": "q-broker-7", "namespace": "n", "uid": "u", **more}
    return Pod.of({"metadata": metadata, "spec": {"containers": [{"name": "broker", "image": "i"}]}, "status": status})


def test_a_ready_pod_can_be_spoken_to() -> None:
    made = pod(RUNNING, ready="True")
    assert (made.partition, made.ready, made.running, made.incarnation) == (7, True, True, "c")


def test_a_pod_that_is_being_deleted_is_neither_ready_nor_to_be_spoken_to() -> None:
    made = pod(RUNNING, ready="True", deletionTimestamp="2026-01-01T00:00:00Z")
    assert (made.ready, made.running, made.reason) == (False, False, "PodTerminating")


@pytest.mark.parametrize(
    ("made", "reason", "words"),
    [
        (pod({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}), "CrashLoopBackOff", "back-off"),
        (pod({"terminated": {"reason": "OOMKilled", "exitCode": 137}}), "OOMKilled", "ended"),
        (pod(RUNNING), "NotReady", "readiness probe"),
        (pod(None, phase="Pending"), "PodPending", "not started"),
        (
            pod(RUNNING, container={"lastState": {"terminated": {"reason": "Error", "exitCode": 78}}}),
            "NotReady",
            "it ended before with Error (code 78)",
        ),
        (
            pod(
                None,
                phase="Pending",
                status={"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                                        "message": "0/3 nodes are available"}]},
            ),
            "Unschedulable",
            "0/3 nodes",
        ),
    ],
)  # fmt: skip
def test_a_pod_that_is_not_ready_says_why_in_kubernetes_words(made: Pod, reason: str, words: str) -> None:
    assert made.reason == reason
    assert words in made.message
    assert not made.ready


def test_a_container_that_has_ended_has_no_incarnation() -> None:
    assert not pod({"terminated": {"reason": "Error", "exitCode": 1}}).running


def test_a_claim_knows_its_layout() -> None:
    labels = {"messaging.partitionedqueue.io/layout": "partitions-16"}
    metadata = {"name": "data-q-broker-0", "namespace": "n", "uid": "u", "labels": labels}
    assert Claim.of({"metadata": metadata}) == Claim("data-q-broker-0", "u", "partitions-16", deleting=False)


def test_a_claim_knows_how_large_it_is_and_which_queue_it_goes_with() -> None:
    metadata = {
        "name": "data-q-broker-0", "namespace": "n", "uid": "u",
        "labels": {"messaging.partitionedqueue.io/partition-gb": "5"},
        "ownerReferences": [{"kind": "PartitionedQueue", "uid": "q-1"}, {"kind": "StatefulSet", "uid": "s-1"}],
    }  # fmt: skip
    claim = Claim.of({"metadata": metadata, "spec": {"resources": {"requests": {"storage": "20Gi"}}}})
    assert (claim.partition_gb, claim.size_bytes, claim.queues) == (5, 20 * 2**30, ("q-1",))


def test_a_pod_says_which_durability_it_was_started_with() -> None:
    annotations = {"messaging.partitionedqueue.io/durability": "EverySecond"}
    assert pod(RUNNING, annotations=annotations).durability == "EverySecond"
    assert not pod(RUNNING).durability


def test_a_start_without_a_container_id_is_told_by_its_time() -> None:
    assert pod(RUNNING, container={"containerID": ""}).incarnation == "2026-01-01T00:00:00Z"
