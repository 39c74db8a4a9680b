"""The status of a queue, as it is written into the custom resource."""

from datetime import UTC, datetime
from typing import Any, Final

from partitionedqueue.model.queue_spec import DeletionPolicy, Durability
from partitionedqueue_operator.conditions.accepted import accepted
from partitionedqueue_operator.conditions.available import available
from partitionedqueue_operator.conditions.deletable import deletable
from partitionedqueue_operator.conditions.progressing import progressing
from partitionedqueue_operator.conditions.ready import ready
from partitionedqueue_operator.conditions.standing import NAMED_MAX, Condition, Standing, condition_in
from partitionedqueue_operator.observed import Manifest

CONDITIONS: Final = (ready, available, progressing, accepted, deletable)
_MESSAGE_CHARACTERS_MAX: Final = 4096  # Kubernetes allows 32768; nobody reads so much
COUNTS_PAUSE_S: Final = 5.0
DETAILS_PAUSE_S: Final = 1.0
COUNTED: Final = frozenset({"counts", "messages", "countsComplete", "sizeInBytes", "countsObservedAt"})
"""What changes with every message; the rest says how the queue stands."""


def status_of(standing: Standing, before: Manifest) -> dict[str, Any]:
    """What the status is now. `before` is what it was: times of transition and of counting are carried over."""
    counts = standing.counts
    now = standing.observed.now
    status: dict[str, Any] = {
        "observedGeneration": standing.generation,
        "conditions": [_written(condition(standing), standing, before) for condition in CONDITIONS],
        "availability": standing.availability,
        "partitions": {"total": standing.total, "ready": standing.ready},
        "readyPartitions": f"{standing.ready}/{standing.total}",
        "unavailablePartitions": [
            {"partition": sick.partition, "pod": sick.pod, "reason": sick.reason, "message": sick.message[:1024]}
            for sick in standing.sick[:NAMED_MAX]
        ],
        "counts": counts.by_state(),
        "messages": counts.messages,
        "sizeInBytes": counts.size_in_bytes,
    }
    if standing.counts_complete is not None:
        status["countsComplete"] = standing.counts_complete
    if standing.spec is None and "deletionPolicy" in before:
        status["deletionPolicy"] = before["deletionPolicy"]
    if standing.spec is not None:
        status["maxSizeInMegabytes"] = standing.spec.max_size_in_megabytes
        # Delete comes into the status before a volume goes with the queue, and leaves it when none does any more.
        going = standing.volumes_go
        status["deletionPolicy"] = (DeletionPolicy.DELETE if going else standing.spec.deletion_policy).value
        if standing.spec.requires_session:
            status["counts"]["sessions"] = counts.sessions
    if durability := _durability(standing) or before.get("durability"):
        status["durability"] = durability
    versions = {report.library for report in standing.observed.reports.values() if report.library}
    if told := min(versions, key=_order, default="") or before.get("libraryVersion"):
        status["libraryVersion"] = told
    if (stateful_set := standing.observed.stateful_set) is not None:
        status["brokerImage"] = stateful_set["spec"]["template"]["spec"]["containers"][0]["image"]
    if standing.counts_complete is not None:
        same = all(before.get(name) == status[name] for name in COUNTED if name in status)
        status["countsObservedAt"] = before.get("countsObservedAt") if same else None
        status["countsObservedAt"] = status["countsObservedAt"] or timestamp(now)
    return status


def _durability(standing: Standing) -> str:
    """The weakest that a broker runs with: the spec's holds when the last one has been started anew."""
    run = {pod.durability for pod in standing.observed.pods.values() if pod.ready}
    return next((kind.value for kind in reversed(Durability) if kind.value in run), "")


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else -1 for part in version.split("."))


def _written(condition: Condition, standing: Standing, before: Manifest) -> dict[str, Any]:
    holds = {True: "True", False: "False", None: "Unknown"}[condition.holds]
    was = condition_in(before, condition.kind)
    since = was.get("lastTransitionTime") if was.get("status") == holds else None
    return {
        "type": condition.kind,
        "status": holds,
        "reason": condition.reason,
        "message": condition.message[:_MESSAGE_CHARACTERS_MAX],
        "lastTransitionTime": since or timestamp(standing.observed.now),
        "observedGeneration": standing.generation,
    }


def pause_s(before: Manifest, after: Manifest) -> float:
    """How long after the last writing of a status this one is due: what people and programs wait for is, at once."""
    if _words(before) != _words(after):
        return 0.0
    told = before.keys() | after.keys()
    if all(before.get(name) == after.get(name) for name in told - COUNTED - {"conditions"}):
        return COUNTS_PAUSE_S
    return DETAILS_PAUSE_S


def _words(status: Manifest) -> object:
    """How a queue stands, without the numbers."""
    conditions = [(c.get("type"), c.get("status"), c.get("reason")) for c in status.get("conditions") or []]
    return [status.get(name) for name in ("availability", "observedGeneration", "deletionPolicy")], conditions


def timestamp(moment: datetime) -> str:
    """As Kubernetes writes times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
