"""What the operator sees, as values: the reconciler decides upon nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple, Self

from partitionedqueue.broker.replies import Totals
from partitionedqueue.model import quantities
from partitionedqueue.model.placement import QUEUE_LABEL, pod_name
from partitionedqueue.model.queue_spec import KIND

Manifest = Mapping[str, Any]
GROUP: Final = "messaging.partitionedqueue.io"
OPERATOR: Final = "partitionedqueue-operator"
"""Field manager of all that is applied, and holder of the managed-by label."""
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
COMPONENT: Final = "app.kubernetes.io/component"
LAYOUT_LABEL: Final = f"{GROUP}/layout"
"""On volume claims: what their data was written as. A queue takes up only volumes of its own layout."""
PARTITION_GB_LABEL: Final = f"{GROUP}/partition-gb"
"""On volume claims: how many GB a partition has that was ever written there, which a broker must be able to read."""
APPLIED: Final = f"{GROUP}/applied"
"""A digest of what was applied last: tells what the operator itself has changed its mind about."""
PINNED: Final = f"{GROUP}/pinned"
"""On the StatefulSet: the pod template as it was made, and a digest of what in the queue asked for it."""
POLICY: Final = f"{GROUP}/deletion-policy"
"""On the StatefulSet: the policy that is carried out."""
QUEUE_UID: Final = f"{GROUP}/queue-uid"
RESTARTED_AT: Final = f"{GROUP}/restartedAt"
TORN_END: Final = f"{GROUP}/torn-end"
"""On a queue, by its owner: `cut` lets brokers cut off a write that a crash tore, whatever the durability."""
DURABILITY: Final = f"{GROUP}/durability"
MAXMEMORY: Final = f"{GROUP}/maxmemory"
"""On pods, both: what they were started with. Their ConfigMap may say something else by now."""


class Key(NamedTuple):
    """Which queue."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Queue:
    """A PartitionedQueue as the API server has it; its spec is not looked into yet."""

    key: Key
    uid: str
    generation: int
    created: str
    deleting: bool
    annotations: Mapping[str, str]
    spec: Manifest
    status: Manifest

    @classmethod
    def of(cls, body: Manifest) -> Self:
        """Read it from an event or a list."""
        metadata = body["metadata"]
        return cls(
            key=Key(metadata["namespace"], metadata["name"]),
            uid=metadata["uid"],
            generation=metadata.get("generation", 0),
            created=metadata.get("creationTimestamp", ""),
            deleting="deletionTimestamp" in metadata,
            annotations=dict(metadata.get("annotations") or {}),
            spec=dict(body.get("spec") or {}),
            status=dict(body.get("status") or {}),
        )

    @property
    def partitioned(self) -> bool:
        """Whether it counts towards the namespace's partitioned entities."""
        return self.spec.get("enablePartitioning") is True


@dataclass(frozen=True, slots=True)
class Pod:
    """A broker pod. `incarnation` changes with each start of its container."""

    name: str
    uid: str
    ip: str
    ready: bool
    deleting: bool
    incarnation: str
    reason: str = ""
    message: str = ""
    durability: str = ""  # that it was started with

    @property
    def partition(self) -> int:
        """Which partition it holds: its number in the StatefulSet."""
        return int(self.name.rpartition("-")[2])

    @property
    def running(self) -> bool:
        """Whether there is somebody to speak to."""
        return bool(self.incarnation and self.ip) and not self.deleting

    @classmethod
    def of(cls, body: Manifest) -> Self:
        """Read it from an event or a list."""
        metadata, status = body["metadata"], body.get("status") or {}
        container: Manifest = next(
            (c for c in status.get("containerStatuses") or [] if c.get("name") == BROKER_CONTAINER), {}
        )
        condition: Manifest = next((c for c in status.get("conditions") or [] if c.get("type") == "Ready"), {})
        reason, message = _trouble(body, status, container)
        running = (container.get("state") or {}).get("running") or {}
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            ip=status.get("podIP", ""),
            ready=condition.get("status") == "True" and "deletionTimestamp" not in metadata,
            deleting="deletionTimestamp" in metadata,
            incarnation=(container.get("containerID") or running.get("startedAt", "")) if running else "",
            reason=reason,
            message=message,
            durability=(metadata.get("annotations") or {}).get(DURABILITY, ""),
        )


BROKER_CONTAINER: Final = "broker"


def _trouble(body: Manifest, status: Manifest, container: Manifest) -> tuple[str, str]:
    """Why a pod is not ready, in Kubernetes' own words where it has any."""
    if "deletionTimestamp" in body["metadata"]:
        return "PodTerminating", "the pod is being deleted"
    state = container.get("state") or {}
    ended = (container.get("lastState") or {}).get("terminated") or state.get("terminated") or {}
    last = f"; it ended before with {ended.get('reason', 'an error')} (code {ended.get('exitCode')})" if ended else ""
    words = (ended.get("message") or "").strip()
    if waiting := state.get("waiting"):
        return waiting.get("reason", "ContainerWaiting"), (waiting.get("message") or words or "it does not run") + last
    if "terminated" in state:
        return state["terminated"].get("reason", "ContainerEnded"), words or f"its container has ended{last}"
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return condition.get("reason", "PodPending"), condition.get("message", "")
    if status.get("phase") == "Running":
        return "NotReady", f"its readiness probe does not succeed yet{last}"
    return "PodPending", status.get("message") or "its container has not started yet"


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim for a partition's volume."""

    name: str
    uid: str
    layout: str
    deleting: bool
    partition_gb: int = 0  # 0 where nobody knows
    size_bytes: int = 0  # that were asked for; 0 where nobody knows
    queues: tuple[str, ...] = ()  # uids of the queues that it goes with

    @classmethod
    def of(cls, body: Manifest) -> Self:
        """Read it from an event or a list."""
        metadata, labels = body["metadata"], body["metadata"].get("labels") or {}
        requests: Manifest = ((body.get("spec") or {}).get("resources") or {}).get("requests") or {}
        partition_gb = labels.get(PARTITION_GB_LABEL, "")
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            layout=labels.get(LAYOUT_LABEL, ""),
            deleting="deletionTimestamp" in metadata,
            partition_gb=int(partition_gb) if partition_gb.isascii() and partition_gb.isdigit() else 0,
            size_bytes=int(quantities.amount(str(requests.get("storage", ""))) or 0),
            queues=tuple(owner["uid"] for owner in metadata.get("ownerReferences") or [] if owner.get("kind") == KIND),
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What a broker said when it was spoken to last, or why it could not be.

    `settings` is the digest of the settings that it was given and has acknowledged. `trouble` is a reason in one word,
    '' where there is none.
    """

    incarnation: str
    trouble: str = ""
    message: str = ""
    totals: Totals | None = None
    library: str = ""
    settings: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """All about one queue, or about what one has left behind, at one moment."""

    key: Key
    now: datetime
    queue: Queue | None = None
    children: Mapping[tuple[str, str], Manifest] = field(default_factory=dict)  # by kind and name
    pods: Mapping[int, Pod] = field(default_factory=dict)  # by partition
    claims: tuple[Claim, ...] = ()
    reports: Mapping[int, Report] = field(default_factory=dict)  # by partition
    place: int = 0  # among the namespace's partitioned queues, the oldest first
    conflicts: tuple[str, ...] = ()  # objects of somebody else that have our names
    faults: tuple[str, ...] = ()  # what the API server refused at the last try
    alone_since: datetime | None = None  # since when what is left has no queue
    last_policy: str = ""  # the deletion policy that the queue had when it was deleted, where that was seen

    @property
    def stateful_set(self) -> Manifest | None:
        """The queue's StatefulSet, if there is one."""
        return self._child("StatefulSet")

    @property
    def secret(self) -> Manifest | None:
        """The Secret with its brokers' users, if there is one."""
        return self._child("Secret")

    def _child(self, wanted: str) -> Manifest | None:
        return next((body for (kind, _), body in self.children.items() if kind == wanted), None)


def queue_of(body: Manifest) -> Key | None:
    """The queue that an object belongs to, by its label."""
    metadata = body.get("metadata") or {}
    name = (metadata.get("labels") or {}).get(QUEUE_LABEL)
    return Key(metadata.get("namespace", ""), name) if name else None


def expected_pod(key: Key, partition: int) -> str:
    """The name of the pod that holds a partition."""
    return pod_name(key.name, partition)
