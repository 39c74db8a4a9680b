"""What is decided, without a cluster: queues, and what deleted ones leave behind."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from partitionedqueue.broker.replies import Totals
from partitionedqueue.model.queue_spec import QueueStatus
from partitionedqueue_operator import reconcile
from partitionedqueue_operator.observed import LAYOUT_LABEL, Claim, Key, Observed, Pod, Queue, Report
from partitionedqueue_operator.reconcile import Plan
from partitionedqueue_operator.settings import Settings

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KEY = Key("shop", "orders")
SETTINGS = Settings(broker_image="broker:1")
OPERATOR_KEY = b"k" * 32


def queue(*, annotations: Mapping[str, str] | None = None, status: Any = None, **spec: Any) -> Queue:
    return Queue(
        key=KEY, uid="u-1", generation=3, created="2026-01-01T00:00:00Z", deleting=False,
        annotations=annotations or {}, spec={"enablePartitioning": True, **spec}, status=status or {},
    )  # fmt: skip


def pod(partition: int, **changes: Any) -> Pod:
    made = Pod(
        name=f"orders-broker-{partition}", uid=f"p-{partition}", ip=f"198.18.0.{partition}", ready=True, deleting=False,
        incarnation=f"c-{partition}",
    )  # fmt: skip
    return replace(made, **changes)


def report(partition: int, totals: Totals | None = None, settings: str = "") -> Report:
    return Report(f"c-{partition}", totals=totals or Totals(), library="1.2.3", settings=settings)


def observed(of: Queue | None, *, pods: int = 16, **more: Any) -> Observed:
    """All pods ready, told and counted, unless said otherwise."""
    digest = reconcile.target_of(reconcile.read_spec(of)).digest if of is not None else ""
    seen: dict[str, Any] = {
        "pods": {n: pod(n) for n in range(pods)},
        "reports": {n: report(n, settings=digest) for n in range(pods)},
    }
    return Observed(key=KEY, now=NOW, queue=of, **{**seen, **more})


def plan(seen: Observed, settings: Settings = SETTINGS) -> Plan:
    return reconcile.plan(seen, settings, OPERATOR_KEY)


def made(kind: str, result: Plan) -> dict[str, Any]:
    return next(body for body in result.objects if body["kind"] == kind)


def with_stateful_set(seen: Observed, settings: Settings = SETTINGS, **metadata: Any) -> Observed:
    """As it is once the plan was carried out."""
    body = made("StatefulSet", plan(seen, settings))
    body = {**body, "metadata": {**body["metadata"], "uid": "s-1", "generation": 1, **metadata}}
    body["status"] = {"observedGeneration": 1, "updateRevision": "r", "currentRevision": "r"}
    return replace(seen, children={("StatefulSet", "orders-broker"): body})


def condition(result: Plan, kind: str) -> dict[str, Any]:
    assert result.status is not None
    return next(dict(c) for c in result.status["conditions"] if c["type"] == kind)


# ---------------------------------------------------------------- a queue


def test_a_queue_becomes_its_six_objects() -> None:
    objects = plan(observed(queue(), pods=0)).objects
    kinds = [body["kind"] for body in objects]
    assert kinds == ["Secret", "ConfigMap", "Service", "PodDisruptionBudget", "NetworkPolicy", "StatefulSet"]
    assert {body["metadata"]["name"] for body in objects} == {"orders-broker"}
    assert {body["metadata"]["namespace"] for body in objects} == {"shop"}


def test_without_network_policies_the_one_that_was_made_goes() -> None:
    result = plan(observed(queue()), replace(SETTINGS, network_policies=False))
    assert "NetworkPolicy" not in {body["kind"] for body in result.objects}
    assert result.unwanted == (("NetworkPolicy", "orders-broker"),)


def test_a_queue_that_is_well_says_so() -> None:
    result = plan(with_stateful_set(observed(queue())))
    assert result.status is not None
    assert result.status["availability"] == "Available"
    assert result.status["readyPartitions"] == "16/16"
    assert result.status["libraryVersion"] == "1.2.3"
    assert {c["type"]: c["status"] for c in result.status["conditions"]} == {
        "Ready": "True", "Available": "True", "Progressing": "False", "Accepted": "True", "Deletable": "True",
    }  # fmt: skip


def test_times_of_transition_and_of_counting_are_carried_over() -> None:
    before = plan(with_stateful_set(observed(queue()))).status
    later = replace(with_stateful_set(observed(queue(status=before))), now=NOW + timedelta(hours=1))
    assert plan(later).status == before


def test_a_sick_partition_is_named_and_the_rest_goes_on() -> None:
    seen = with_stateful_set(observed(queue()))
    pods = {**seen.pods, 5: pod(5, ready=False, reason="CrashLoopBackOff", message="back-off")}
    result = plan(replace(seen, pods=pods))
    assert result.status is not None
    assert result.status["availability"] == "Limited"
    assert result.status["unavailablePartitions"] == [
        {"partition": 5, "pod": "orders-broker-5", "reason": "CrashLoopBackOff", "message": "back-off"}
    ]
    assert condition(result, "Ready")["status"] == "False"
    assert "partition 5 (orders-broker-5): CrashLoopBackOff" in condition(result, "Available")["message"]


def test_a_broker_that_does_not_answer_is_sick_although_its_pod_is_ready() -> None:
    seen = with_stateful_set(observed(queue()))
    reports = {**seen.reports, 2: Report("c-2", trouble="Unreachable", message="no answer")}
    result = plan(replace(seen, reports=reports))
    assert result.status is not None
    assert [sick["reason"] for sick in result.status["unavailablePartitions"]] == ["Unreachable"]
    assert result.status["countsComplete"] is False


def test_a_partition_without_the_newest_settings_keeps_the_queue_from_ready() -> None:
    seen = with_stateful_set(observed(queue()))
    result = plan(replace(seen, reports={**seen.reports, 9: report(9, settings="older")}))
    assert condition(result, "Ready")["reason"] == "SettingsPending"
    assert condition(result, "Ready")["message"].endswith(": 9")
    assert condition(result, "Progressing")["reason"] == "Configuring"


@pytest.mark.parametrize("asked", [0, 3])
def test_an_operator_that_has_just_begun_writes_nothing_new(asked: int) -> None:
    seen = with_stateful_set(observed(queue()))
    held = replace(seen, reports={**seen.reports, 15: report(15, Totals(messages=7, ready=7), settings_of(seen))})
    before = plan(held).status
    begun = with_stateful_set(observed(queue(status=before)))
    assert plan(replace(begun, reports={n: begun.reports[n] for n in range(asked)})).status == before


def settings_of(seen: Observed) -> str:
    return seen.reports[0].settings


def test_counts_that_nobody_can_take_are_not_complete() -> None:
    seen = with_stateful_set(observed(queue()))
    held = replace(seen, reports={**seen.reports, 0: report(0, Totals(messages=7, ready=7), settings_of(seen))})
    before = plan(held).status
    blind = with_stateful_set(observed(queue(status=before)))
    result = plan(replace(blind, reports={**blind.reports, 0: Report("c-0", "Unreachable", "no answer")}))
    assert result.status is not None
    assert result.status["countsComplete"] is False
    assert condition(result, "Deletable")["reason"] == "CountUnknown"


def test_with_every_broker_gone_the_last_counts_stay_and_are_not_complete() -> None:
    seen = with_stateful_set(observed(queue()))
    held = replace(seen, reports={**seen.reports, 0: report(0, Totals(messages=7, ready=7), settings_of(seen))})
    dark = replace(with_stateful_set(observed(queue(status=plan(held).status))), pods={}, reports={})
    result = plan(dark)
    assert result.status is not None
    assert (result.status["messages"], result.status["countsComplete"]) == (7, False)
    assert result.status["availability"] == "Unavailable"


def test_a_queue_that_never_came_up_can_be_deleted() -> None:
    result = plan(observed(queue(), pods=0))
    assert result.status is not None
    assert "countsComplete" not in result.status
    assert condition(result, "Deletable")["status"] == "True"


@pytest.mark.parametrize(("policy", "reason"), [("Delete", "PolicyDelete"), ("Retain", "PolicyRetain")])
def test_other_policies_let_a_full_queue_go(policy: str, reason: str) -> None:
    seen = with_stateful_set(observed(queue(deletionPolicy=policy)))
    full = replace(seen, reports={**seen.reports, 0: report(0, Totals(messages=7))})
    assert condition(plan(full), "Deletable")["reason"] == reason


def test_a_spec_that_cannot_be_is_told_in_words_and_touches_nothing() -> None:
    broken = queue(sizeGB=17)
    result = plan(Observed(key=KEY, now=NOW, queue=broken))
    assert result.objects == ()
    assert condition(result, "Accepted")["reason"] == "InvalidSpec"
    assert "sizeGB is 17" in condition(result, "Accepted")["message"]
    assert [telling.reason for telling in result.tellings] == ["InvalidSpec"]


def test_the_hundred_and_first_partitioned_queue_waits() -> None:
    result = plan(observed(queue(), pods=0, place=100))
    assert result.objects == ()
    assert condition(result, "Accepted")["reason"] == "TooManyPartitionedEntities"
    assert "at most 100" in condition(result, "Ready")["message"]
    assert plan(observed(queue(), pods=0, place=99)).objects != ()


def test_a_queue_that_has_its_brokers_is_never_pushed_out() -> None:
    assert plan(replace(with_stateful_set(observed(queue())), place=100)).objects != ()


def test_conventional_queues_do_not_count() -> None:
    assert plan(observed(queue(enablePartitioning=False), pods=0, place=100)).objects != ()


def test_what_is_somebody_elses_is_refused_by_name() -> None:
    result = plan(observed(queue(), pods=0, conflicts=("Secret orders-broker",)))
    assert condition(result, "Accepted")["reason"] == "NameConflict"
    assert "Secret orders-broker" in condition(result, "Accepted")["message"]


def test_volumes_of_another_layout_are_not_taken_up() -> None:
    claims = (Claim("data-orders-broker-0", "v-0", "partitions-32", deleting=False),)
    result = plan(observed(queue(), pods=0, claims=claims))
    assert result.objects == ()
    assert condition(result, "Accepted")["reason"] == "VolumesOfAnotherLayout"
    assert "kubectl delete pvc -n shop" in condition(result, "Accepted")["message"]


def test_volumes_of_its_own_layout_are_taken_up() -> None:
    claims = (Claim("data-orders-broker-0", "v-0", "partitions-16", deleting=False),)
    assert plan(observed(queue(), pods=0, claims=claims)).objects != ()


def test_volumes_that_are_going_are_waited_for() -> None:
    claims = (Claim("data-orders-broker-0", "v-0", "partitions-16", deleting=True),)
    result = plan(observed(queue(), pods=0, claims=claims))
    assert result.objects == ()
    assert result.target is None
    assert result.look_again_s
    assert condition(result, "Accepted")["reason"] == "EarlierQueueGoing"


def test_a_claim_that_a_person_deletes_under_a_running_queue_holds_nothing_up() -> None:
    claims = (Claim("data-orders-broker-0", "v-0", "partitions-16", deleting=True),)
    assert plan(replace(with_stateful_set(observed(queue())), claims=claims)).objects != ()


def test_a_queue_that_is_being_deleted_is_let_go() -> None:
    assert plan(observed(replace(queue(), deleting=True))) == Plan()


def test_the_claims_say_which_layout_they_are_of() -> None:
    claim = made("StatefulSet", plan(observed(queue(requiresSession=True), pods=0)))["spec"]["volumeClaimTemplates"][0]
    assert claim["metadata"]["labels"][LAYOUT_LABEL] == "partitions-16-sessions"
    assert claim["spec"]["resources"]["requests"]["storage"] == "4Gi"


# ---------------------------------------------------------------- the pinned template


def template(result: Plan) -> dict[str, Any]:
    return dict(made("StatefulSet", result)["spec"]["template"])


def test_another_operator_leaves_the_pods_as_they_are() -> None:
    seen = with_stateful_set(observed(queue()))
    newer = replace(SETTINGS, broker_image="broker:2")
    assert template(plan(seen, newer)) == template(plan(seen))


@pytest.mark.parametrize(
    "change",
    [
        {"broker": {"image": "broker:3"}},
        {"durability": "EverySecond"},
        {"broker": {"resources": {"requests": {"cpu": "1"}}}},
    ],
)
def test_a_change_of_the_queue_itself_takes_the_newer_template(change: dict[str, Any]) -> None:
    seen = with_stateful_set(observed(queue()))
    newer = replace(SETTINGS, broker_image="broker:2")
    image = template(plan(replace(seen, queue=queue(**change)), newer))["spec"]["containers"][0]["image"]
    assert image == change.get("broker", {}).get("image", "broker:2")


def test_a_restart_is_asked_for_by_an_annotation() -> None:
    seen = with_stateful_set(observed(queue()))
    asked = queue(annotations={"messaging.partitionedqueue.io/restartedAt": "now"})
    result = template(plan(replace(seen, queue=asked), replace(SETTINGS, broker_image="broker:2")))
    assert result["metadata"]["annotations"]["messaging.partitionedqueue.io/restartedAt"] == "now"
    assert result["spec"]["containers"][0]["image"] == "broker:2"


def test_a_mutable_setting_of_the_queue_restarts_nobody() -> None:
    seen = with_stateful_set(observed(queue()))
    changed = plan(replace(seen, queue=queue(lockDuration="PT2M")))
    assert template(changed) == template(plan(seen))
    assert changed.target is not None
    assert changed.target.settings.lock_ms == 120_000


@pytest.mark.parametrize("lost", ["", "no json", "{}", '{"asked":"x","digest":"y","template":{}}'])
def test_a_pin_that_was_lost_is_made_anew_and_the_claims_stay(lost: str) -> None:
    seen = with_stateful_set(observed(queue()))
    body = dict(seen.stateful_set or {})
    body["metadata"] = {**body["metadata"], "annotations": {"messaging.partitionedqueue.io/pinned": lost}}
    result = plan(replace(seen, children={("StatefulSet", "orders-broker"): body}))
    assert made("StatefulSet", result)["spec"]["volumeClaimTemplates"] == body["spec"]["volumeClaimTemplates"]
    assert template(result) == template(plan(seen))


# ---------------------------------------------------------------- what is left


def left(totals: Totals | None, **more: Any) -> Observed:
    """A queue's brokers after it was deleted; totals of partition 0, nothing in the others."""
    seen = with_stateful_set(observed(queue()), ownerReferences=None)
    alone = replace(seen, queue=None, reports={})
    target = plan(alone).target
    digest = target.digest if target else ""
    reports = {n: report(n, settings=digest) for n in range(16)}
    if totals is None:
        reports.pop(0)
    else:
        reports[0] = report(0, totals, digest)
    claims = tuple(Claim(f"data-orders-broker-{n}", f"v-{n}", "partitions-16", deleting=False) for n in range(16))
    return replace(alone, reports=reports, claims=claims, **more)


def test_its_brokers_take_nothing_in_while_they_are_counted() -> None:
    target = plan(replace(left(Totals()), reports={})).target
    assert target is not None
    assert target.settings.status is QueueStatus.DISABLED


def test_an_empty_queue_goes_with_its_volumes() -> None:
    result = plan(left(Totals()))
    assert [d.kind for d in result.deletions] == ["PersistentVolumeClaim"] * 16 + ["StatefulSet"]
    assert result.tellings == ()


@pytest.mark.parametrize(
    "held", [Totals(messages=1), Totals(dead_letters=1), Totals(transfers=1), Totals(transfer_dead_letters=1)]
)
def test_whatever_holds_a_message_keeps_its_volumes(held: Totals) -> None:
    result = plan(left(held))
    assert [d.kind for d in result.deletions] == ["StatefulSet"]
    assert "it holds 1 messages" in result.tellings[0].message
    assert "apply the queue again" in result.tellings[0].message


def test_a_count_from_before_the_brokers_were_closed_proves_nothing() -> None:
    seen = left(Totals())
    open_still = {n: report(n, settings="open") for n in range(16)}
    assert plan(replace(seen, reports=open_still)).deletions == ()


def test_what_cannot_be_counted_is_waited_for_and_then_kept() -> None:
    waiting = plan(left(None, alone_since=NOW - timedelta(seconds=30)))
    assert waiting.deletions == ()
    assert waiting.look_again_s
    kept = plan(left(None, alone_since=NOW - timedelta(seconds=61)))
    assert [d.kind for d in kept.deletions] == ["StatefulSet"]
    assert "1 of its 16 partitions could not be counted" in kept.tellings[0].message


def test_the_owners_last_word_counts_even_if_it_came_with_the_deletion() -> None:
    gone = plan(left(Totals(messages=5), last_policy="Delete"))
    assert len(gone.deletions) == 17
    kept = plan(left(Totals(), last_policy="Retain"))
    assert [d.kind for d in kept.deletions] == ["StatefulSet"]


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_what_has_an_owner_is_left_to_kubernetes(policy: str) -> None:
    of = queue(deletionPolicy=policy)
    seen = replace(with_stateful_set(observed(of, claims=volumes(queues=("u-1",)))), queue=None)
    assert plan(seen) == Plan()


@pytest.mark.parametrize(("policy", "owned"), [("Delete", False), ("Retain", True), ("DeleteIfEmpty", False)])
def test_a_workload_goes_with_its_queue_only_where_its_volumes_are_seen_to(policy: str, owned: bool) -> None:
    body = made("StatefulSet", plan(observed(queue(deletionPolicy=policy), pods=0)))
    assert ("ownerReferences" in body["metadata"]) is owned
    assert body["spec"]["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}


# ---------------------------------------------------------------- volumes


def volumes(**more: Any) -> tuple[Claim, ...]:
    given = {"layout": "partitions-16", "deleting": False, "partition_gb": 1, "size_bytes": 4 * 2**30, **more}
    return tuple(Claim(f"data-orders-broker-{n}", f"v-{n}", **given) for n in range(16))


def test_volumes_that_say_what_is_so_are_left_alone() -> None:
    assert plan(with_stateful_set(observed(queue(), claims=volumes()))).claims == ()


def test_under_delete_the_status_says_so_before_the_volumes_go_with_the_queue_and_the_workload_comes_last() -> None:
    first = plan(observed(queue(deletionPolicy="Delete"), claims=volumes()))
    assert first.status is not None
    assert (first.status["deletionPolicy"], first.claims) == ("Delete", ())
    second = plan(observed(queue(deletionPolicy="Delete", status=first.status), claims=volumes()))
    assert [claim["metadata"]["uid"] for claim in second.claims] == [f"v-{n}" for n in range(16)]
    assert {claim["metadata"]["ownerReferences"][0]["uid"] for claim in second.claims} == {"u-1"}
    assert "ownerReferences" not in made("StatefulSet", second)["metadata"]
    owned = volumes(queues=("u-1",))
    some = plan(observed(queue(deletionPolicy="Delete", status=first.status), claims=(*owned[:15], volumes()[15])))
    assert [claim["metadata"]["uid"] for claim in some.claims] == ["v-15"]
    assert "ownerReferences" not in made("StatefulSet", some)["metadata"]
    third = plan(observed(queue(deletionPolicy="Delete", status=first.status), claims=owned))
    assert third.claims == ()
    assert made("StatefulSet", third)["metadata"]["ownerReferences"][0]["uid"] == "u-1"


def test_a_queue_that_is_deleted_before_its_volumes_go_with_it_is_seen_off_by_the_operator() -> None:
    of = queue(deletionPolicy="Delete")
    seen = replace(with_stateful_set(observed(of, claims=volumes())), queue=None, last_policy="Delete")
    assert {deletion.kind for deletion in plan(seen).deletions} == {"StatefulSet", "PersistentVolumeClaim"}
    assert len(plan(seen).deletions) == 17


@pytest.mark.parametrize("policy", ["Retain", "DeleteIfEmpty"])
def test_volumes_that_went_with_the_queue_are_kept_from_it_before_the_status_says_so(policy: str) -> None:
    of = queue(deletionPolicy=policy, status={"deletionPolicy": "Delete"})
    going = plan(with_stateful_set(observed(of, claims=volumes(queues=("u-1",)))))
    assert going.status is not None
    assert going.status["deletionPolicy"] == "Delete"
    assert condition(going, "Deletable")["reason"] == "PolicyPending"
    assert len(going.claims) == 16
    assert not [claim for claim in going.claims if "ownerReferences" in claim["metadata"]]
    kept = plan(with_stateful_set(observed(of, claims=volumes())))
    assert kept.status is not None
    assert (kept.status["deletionPolicy"], condition(kept, "Deletable")["status"]) == (policy, "True")


def test_a_claim_of_somebodys_that_has_a_queues_labels_is_never_given_to_the_queue() -> None:
    other = Claim("backup", "v-x", "partitions-16", deleting=False)
    of = queue(deletionPolicy="Delete", status={"deletionPolicy": "Delete"})
    assert plan(observed(of, claims=(*volumes(queues=("u-1",)), other))).claims == ()


def test_volumes_that_go_with_an_earlier_queue_are_waited_for() -> None:
    result = plan(observed(queue(), pods=0, claims=volumes(queues=("u-0",))))
    assert result.objects == ()
    assert condition(result, "Accepted")["reason"] == "EarlierQueueGoing"


@pytest.mark.parametrize(
    ("claims", "spec", "reason", "words"),
    [
        ({"partition_gb": 5}, {}, "VolumesOfLargerPartitions", "partitions of 5 GB, and this queue's have 1 GB"),
        (
            {"size_bytes": 2 * 2**30},
            {"sizeGB": 5, "partitionLayout": "Sixteen"},
            "VolumesTooSmall",
            "smaller than the 10Gi",
        ),
    ],
)
def test_volumes_of_partitions_of_another_size_are_taken_up_only_where_they_fit(
    claims: dict[str, Any], spec: dict[str, Any], reason: str, words: str
) -> None:
    result = plan(observed(queue(**spec), pods=0, claims=volumes(**claims)))
    assert result.objects == ()
    assert condition(result, "Accepted")["reason"] == reason
    assert words in condition(result, "Accepted")["message"]
    assert "kubectl delete pvc -n shop" in condition(result, "Accepted")["message"]


def test_volumes_of_smaller_partitions_are_taken_up_and_say_from_then_on_how_large_they_are() -> None:
    result = plan(observed(queue(sizeGB=2, partitionLayout="Sixteen"), pods=0, claims=volumes()))
    assert len(result.claims) == 16
    label = "messaging.partitionedqueue.io/partition-gb"
    assert {claim["metadata"]["labels"][label] for claim in result.claims} == {"2"}
    template = made("StatefulSet", result)["spec"]["volumeClaimTemplates"][0]
    assert template["metadata"]["labels"][label] == "2"


# ---------------------------------------------------------------- a rollout


def test_a_queue_whose_pods_are_being_replaced_is_not_ready_however_well_they_are() -> None:
    seen = with_stateful_set(observed(queue()))
    body = dict(seen.stateful_set or {})
    for metadata, status in (
        ({**body["metadata"], "generation": 2}, body["status"]),  # nobody has looked yet
        (body["metadata"], {**body["status"], "updateRevision": "s", "updatedReplicas": 3}),
    ):
        rolling = {**body, "metadata": metadata, "status": status}
        result = plan(replace(seen, children={("StatefulSet", "orders-broker"): rolling}))
        assert (condition(result, "Ready")["status"], condition(result, "Ready")["reason"]) == ("False", "RollingOut")
        assert condition(result, "Progressing")["reason"] == "RollingOut"
        assert f"{status.get('updatedReplicas', 0)} of 16 pods" in condition(result, "Ready")["message"]
        assert "Configured" not in [telling.reason for telling in result.tellings]


def test_the_durability_in_the_status_is_the_weakest_that_a_broker_runs_with() -> None:
    def told(*run: str, status: Any = None) -> str | None:
        of = queue(durability="Always", status=status)
        pods = {n: pod(n, durability=word) for n, word in enumerate(run)}
        result = plan(with_stateful_set(replace(observed(of), pods=pods)))
        assert result.status is not None
        return result.status.get("durability")

    assert told("Always", "EverySecond") == "EverySecond"
    assert told("Always", "Always") == "Always"
    assert told() is None
    assert told(status={"durability": "EverySecond"}) == "EverySecond"


# ---------------------------------------------------------------- an earlier queue of the name


def test_brokers_of_an_earlier_queue_of_another_layout_are_seen_off_first() -> None:
    earlier = left(Totals(messages=3))
    body = dict(earlier.stateful_set or {})
    body["metadata"] = {
        **body["metadata"],
        "annotations": {**body["metadata"]["annotations"], "messaging.partitionedqueue.io/queue-uid": "u-0"},
    }
    seen = replace(earlier, queue=queue(sizeGB=2), children={("StatefulSet", "orders-broker"): body})
    result = plan(seen)
    assert condition(result, "Accepted")["reason"] == "EarlierQueueGoing"
    assert [d.kind for d in result.deletions] == ["StatefulSet"]
    assert [telling.reason for telling in result.tellings] == ["EarlierQueueGoing", "VolumesKept"]
    assert result.objects == ()
    same = replace(seen, queue=queue())
    assert plan(same).deletions == ()
    assert made("StatefulSet", plan(same))["spec"]["template"] == body["spec"]["template"]


def of_an_earlier_queue(seen: Observed, **metadata: Any) -> Observed:
    """Its StatefulSet was made for a queue that is gone; the claims and counts are as they are."""
    body = dict(seen.stateful_set or {})
    annotations = {**body["metadata"]["annotations"], "messaging.partitionedqueue.io/queue-uid": "u-0"}
    body["metadata"] = {**body["metadata"], "annotations": annotations, **metadata}
    return replace(seen, children={("StatefulSet", "orders-broker"): body})


def owned_by(uid: str, kind: str = "PartitionedQueue") -> list[dict[str, str]]:
    return [{"apiVersion": "messaging.partitionedqueue.io/v1", "kind": kind, "name": "orders", "uid": uid}]


def test_a_stateful_set_that_kubernetes_removes_with_an_earlier_queue_is_not_taken_up() -> None:
    seen = with_stateful_set(observed(queue(deletionPolicy="Retain")))
    result = plan(of_an_earlier_queue(seen, ownerReferences=owned_by("u-0")))
    assert not result.objects
    assert not result.deletions
    assert result.target is None
    assert result.look_again_s
    assert condition(result, "Accepted")["reason"] == "EarlierQueueGoing"
    assert plan(of_an_earlier_queue(seen, ownerReferences=owned_by("x-0", "Application"))).objects != ()


def test_a_removal_that_an_operator_did_not_finish_is_finished_although_the_queue_is_there_again() -> None:
    seen = of_an_earlier_queue(left(Totals()))
    claims = tuple(replace(claim, deleting=n < 5) for n, claim in enumerate(seen.claims))
    result = plan(replace(seen, queue=queue(), claims=claims))
    assert condition(result, "Accepted")["reason"] == "EarlierQueueGoing"
    assert [d.kind for d in result.deletions] == ["PersistentVolumeClaim"] * 16 + ["StatefulSet"]


def test_what_holds_messages_keeps_the_volumes_that_nobody_has_deleted() -> None:
    seen = of_an_earlier_queue(left(Totals(messages=1)))
    claims = tuple(replace(claim, deleting=n == 5) for n, claim in enumerate(seen.claims))
    result = plan(replace(seen, queue=queue(), claims=claims))
    assert [d.kind for d in result.deletions] == ["StatefulSet"]


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_what_was_orphaned_on_purpose_is_left_as_it_is(policy: str) -> None:
    seen = left(Totals(), last_policy=policy)
    annotations = {**(seen.stateful_set or {})["metadata"]["annotations"]}
    annotations["messaging.partitionedqueue.io/deletion-policy"] = policy
    body = {**(seen.stateful_set or {})}
    body["metadata"] = {**body["metadata"], "annotations": annotations}
    assert plan(replace(seen, children={("StatefulSet", "orders-broker"): body})) == Plan()
