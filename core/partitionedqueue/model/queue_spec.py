"""A PartitionedQueue, parsed once at the door: what comes back needs no further checking."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self

import yaml

from partitionedqueue.model import broker_pods, limits, placement, quantities
from partitionedqueue.model.broker_pods import BrokerPods, Storage
from partitionedqueue.model.errors import InvalidManifest
from partitionedqueue.model.manifest_fields import (
    Choice,
    Duration,
    EntityName,
    Field,
    Flag,
    Text,
    Whole,
    is_name,
    known,
    mapping,
    read_all,
)

GROUP: Final = "messaging.partitionedqueue.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "PartitionedQueue"
PLURAL: Final = "partitionedqueues"
_NAMESPACE: Final = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # RFC 1123, as Kubernetes has it


class PartitionLayout(StrEnum):
    """How many partitions `sizeGB` makes."""

    SIXTEEN_PER_GB = "SixteenPerGB"
    SIXTEEN = "Sixteen"


class Durability(StrEnum):
    """When a broker has its append-only file on disk."""

    ALWAYS = "Always"
    EVERY_SECOND = "EverySecond"
    NONE = "None"


class QueueStatus(StrEnum):
    """What a queue lets its clients do."""

    ACTIVE = "Active"
    DISABLED = "Disabled"
    SEND_DISABLED = "SendDisabled"
    RECEIVE_DISABLED = "ReceiveDisabled"


class DeletionPolicy(StrEnum):
    """What becomes of a deleted queue's messages."""

    RETAIN = "Retain"
    DELETE_IF_EMPTY = "DeleteIfEmpty"
    DELETE = "Delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSpec:
    """One queue as its owner wants it. Durations in ms, sizes in GB."""

    name: str
    namespace: str = "default"
    enable_partitioning: bool = False
    partition_layout: PartitionLayout = PartitionLayout.SIXTEEN_PER_GB
    size_gb: int = 1
    requires_session: bool = False
    requires_duplicate_detection: bool = False
    lock_duration_ms: int = limits.LOCK_DURATION_MS_DEFAULT
    max_delivery_count: int = limits.MAX_DELIVERY_COUNT_DEFAULT
    default_message_time_to_live_ms: int | None = None
    dead_lettering_on_message_expiration: bool = False
    duplicate_detection_history_time_window_ms: int = limits.DUPLICATE_DETECTION_WINDOW_MS_DEFAULT
    auto_delete_on_idle_ms: int | None = None
    forward_to: str | None = None
    forward_dead_lettered_messages_to: str | None = None
    status: QueueStatus = QueueStatus.ACTIVE
    user_metadata: str | None = None
    durability: Durability = Durability.ALWAYS
    deletion_policy: DeletionPolicy = DeletionPolicy.DELETE_IF_EMPTY
    broker: BrokerPods = field(default_factory=BrokerPods)
    storage: Storage = field(default_factory=Storage)

    @property
    def partitions(self) -> int:
        """How many broker pods hold it."""
        if not self.enable_partitioning:
            return 1
        per_gb = self.partition_layout is PartitionLayout.SIXTEEN_PER_GB
        return limits.PARTITIONS_PER_GB * (self.size_gb if per_gb else 1)

    @property
    def partition_gb(self) -> int:
        """What one partition holds."""
        per_gb = self.enable_partitioning and self.partition_layout is PartitionLayout.SIXTEEN_PER_GB
        return 1 if per_gb else self.size_gb

    @property
    def max_size_in_megabytes(self) -> int:
        """What Azure's clients are told."""
        return self.partitions * self.partition_gb * 1024

    @property
    def message_bytes_max(self) -> int:
        """How large a message may be, as stored (Azure's quotas)."""
        return limits.MESSAGE_BYTES_MAX if self.enable_partitioning else limits.MESSAGE_BYTES_MAX_CONVENTIONAL

    @property
    def volume_size(self) -> str:
        """The volume of one partition, as a quantity."""
        return self.storage.size or quantities.gibibytes(placement.volume_bytes(self.partition_gb))

    @classmethod
    def from_manifest(cls, manifest: object, *, source: str) -> Self:
        """Read a PartitionedQueue manifest, as `kubectl apply` would take it.

        `source` names it in errors. Raises InvalidManifest, in one sentence that says what to do.
        """
        try:
            return cls._read(manifest)
        except InvalidManifest as refusal:
            raise InvalidManifest(f"{source}: {refusal}") from refusal.__cause__

    @classmethod
    def _read(cls, manifest: object) -> Self:
        top = mapping("the manifest", manifest)
        known(top, ("apiVersion", "kind", "metadata", "spec", "status"), "")
        if top.get("apiVersion") != API_VERSION or top.get("kind") != KIND:
            raise InvalidManifest(f"this is no {KIND}; write apiVersion: {API_VERSION} and kind: {KIND}")
        metadata = mapping("metadata", top.get("metadata"))
        name, namespace = metadata.get("name"), metadata.get("namespace", "default")
        if not is_name(name):
            raise InvalidManifest(
                f"metadata.name is {name!r}; use up to {limits.QUEUE_NAME_CHARACTERS_MAX} lower-case letters, digits "
                "and '-', with a letter first and no '-' last, since the names of pods and of a Service are made of it"
            )
        if not isinstance(namespace, str) or not _NAMESPACE.fullmatch(namespace):
            raise InvalidManifest(f"metadata.namespace is {namespace!r}; use lower-case letters, digits and '-'")
        queue = cls(name=str(name), namespace=namespace, **read_all(FIELDS, "spec", top.get("spec")))
        queue._check()
        return queue

    def _check(self) -> None:
        """What concerns several fields."""
        sizes = limits.SIZES_GB_PARTITIONED if self.enable_partitioning else limits.SIZES_GB_CONVENTIONAL
        if self.size_gb not in sizes:
            kind = "a partitioned queue" if self.enable_partitioning else "a queue without partitions"
            raise InvalidManifest(f"spec.sizeGB is {self.size_gb}; {kind} has {', '.join(map(str, sizes))}")
        if self.requires_session and self.forward_to is not None:
            raise InvalidManifest("spec.forwardTo cannot be set where spec.requiresSession is true")
        for key, target in (
            ("forwardTo", self.forward_to),
            ("forwardDeadLetteredMessagesTo", self.forward_dead_lettered_messages_to),
        ):
            if target == self.name:
                raise InvalidManifest(f"spec.{key} is {target}; this is the queue itself; name another queue or topic")
        self._check_room()

    def _check_room(self) -> None:
        """A broker with less than its partition may grow to fails when it is full, and cannot read its data again."""
        if (quantities.amount(self.volume_size) or 0) < placement.volume_bytes_min(self.partition_gb):
            raise InvalidManifest(
                f"spec.storage.size is {self.storage.size}; a volume has at least 2Gi for each GB of its partition, "
                "since the partition's file is written anew beside the old one"
            )
        memory = self.broker.resources.limits.get("memory")
        if memory is not None and (quantities.amount(memory) or 0) < placement.maxmemory_bytes(self.partition_gb):
            raise InvalidManifest(
                f"spec.broker.resources has {memory}; limits.memory has at least 1280Mi for each GB of a partition, "
                "and 64Mi: it grows so large. Give more, or leave the limit out"
            )


FIELDS: Final[Mapping[str, tuple[str, Field]]] = {
    "enablePartitioning": ("enable_partitioning", Flag()),
    "partitionLayout": ("partition_layout", Choice(PartitionLayout)),
    "sizeGB": ("size_gb", Whole(1, max(limits.SIZES_GB_CONVENTIONAL))),
    "requiresSession": ("requires_session", Flag()),
    "requiresDuplicateDetection": ("requires_duplicate_detection", Flag()),
    "lockDuration": ("lock_duration_ms", Duration(limits.LOCK_DURATION_MS_MIN, limits.LOCK_DURATION_MS_MAX, "PT1M")),
    "maxDeliveryCount": ("max_delivery_count", Whole(limits.MAX_DELIVERY_COUNT_MIN, limits.MAX_DELIVERY_COUNT_MAX)),
    "defaultMessageTimeToLive": (
        "default_message_time_to_live_ms",
        Duration(limits.TIME_TO_LIVE_MS_MIN, limits.TIME_MS_MAX, "P14D"),
    ),
    "deadLetteringOnMessageExpiration": ("dead_lettering_on_message_expiration", Flag()),
    "duplicateDetectionHistoryTimeWindow": (
        "duplicate_detection_history_time_window_ms",
        Duration(limits.DUPLICATE_DETECTION_WINDOW_MS_MIN, limits.DUPLICATE_DETECTION_WINDOW_MS_MAX, "PT10M"),
    ),
    "autoDeleteOnIdle": (
        "auto_delete_on_idle_ms",
        Duration(limits.AUTO_DELETE_ON_IDLE_MS_MIN, limits.TIME_MS_MAX, "P1D"),
    ),
    "forwardTo": ("forward_to", EntityName()),
    "forwardDeadLetteredMessagesTo": ("forward_dead_lettered_messages_to", EntityName()),
    "status": ("status", Choice(QueueStatus)),
    "userMetadata": ("user_metadata", Text(limits.USER_METADATA_CHARACTERS_MAX)),
    "durability": ("durability", Choice(Durability)),
    "deletionPolicy": ("deletion_policy", Choice(DeletionPolicy)),
    "broker": ("broker", broker_pods.BROKER),
    "storage": ("storage", broker_pods.STORAGE),
}


def parse_manifests(text: str, *, source: str) -> list[QueueSpec]:
    """Read YAML of one or more manifests. Raises InvalidManifest; no two of them may have the same name."""
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        line = getattr(error, "problem_mark", None)
        where = f" at line {line.line + 1}" if line else ""
        raise InvalidManifest(
            f"{source}: this is no YAML{where}: {getattr(error, 'problem', None) or error}"
        ) from error
    if not documents:
        raise InvalidManifest(f"{source}: there is no manifest in it")
    specs = [QueueSpec.from_manifest(document, source=source) for document in documents]
    names = [spec.name for spec in specs]
    for name in names:
        if names.count(name) > 1:
            raise InvalidManifest(f"{source}: there are {names.count(name)} queues named {name}")
    return specs
