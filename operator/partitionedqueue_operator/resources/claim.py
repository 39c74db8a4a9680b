"""The claims for the volumes: StatefulSets make them; here is what is asked of them and put on them afterwards."""

from collections.abc import Sequence
from typing import Any

from partitionedqueue.model.placement import QUEUE_LABEL, volume_bytes_min, volume_claim_name
from partitionedqueue.model.queue_spec import DeletionPolicy
from partitionedqueue_operator.observed import LAYOUT_LABEL, PARTITION_GB_LABEL, Claim
from partitionedqueue_operator.resources.subject import Subject


def layout(subject: Subject) -> str:
    """What the volumes are written as, as a label: the partitions that keys map onto, and what can never change."""
    spec = subject.spec
    kinds = ("-sessions" if spec.requires_session else "") + (
        "-duplicates" if spec.requires_duplicate_detection else ""
    )
    return f"partitions-{spec.partitions}{kinds}"


def claim_labels(subject: Subject) -> dict[str, str]:
    """What tells later what a volume holds."""
    return {LAYOUT_LABEL: layout(subject), PARTITION_GB_LABEL: str(subject.spec.partition_gb)}


def claims_of(subject: Subject, claims: Sequence[Claim]) -> list[Claim]:
    """Those that the brokers use, and none that merely has their labels."""
    names = {volume_claim_name(subject.spec.name, n) for n in range(subject.spec.partitions)}
    return [claim for claim in claims if claim.name in names and not claim.deleting]


def go_with_queue(subject: Subject, claims: Sequence[Claim]) -> bool:
    """Whether Kubernetes removes every volume together with the queue."""
    owned = [claim for claim in claims_of(subject, claims) if subject.queue.uid in claim.queues]
    return len(owned) == subject.spec.partitions


def broker_claims(subject: Subject, claims: Sequence[Claim]) -> tuple[dict[str, Any], ...]:
    """What the claims are to say, of those that do not say it yet.

    Under Delete the queue owns them. It is never the StatefulSet: a person may delete that, to have it made anew, and
    the messages must outlive it. The status says so first, since the API server goes by it (crds/deletion-policy.yaml).
    """
    owned = subject.spec.deletion_policy is DeletionPolicy.DELETE
    if owned and subject.queue.status.get("deletionPolicy") != DeletionPolicy.DELETE:
        return ()
    return tuple(
        _claim(subject, claim, owned=owned)
        for claim in claims_of(subject, claims)
        if claim.partition_gb != subject.spec.partition_gb or (subject.queue.uid in claim.queues) != owned
    )


def _claim(subject: Subject, claim: Claim, *, owned: bool) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": claim.name,
        "namespace": subject.spec.namespace,
        "uid": claim.uid,  # and no other of its name
        "labels": {PARTITION_GB_LABEL: str(subject.spec.partition_gb)},
    }
    if owned:  # it is not its controller: claims are the StatefulSet's to see to
        metadata["ownerReferences"] = [{**subject.owner_reference, "controller": False}]
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}


def unfit(subject: Subject, claims: Sequence[Claim]) -> tuple[str, str] | None:
    """Why the queue cannot take up the volumes that are there: a reason, and what to do."""
    spec, wanted, there = subject.spec, layout(subject), [claim for claim in claims if not claim.deleting]
    delete = f"delete the volumes: kubectl delete pvc -n {spec.namespace} -l {QUEUE_LABEL}={spec.name}"
    if other := [claim for claim in there if claim.layout != wanted]:
        return "VolumesOfAnotherLayout", (
            f"volumes of an earlier queue of this name are kept ({other[0].name} and {len(other) - 1} more), written "
            f"as {other[0].layout or 'something unknown'}, and this queue is {wanted}; make it as the earlier one was, "
            f"or {delete}"
        )
    if larger := [claim for claim in there if claim.partition_gb > spec.partition_gb]:
        return "VolumesOfLargerPartitions", (
            f"volumes of an earlier queue of this name are kept ({larger[0].name} and {len(larger) - 1} more), of "
            f"partitions of {larger[0].partition_gb} GB, and this queue's have {spec.partition_gb} GB: their brokers "
            f"might not have the memory to read them; make it as large as the earlier one was, or {delete}"
        )
    least = volume_bytes_min(spec.partition_gb)
    if small := [claim for claim in there if 0 < claim.size_bytes < least]:
        return "VolumesTooSmall", (
            f"volumes of an earlier queue of this name are kept ({small[0].name} and {len(small) - 1} more) that are "
            f"smaller than the {least // 2**30}Gi that a partition of {spec.partition_gb} GB needs; enlarge them, or "
            f"{delete}"
        )
    return None
