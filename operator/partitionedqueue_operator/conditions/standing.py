"""How a queue stands: each partition looked at, the counts added up. What the conditions are worded from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from partitionedqueue.broker.counts import Counts
from partitionedqueue.model.queue_spec import QueueSpec
from partitionedqueue_operator.observed import Manifest, Observed, Pod, Report, expected_pod

NAMED_MAX: Final = 16
"""So many sick partitions are named; more are counted."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a queue is not served as its spec says."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Sick:
    """A partition that does not serve, and why."""

    partition: int
    pod: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Condition:
    """One of Kubernetes' status conditions. `holds` is None where nobody can tell."""

    kind: str
    holds: bool | None
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Standing:
    """A queue at one moment. `spec` is None where it cannot be read."""

    observed: Observed
    spec: QueueSpec | None
    refusal: Refusal | None
    settings: str  # digest of what each broker is to have been told
    sick: tuple[Sick, ...]
    unsettled: tuple[int, ...]  # partitions that have not acknowledged the settings yet
    counts: Counts
    counts_complete: bool | None  # None as long as no partition has ever been counted
    making: bool  # not all partitions have ever served at once yet
    rolling: bool  # the StatefulSet replaces pods, or has not looked yet
    volumes_go: bool  # Kubernetes would remove a volume together with the queue

    @property
    def generation(self) -> int:
        """Of the spec that was looked at."""
        return self.observed.queue.generation if self.observed.queue else 0

    @property
    def total(self) -> int:
        """How many partitions there are to be."""
        return self.spec.partitions if self.spec else 0

    @property
    def ready(self) -> int:
        """How many of them serve."""
        return self.total - len(self.sick)

    @property
    def updated(self) -> int:
        """How many pods are of the newest template."""
        body = self.observed.stateful_set or {}
        status = body.get("status") or {}
        seen = status.get("observedGeneration", 0) >= body.get("metadata", {}).get("generation", 0)
        return int(status.get("updatedReplicas", 0)) if seen else 0

    @property
    def availability(self) -> str:
        """Azure's word for it."""
        if not self.sick and self.total:
            return "Available"
        return "Limited" if self.ready else "Unavailable"


def stand(observed: Observed, spec: QueueSpec | None, refusal: Refusal | None, settings: str) -> Standing:
    """Look at every partition."""
    before = observed.queue.status if observed.queue else {}
    was_settled = _was_settled(observed)
    sick, unsettled = [], []
    total, counted = Counts(), 0
    for partition in range(spec.partitions if spec else 0):
        pod, report = observed.pods.get(partition), observed.reports.get(partition)
        trouble = _trouble(pod, report, observed)
        if trouble is not None:
            sick.append(Sick(partition, expected_pod(observed.key, partition), *trouble))
        if trouble is not None or (report.settings != settings if report is not None else not was_settled):
            unsettled.append(partition)
        if report is not None and report.totals is not None:
            total, counted = total + Counts.of(report.totals), counted + 1
    # As long as some have not been asked yet, since the operator has just begun, what was known is still the best.
    all_asked = all(n in observed.reports for n, pod in observed.pods.items() if pod.running)
    return Standing(
        observed=observed,
        spec=spec,
        refusal=refusal,
        settings=settings,
        sick=tuple(sick),
        unsettled=tuple(unsettled),
        counts=total if all_asked and counted else counts_in(before),
        counts_complete=_complete(counted, spec, before) if all_asked else before.get("countsComplete"),
        making=bool(sick) and condition_in(before, "Progressing").get("reason", "Creating") == "Creating",
        rolling=_rolling(observed),
        volumes_go=any(observed.queue is not None and observed.queue.uid in claim.queues for claim in observed.claims),
    )


def counts_in(status: Manifest) -> Counts:
    """The counts that a status tells: those that were last known, where nobody can be asked yet."""
    counts = status.get("counts") or {}
    return Counts(
        active=counts.get("active", 0),
        dead_letter=counts.get("deadLetter", 0),
        scheduled=counts.get("scheduled", 0),
        deferred=counts.get("deferred", 0),
        transfer=counts.get("transfer", 0),
        transfer_dead_letter=counts.get("transferDeadLetter", 0),
        sessions=counts.get("sessions", 0),
        messages=status.get("messages", 0),
        size_in_bytes=status.get("sizeInBytes", 0),
    )


def _was_settled(observed: Observed) -> bool:
    """Whether these very settings held before this operator began: brokers keep them, so that needs no proof again."""
    ready = condition_in(observed.queue.status, "Ready") if observed.queue else {}
    generation = observed.queue.generation if observed.queue else None
    return ready.get("status") == "True" and ready.get("observedGeneration") == generation


def condition_in(status: Manifest, kind: str) -> Manifest:
    """A condition that a status has; empty where it has none."""
    return next((c for c in status.get("conditions") or [] if c.get("type") == kind), {})


def _complete(counted: int, spec: QueueSpec | None, before: Manifest) -> bool | None:
    if not counted and "countsComplete" not in before:
        return None
    return spec is not None and counted == spec.partitions


def _trouble(pod: Pod | None, report: Report | None, observed: Observed) -> tuple[str, str] | None:
    if pod is None and (body := observed.stateful_set) is not None:  # a quota, or somebody's admission webhook
        return "PodMissing", f"there is no pod yet; if that lasts: kubectl describe sts {body['metadata']['name']}"
    if pod is None:
        return "PodMissing", "there is no pod yet"
    if not pod.ready:
        return pod.reason or "NotReady", pod.message or "the pod is not ready"
    if report is None or report.incarnation != pod.incarnation:
        return None  # not asked yet; its readiness probe succeeds
    return (report.trouble, report.message) if report.trouble else None


def _rolling(observed: Observed) -> bool:
    body = observed.stateful_set
    if body is None:
        return True
    status = body.get("status") or {}
    return status.get("observedGeneration", 0) < body["metadata"].get("generation", 0) or status.get(
        "updateRevision"
    ) != status.get("currentRevision")


def named(sick: Sequence[Sick]) -> str:
    """The sick partitions in words, the first few with their reasons."""
    words = [f"partition {s.partition} ({s.pod}): {s.reason}" + (f", {s.message}" if s.message else "") for s in sick]
    more = f"; and {len(words) - NAMED_MAX} more" if len(words) > NAMED_MAX else ""
    return "; ".join(words[:NAMED_MAX]) + more
