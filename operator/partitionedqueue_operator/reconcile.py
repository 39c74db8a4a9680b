"""Decides. What is seen of a queue comes in, what is to be done comes out; nothing here touches anything."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model.errors import InvalidManifest
from partitionedqueue.model.placement import QUEUE_LABEL
from partitionedqueue.model.queue_spec import API_VERSION, KIND, DeletionPolicy, QueueSpec, QueueStatus
from partitionedqueue_operator.conditions.standing import Refusal, stand
from partitionedqueue_operator.conditions.telling import Telling, transitions
from partitionedqueue_operator.observed import LAYOUT_LABEL, POLICY, QUEUE_UID, Claim, Key, Manifest, Observed, Queue
from partitionedqueue_operator.resources.claim import broker_claims, go_with_queue, layout, unfit
from partitionedqueue_operator.resources.config_map import broker_config_map
from partitionedqueue_operator.resources.disruption_budget import broker_disruption_budget
from partitionedqueue_operator.resources.network_policy import broker_network_policy
from partitionedqueue_operator.resources.secret import broker_secret
from partitionedqueue_operator.resources.service import broker_service
from partitionedqueue_operator.resources.stateful_set import broker_stateful_set
from partitionedqueue_operator.resources.subject import Subject
from partitionedqueue_operator.settings import Settings
from partitionedqueue_operator.status import status_of

COUNT_AFTER_S: Final = 60.0
"""What a deleted queue has left is counted for so long; then its volumes are kept."""
LOOK_AGAIN_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class BrokerTarget:
    """What each broker of a queue is to be told. `digest` stands for the settings."""

    partitions: int
    settings: BrokerSettings
    digest: str


@dataclass(frozen=True, slots=True)
class Deletion:
    """An object to be deleted, and no other of its name."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done about a queue; None or empty leaves a thing as it is."""

    objects: tuple[dict[str, Any], ...] = ()
    claims: tuple[dict[str, Any], ...] = ()  # what volume claims that are there do not say yet
    deletions: tuple[Deletion, ...] = ()
    target: BrokerTarget | None = None
    status: dict[str, Any] | None = None
    tellings: tuple[Telling, ...] = ()
    look_again_s: float | None = None
    unwanted: tuple[tuple[str, str], ...] = field(default=())  # kinds and names that must not be there any more


def plan(observed: Observed, settings: Settings, operator_key: bytes) -> Plan:
    """What is to be done now. Level-based: it does not matter what has happened, only how things stand."""
    if observed.queue is None:
        return _plan_for_what_is_left(observed)
    if observed.queue.deleting:
        return Plan()  # somebody else's finalizer holds it; Kubernetes removes what is owned
    return _plan_for_queue(observed, observed.queue, settings, operator_key)


def _plan_for_queue(observed: Observed, queue: Queue, settings: Settings, operator_key: bytes) -> Plan:
    try:
        spec = read_spec(queue)
    except InvalidManifest as error:
        return _with_status(observed, queue, None, Refusal("InvalidSpec", str(error)), None)
    subject = Subject(queue, spec, settings)
    target = target_of(spec)
    if going := _still_going(observed, queue):
        return _with_status(observed, queue, spec, going, None, look_again_s=LOOK_AGAIN_S)
    if _is_anothers(observed, subject):
        words = "the brokers of an earlier queue of this name, which was another one, are counted and removed first"
        told = _with_status(observed, queue, spec, Refusal("EarlierQueueGoing", words), None)
        left = _plan_for_what_is_left(observed)
        return replace(left, status=told.status, tellings=(*told.tellings, *left.tellings))
    if refusal := _refusal(observed, subject):
        return _with_status(observed, queue, spec, refusal, target if observed.stateful_set else None)
    made: list[Callable[[], dict[str, Any]]] = [
        lambda: broker_secret(subject, operator_key, observed.secret),
        lambda: broker_config_map(subject),
        lambda: broker_service(subject),
        lambda: broker_disruption_budget(subject),
    ]
    unwanted: tuple[tuple[str, str], ...] = ()
    if settings.network_policies:
        made.append(lambda: broker_network_policy(subject))
    else:
        unwanted = (("NetworkPolicy", subject.name),)
    all_go = go_with_queue(subject, observed.claims)
    made.append(lambda: broker_stateful_set(subject, observed.stateful_set, volumes_go_with_queue=all_go))
    done = _with_status(observed, queue, spec, None, target)
    return Plan(
        objects=tuple(make() for make in made),
        claims=broker_claims(subject, observed.claims),
        target=target,
        status=done.status,
        tellings=done.tellings,
        unwanted=unwanted,
    )


def read_spec(queue: Queue) -> QueueSpec:
    """The spec, looked into. Raises InvalidManifest, in words."""
    manifest = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": queue.key.name, "namespace": queue.key.namespace},
        "spec": queue.spec,
    }
    return QueueSpec.from_manifest(manifest, source=f"queue {queue.key.name}")


def target_of(spec: QueueSpec) -> BrokerTarget:
    """What the brokers of a queue are told."""
    settings = BrokerSettings.of(spec)
    return BrokerTarget(spec.partitions, settings, _digest(spec.partitions, settings))


def _digest(partitions: int, settings: BrokerSettings) -> str:
    return hashlib.sha256(repr((partitions, settings.words())).encode()).hexdigest()[:16]


def _with_status(  # noqa: PLR0917 -- one place that words every outcome
    observed: Observed,
    queue: Queue,
    spec: QueueSpec | None,
    refusal: Refusal | None,
    target: BrokerTarget | None,
    look_again_s: float | None = None,
) -> Plan:
    standing = stand(observed, spec, refusal, target.digest if target else "")
    return Plan(
        target=target,
        status=status_of(standing, queue.status),
        tellings=transitions(standing, queue.status),
        look_again_s=look_again_s,
    )


def _still_going(observed: Observed, queue: Queue) -> Refusal | None:
    """Whether what an earlier queue of this name has left is on its way out: it is waited for, never taken up."""
    body = observed.stateful_set
    if body is not None and ("deletionTimestamp" in body["metadata"] or _is_condemned(body, queue)):
        return Refusal("EarlierQueueGoing", "the StatefulSet of an earlier queue is being deleted; waiting for its end")
    if body is None and (going := _going(observed, queue)):
        words = f"volumes of an earlier queue of this name are being deleted ({len(going)} left); waiting for their end"
        return Refusal("EarlierQueueGoing", words)
    return None


def _going(observed: Observed, queue: Queue) -> list[Claim]:
    """Volumes that are being deleted. What is another queue's goes with that one, if not this moment."""
    return [c for c in observed.claims if c.deleting or (c.queues and queue.uid not in c.queues)]


def _is_condemned(body: Manifest, queue: Queue) -> bool:
    """Whether an earlier queue owns it: Kubernetes removes it, today or tomorrow, whoever writes what into it."""
    owners = body["metadata"].get("ownerReferences") or []
    return any(owner["kind"] == KIND and owner["uid"] != queue.uid for owner in owners)


def _is_anothers(observed: Observed, subject: Subject) -> bool:
    """Whether the StatefulSet is one that an earlier queue has left, whose messages this one cannot take up.

    Nor can it where volumes of it are going already: an operator may have ended while it removed them.
    """
    body = observed.stateful_set
    if body is None or _annotation(body, QUEUE_UID) == subject.queue.uid or body["metadata"].get("ownerReferences"):
        return False
    templates = body["spec"].get("volumeClaimTemplates") or []
    written = [(claim["metadata"].get("labels") or {}).get(LAYOUT_LABEL) for claim in templates]
    return written != [layout(subject)] or bool(_going(observed, subject.queue))


def _refusal(observed: Observed, subject: Subject) -> Refusal | None:
    """Why the queue cannot be served, or not as its spec says now."""
    most = subject.settings.entities_max
    if subject.spec.enable_partitioning and observed.place >= most and observed.stateful_set is None:
        return Refusal(
            "TooManyPartitionedEntities",
            f"a namespace has at most {most} partitioned entities, and {observed.place} older ones are there; "
            "delete one of them, or make the queue in another namespace",
        )
    if observed.conflicts:
        return Refusal(
            "NameConflict",
            f"{', '.join(observed.conflicts)} is not this operator's; delete or rename it, or give the queue "
            "another name",
        )
    if words := unfit(subject, observed.claims):
        return Refusal(*words)
    return None


def _annotation(body: Manifest, name: str) -> str:
    annotations: Mapping[str, str] = body["metadata"].get("annotations") or {}
    return annotations.get(name, "")


# ---------------------------------------------------------------- what a deleted queue has left


def _plan_for_what_is_left(observed: Observed) -> Plan:
    """A StatefulSet without its queue: deleted with its volumes if it is empty for certain, otherwise they are kept.

    Its brokers take nothing in from now on, so what they count stays true.
    """
    body = observed.stateful_set
    if body is None or body["metadata"].get("ownerReferences") or "deletionTimestamp" in body["metadata"]:
        return Plan()  # Kubernetes removes it, or has
    workload = Deletion("StatefulSet", body["metadata"]["name"], body["metadata"]["uid"])
    claims = tuple(Deletion("PersistentVolumeClaim", claim.name, claim.uid) for claim in observed.claims)
    if _annotation(body, POLICY) in (DeletionPolicy.DELETE, DeletionPolicy.RETAIN):
        if observed.queue is None:
            return Plan()  # it had an owner: whoever deleted the queue had it left as it is, with --cascade=orphan
    elif observed.last_policy == DeletionPolicy.DELETE:
        return Plan(deletions=(*claims, workload))
    elif observed.last_policy == DeletionPolicy.RETAIN:
        return Plan(deletions=(workload,))
    partitions = body["spec"].get("replicas", 0)
    settings = BrokerSettings(status=QueueStatus.DISABLED)
    target = BrokerTarget(partitions, settings, _digest(partitions, settings))
    counted = [
        report.totals
        for partition, report in observed.reports.items()
        if report.totals is not None and report.settings == target.digest and _same_start(observed, partition)
    ]
    held = sum(t.messages + t.dead_letters + t.transfers + t.transfer_dead_letters for t in counted)
    if held:
        return Plan(deletions=(workload,), tellings=(_kept(observed, f"it holds {held:,} messages"),))
    if len(counted) == partitions:
        return Plan(deletions=(*claims, workload))
    since = observed.alone_since or observed.now
    if observed.now - since > timedelta(seconds=COUNT_AFTER_S):
        missing = partitions - len(counted)
        words = f"{missing} of its {partitions} partitions could not be counted"
        return Plan(deletions=(workload,), tellings=(_kept(observed, words),))
    return Plan(target=target, look_again_s=LOOK_AGAIN_S)


def _same_start(observed: Observed, partition: int) -> bool:
    pod = observed.pods.get(partition)
    return pod is not None and pod.running and observed.reports[partition].incarnation == pod.incarnation


def _kept(observed: Observed, why: str) -> Telling:
    key: Key = observed.key
    return Telling(
        "VolumesKept",
        f"the queue is deleted and {why}, so its volumes are kept. To have the messages back, apply the queue again as "
        f"it was; to be rid of them: kubectl delete pvc -n {key.namespace} -l {QUEUE_LABEL}={key.name}",
        warning=True,
    )


def is_left_by_another(children: Mapping[tuple[str, str], Manifest], queue: Queue) -> bool:
    """Whether the StatefulSet among these was made for an earlier queue."""
    return any(kind == "StatefulSet" and queue_uid_of(body) != queue.uid for (kind, _), body in children.items())


def queue_uid_of(body: Manifest) -> str:
    """The uid of the queue that a StatefulSet was made for."""
    return _annotation(body, QUEUE_UID)
