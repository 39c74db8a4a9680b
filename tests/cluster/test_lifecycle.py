"""How queues end and begin again, and operators: deletion, leaders, upgrades, absence."""

import contextlib
import json
import time
from collections.abc import Iterator
from functools import partial

import pytest

from harness.cluster.cluster import CommandFailed
from harness.cluster.own import OwnCluster
from harness.installed_operator import image, installation  # noqa: F401 -- fixtures
from harness.live_queue import PARTITIONED, LiveQueue
from harness.operator_process import Installation, OperatorProcess
from harness.patience import eventually
from partitionedqueue.broker import calls
from partitionedqueue.broker.library import library_text, library_version
from partitionedqueue.model import limits
from partitionedqueue.model.queue_spec import API_VERSION, KIND

OPERATOR_KEY = "partitionedqueue-operator-key"


@pytest.fixture(scope="module")
def operator(installation: Installation, image: str) -> Iterator[OperatorProcess]:  # noqa: F811
    with OperatorProcess(installation, image) as one:
        yield one.leading()


@pytest.fixture
def queue(own_cluster: OwnCluster, operator: OperatorProcess, namespace: str) -> LiveQueue:
    """A conventional queue: one partition, so quick to make. Not made yet."""
    return LiveQueue(own_cluster, namespace)


def gone(queue: LiveQueue) -> None:
    """Wait until its workload and its pods have gone."""
    eventually(lambda: not queue.get("statefulset", queue.workload), "the StatefulSet stays", 90)
    eventually(lambda: not queue.pods(), "pods stay", 60)


# ---------------------------------------------------------------- deletion


def test_a_full_queue_is_not_deleted_and_the_refusal_says_what_to_do(queue: LiveQueue) -> None:
    queue.apply()
    queue.settled()
    queue.send(0, ["one", "two"])
    queue.awaited("Deletable", "HoldsMessages")
    with pytest.raises(CommandFailed) as refused:
        queue.delete()
    assert "holds 2 messages" in str(refused.value)
    assert queue.totals(0).messages == 2


def test_an_empty_queue_goes_with_its_volumes(queue: LiveQueue) -> None:
    queue.apply()
    queue.settled()
    queue.delete()
    gone(queue)
    eventually(lambda: not queue.claims(), "volumes stay", 60)
    for kind in ("secret", "configmap", "service", "pdb", "networkpolicy"):
        eventually(partial(_is_gone, queue, kind), f"the {kind} stays", 30)


def _is_gone(queue: LiveQueue, kind: str) -> bool:
    return not queue.get(kind, queue.workload)


def test_messages_that_came_after_the_last_count_keep_their_volumes_and_come_back(queue: LiveQueue) -> None:
    queue.apply()
    queue.settled()
    queue.send(0, ["late"])
    queue.kubectl("patch", "pq", queue.name, "--subresource=status", "--type=merge", "-p",
                  '{"status":{"messages":0,"countsComplete":true}}')  # fmt: skip
    try:
        queue.delete()
    except CommandFailed:
        pytest.skip("the operator has counted it meanwhile")
    gone(queue)
    assert len(queue.claims()) == 1
    told = eventually(lambda: queue.events("VolumesKept"), "nobody tells of it", 30)
    assert "it holds 1 messages" in told[0]
    queue.apply()
    queue.settled()
    assert queue.totals(0).messages == 1


def test_retained_volumes_are_taken_up_by_the_queue_that_is_applied_again(queue: LiveQueue) -> None:
    queue.apply(deletionPolicy="Retain", sizeGB=2)
    queue.settled()
    queue.send(0, ["kept"])
    eventually(lambda: queue.status["messages"] == 1, "not counted", 30)
    queue.delete()
    gone(queue)
    assert len(queue.claims()) == 1
    queue.apply(requiresSession=True)
    refused = queue.awaited("Accepted", "VolumesOfAnotherLayout")
    assert "kubectl delete pvc" in refused["message"]
    queue.delete()
    eventually(lambda: not queue.get(), "the queue stays", 30)
    queue.apply(deletionPolicy="Retain", sizeGB=1)
    refused = queue.awaited("Accepted", "VolumesOfLargerPartitions")
    assert "partitions of 2 GB, and this queue's have 1 GB" in refused["message"]
    queue.delete()
    eventually(lambda: not queue.get(), "the queue stays", 30)
    queue.apply(deletionPolicy="Retain", sizeGB=2)
    queue.settled()
    assert queue.totals(0).messages == 1


def test_policy_delete_takes_the_messages_along(queue: LiveQueue) -> None:
    queue.apply(deletionPolicy="Delete")
    queue.settled()
    queue.send(0, ["lost"])
    eventually(lambda: queue.status["messages"] == 1, "not counted", 30)
    queue.delete()
    gone(queue)
    eventually(lambda: not queue.claims(), "volumes stay", 60)


def test_a_workload_that_is_deleted_by_hand_comes_back_with_its_messages_under_policy_delete(queue: LiveQueue) -> None:
    queue.apply(deletionPolicy="Delete")
    queue.settled()
    queue.send(0, ["kept"])
    eventually(lambda: _owners(queue) == ["PartitionedQueue"], "the volume does not go with the queue", 30)
    before = queue.get("statefulset", queue.workload)["metadata"]["uid"]
    queue.kubectl("delete", "statefulset", queue.workload)
    eventually(lambda: _uid(queue) not in ("", before), "it is not made anew", 60)
    queue.settled()
    assert queue.totals(0).messages == 1


def _uid(queue: LiveQueue) -> str:
    return str(queue.get("statefulset", queue.workload).get("metadata", {}).get("uid", ""))


def _owners(queue: LiveQueue) -> list[str]:
    (claim,) = queue.claims()
    return [owner["kind"] for owner in queue.get(*claim.split("/"))["metadata"].get("ownerReferences", [])]


def test_a_policy_that_was_delete_is_refused_or_carried_out_and_never_lost(queue: LiveQueue) -> None:
    queue.apply(deletionPolicy="Delete")
    queue.settled()
    queue.send(0, ["kept"])
    eventually(lambda: _owners(queue), "the volume does not go with the queue", 30)
    queue.apply(deletionPolicy="Retain")

    def deleted() -> bool:
        with contextlib.suppress(CommandFailed):
            queue.delete()
            return True
        return False

    eventually(deleted, "it is never deleted", 30)
    gone(queue)
    time.sleep(3)  # the garbage collector's time
    assert len(queue.claims()) == 1
    queue.apply(deletionPolicy="Retain")
    queue.settled()
    assert queue.totals(0).messages == 1


def test_another_durability_starts_the_brokers_anew_and_the_status_says_what_they_run(queue: LiveQueue) -> None:
    queue.apply()
    assert queue.settled()["durability"] == "Always"
    queue.send(0, ["kept"])
    queue.apply(durability="EverySecond")
    assert queue.settled()["durability"] == "EverySecond"
    with queue.broker(0, "default") as broker:
        said = broker.call(calls.Call(("CONFIG", "GET", "appendfsync"), list))
    assert b"everysec" in said
    assert queue.totals(0).messages == 1


def test_the_owners_last_word_counts_although_the_queue_is_deleted_at_once(queue: LiveQueue) -> None:
    queue.apply()
    queue.settled()
    queue.send(0, ["lost"])
    queue.awaited("Deletable", "HoldsMessages")
    queue.kubectl("patch", "pq", queue.name, "--type=merge", "-p", '{"spec":{"deletionPolicy":"Delete"}}')
    queue.delete()
    gone(queue)
    eventually(lambda: not queue.claims(), "volumes stay", 60)


def test_a_namespace_with_a_full_queue_ends_although_no_operator_is_there(
    own_cluster: OwnCluster, queue: LiveQueue, operator: OperatorProcess
) -> None:
    queue.apply()
    queue.settled()
    queue.send(0, ["lost"])
    queue.awaited("Deletable", "HoldsMessages")
    operator.end()
    try:
        own_cluster.kubectl("delete", "namespace", queue.namespace, "--timeout=90s")
    finally:
        operator.start()
        operator.leading()
        own_cluster.kubectl("create", "namespace", queue.namespace)  # its fixture deletes it


# ---------------------------------------------------------------- the operator


def test_what_happened_while_no_operator_was_there_is_put_right(queue: LiveQueue, operator: OperatorProcess) -> None:
    other = LiveQueue(queue.cluster, queue.namespace, "other")
    for one in (queue, other):
        one.apply()
    for one in (queue, other):
        one.settled()
    operator.end()
    queue.apply(lockDuration="PT2M")
    queue.kubectl("delete", "secret", queue.workload)
    other.delete()
    new = LiveQueue(queue.cluster, queue.namespace, "new")
    new.apply()
    operator.start()
    operator.leading()
    queue.settled()
    assert queue.settings(0)[0] == 120_000
    new.settled()
    gone(other)
    eventually(lambda: not other.claims(), "volumes stay", 60)


def test_an_operator_that_has_lost_its_key_draws_another_and_reaches_the_brokers_that_there_are(
    queue: LiveQueue,
    operator: OperatorProcess,
    installation: Installation,  # noqa: F811
) -> None:
    queue.apply()
    queue.settled()
    password, key = queue.password("gateway"), operator_key(installation)
    operator.end()
    queue.cluster.kubectl("delete", "secret", OPERATOR_KEY, "-n", installation.namespace)
    operator.start()
    operator.leading()
    queue.apply(lockDuration="PT2M")
    queue.settled(30)
    assert queue.settings(0)[0] == 120_000
    assert operator_key(installation) not in ("", key)
    assert queue.password("gateway") == password


def operator_key(installation: Installation) -> str:  # noqa: F811
    found = ("get", "secret", OPERATOR_KEY, "-n", installation.namespace, "-o", "jsonpath={.data.key}")
    return installation.cluster.kubectl(*found)


def test_another_replica_takes_over_within_twenty_seconds(
    queue: LiveQueue,
    operator: OperatorProcess,
    installation: Installation,  # noqa: F811
    image: str,  # noqa: F811
) -> None:
    queue.apply()
    queue.settled()
    with OperatorProcess(installation, image, pod="operator-b") as follower:
        follower.ready()
        assert follower.metric("pq_operator_leading") == 0
        operator.kill()
        killed = time.monotonic()
        follower.leading()
        assert time.monotonic() - killed < 20
        queue.apply(lockDuration="PT2M")
        queue.settled(30)
        assert queue.settings(0)[0] == 120_000
        operator.start()
        operator.ready()
        assert operator.metric("pq_operator_leading") == 0
        assert follower.end() == 0
        ended = time.monotonic()
        operator.leading()
        assert time.monotonic() - ended < 10  # the Lease was given back


def test_another_operator_version_leaves_the_brokers_running(
    queue: LiveQueue,
    operator: OperatorProcess,
    installation: Installation,  # noqa: F811
) -> None:
    queue.apply()
    queue.settled()
    before = queue.pods()[0]
    operator.end()
    with OperatorProcess(installation, "docker.io/partitionedqueue/broker:9.9.9", pod="operator-c") as newer:
        newer.leading()
        queue.apply(lockDuration="PT2M")
        queue.settled()
        time.sleep(3)
        assert queue.pods()[0]["metadata"]["uid"] == before["metadata"]["uid"]
        # What the queue itself asks for is done, and then by the newer operator's template.
        queue.apply(lockDuration="PT2M", broker={"podLabels": {"team": "a"}})
        eventually(
            lambda: any("9.9.9" in pod["spec"]["containers"][0]["image"] for pod in queue.pods()), "no rollout", 60
        )
    operator.start()
    operator.leading()


def test_a_broker_with_an_older_library_is_given_the_operators_own_without_a_restart(
    queue: LiveQueue, operator: OperatorProcess
) -> None:
    queue.apply()
    queue.settled()
    operator.end()
    pod = queue.pods()[0]["metadata"]["uid"]
    older = library_text().replace(f"LIBRARY_VERSION = '{library_version()}'", "LIBRARY_VERSION = '0.0.9'")
    with queue.broker(0, "default") as broker:
        broker.call(calls.Call(("FUNCTION", "LOAD", "REPLACE", older), bytes))
        assert broker.call(calls.about()).library == "0.0.9"
    operator.start()
    operator.leading()

    def upgraded() -> bool:
        with queue.broker(0) as broker:
            return broker.call(calls.about()).library == library_version()

    eventually(upgraded, "the library stays old", 30)
    assert queue.pods()[0]["metadata"]["uid"] == pod
    eventually(lambda: queue.status["libraryVersion"] == library_version(), "the status does not say so", 30)


# ---------------------------------------------------------------- limits


def test_the_hundred_and_first_partitioned_queue_waits_for_room(queue: LiveQueue) -> None:
    """The others are asked to run where no node is: they are there, and cost nothing."""
    nowhere = {"nodeSelector": {"nobody": "here"}, "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}
    manifests = [
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": f"q{n:03}", "namespace": queue.namespace},
            "spec": {**PARTITIONED, "deletionPolicy": "Delete", "broker": nowhere},
        }
        for n in range(limits.PARTITIONED_ENTITIES_MAX)
    ]
    everything = {"apiVersion": "v1", "kind": "List", "items": manifests}
    queue.kubectl("create", "-f", "-", input=json.dumps(everything))
    last = LiveQueue(queue.cluster, queue.namespace, "zz")
    last.apply(**PARTITIONED, broker=nowhere)
    refused = last.awaited("Accepted", "TooManyPartitionedEntities", 60)
    assert "at most 100" in refused["message"]
    assert not last.get("statefulset", last.workload)
    queue.kubectl("delete", "pq", "q050", "--wait=false")
    eventually(lambda: last.get("statefulset", last.workload), "there is room and it is not taken", 60)


def test_eighty_partitions_are_ready(queue: LiveQueue) -> None:
    queue.apply(**PARTITIONED, sizeGB=5, deletionPolicy="Delete")
    status = queue.settled(420)
    assert status["partitions"] == {"total": 80, "ready": 80}
    assert status["maxSizeInMegabytes"] == 80 * 1024
