"""The StatefulSet: pod n is partition n, each with a volume of its own."""

import hashlib
import json
from typing import Any

from partitionedqueue.model.queue_spec import DeletionPolicy
from partitionedqueue_operator.observed import (
    PINNED,
    POLICY,
    QUEUE_UID,
    RESTARTED_AT,
    Manifest,
)
from partitionedqueue_operator.resources.claim import claim_labels
from partitionedqueue_operator.resources.pod_template import broker_pod_template
from partitionedqueue_operator.resources.subject import Subject


def broker_stateful_set(
    subject: Subject, live: Manifest | None, *, volumes_go_with_queue: bool = False
) -> dict[str, Any]:
    """Pods start all at once and are replaced one by one.

    The template is pinned: as long as the queue itself asks for nothing new, it stays as it was first made, whatever
    image or template this operator would choose today. `live` is the StatefulSet that there is.
    """
    spec, policy = subject.spec, subject.spec.deletion_policy
    if policy is DeletionPolicy.DELETE and not volumes_go_with_queue:
        policy = DeletionPolicy.DELETE_IF_EMPTY  # until they do: what would stay is the operator's to delete
    pinned = _pinned(subject, live)
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": subject.metadata(
            # Without an owner it outlives its queue: the operator looks whether it is empty before anything goes.
            owned=policy is not DeletionPolicy.DELETE_IF_EMPTY,
            annotations={
                PINNED: json.dumps(pinned, sort_keys=True, separators=(",", ":")),
                POLICY: policy.value,
                QUEUE_UID: subject.queue.uid,
            },
        ),
        "spec": {
            "replicas": spec.partitions,
            "serviceName": subject.name,
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate"},
            "revisionHistoryLimit": 3,
            # Whoever deletes a StatefulSet, and not its queue, wants to have it made anew.
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "selector": {"matchLabels": subject.selector},
            "template": pinned["template"],
            "volumeClaimTemplates": pinned["claims"],
        },
    }


def _pinned(subject: Subject, live: Manifest | None) -> dict[str, Any]:
    asked = _asked(subject)
    text = ((live or {}).get("metadata", {}).get("annotations") or {}).get(PINNED, "")
    try:
        before = json.loads(text)
        claims = before["claims"]
        if before["asked"] == asked and before["digest"] == _digest(before["template"]):
            return dict(before)
    except (ValueError, TypeError, KeyError):
        # It was lost or written over; a StatefulSet's claims cannot change, so they are what is there.
        claims = [_claim_as_made(claim) for claim in (live or {}).get("spec", {}).get("volumeClaimTemplates", [])]
    template = broker_pod_template(subject)
    return {
        "asked": asked,
        "digest": _digest(template),
        "template": template,
        "claims": claims or [_claim_template(subject)],
    }


def _asked(subject: Subject) -> str:
    """A digest of what in the queue asks for pods of another kind."""
    spec = subject.spec
    wanted = subject.queue.spec.get("broker") or {}
    restarted = subject.queue.annotations.get(RESTARTED_AT, "")
    return _digest([wanted, spec.durability.value, spec.partition_gb, restarted])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _claim_template(subject: Subject) -> dict[str, Any]:
    spec = subject.spec
    wanted: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": spec.volume_size}},
    }
    if spec.storage.storage_class_name is not None:
        wanted["storageClassName"] = spec.storage.storage_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "labels": {**subject.labels, **claim_labels(subject)}},
        "spec": wanted,
    }


def _claim_as_made(claim: Manifest) -> dict[str, Any]:
    metadata = {name: claim["metadata"][name] for name in ("name", "labels") if name in claim["metadata"]}
    spec = {name: value for name, value in claim["spec"].items() if name != "volumeMode"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
