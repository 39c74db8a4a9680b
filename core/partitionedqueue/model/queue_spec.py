"""A PartitionedQueue, parsed once at the door: what comes back needs no further checking."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

import yaml

from partitionedqueue.model import durations, limits
from partitionedqueue.model.errors import InvalidManifest

API_VERSION: Final = "messaging.partitionedqueue.io/v1alpha1"
KIND: Final = "PartitionedQueue"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_NAME_CHARACTERS_MAX: Final = (
    52  # a StatefulSet's pods carry it as a label of 63 characters, with an ordinal and a hash
)


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

    @classmethod
    def from_manifest(cls, manifest: object, *, source: str) -> Self:
        """Read a PartitionedQueue manifest, as `kubectl apply` would take it.

        `source` names it in errors. Raises InvalidManifest, in one sentence that says what to do.
        """
        reader = _Reader(source)
        top = reader.mapping(manifest, "the manifest")
        reader.known(top, ("apiVersion", "kind", "metadata", "spec", "status"), "")
        if top.get("apiVersion") != API_VERSION or top.get("kind") != KIND:
            raise reader.error(f"this is no {KIND}; write apiVersion: {API_VERSION} and kind: {KIND}")
        metadata = reader.mapping(top.get("metadata"), "metadata")
        name = metadata.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _NAME_CHARACTERS_MAX:
            raise reader.error(
                f"metadata.name is {name!r}; use up to {_NAME_CHARACTERS_MAX} lower-case letters, digits and '-'"
            )
        namespace = metadata.get("namespace", "default")
        if not isinstance(namespace, str) or not _NAME.fullmatch(namespace):
            raise reader.error(f"metadata.namespace is {namespace!r}; use lower-case letters, digits and '-'")
        spec = reader.mapping(top.get("spec", {}), "spec")
        reader.known(spec, tuple(_FIELDS), "spec.")
        values = {
            name: read(reader, key, spec[key]) for key, (name, read) in _FIELDS.items() if spec.get(key) is not None
        }
        return cls(name=name, namespace=namespace, **values)._checked(reader)

    def _checked(self, reader: "_Reader") -> Self:
        sizes = limits.SIZES_GB_PARTITIONED if self.enable_partitioning else limits.SIZES_GB_CONVENTIONAL
        if self.size_gb not in sizes:
            kind = "a partitioned queue" if self.enable_partitioning else "a queue without partitions"
            raise reader.error(f"spec.sizeGB is {self.size_gb}; {kind} has {', '.join(map(str, sizes))}")
        if self.requires_session and self.forward_to is not None:
            raise reader.error("spec.forwardTo cannot be set where spec.requiresSession is true")
        return self


class _Reader:
    """Reads values of a manifest, and words the refusals."""

    def __init__(self, source: str) -> None:
        self.source = source

    def error(self, words: str) -> InvalidManifest:
        return InvalidManifest(f"{self.source}: {words}")

    def mapping(self, value: object, where: str) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise self.error(f"{where} must be a mapping of names to values")
        return value

    def known(self, value: Mapping[str, Any], names: tuple[str, ...], prefix: str) -> None:
        for name in value:
            if name not in names:
                raise self.error(f"unknown field {prefix}{name}; the fields are {', '.join(names)}")


def _flag(reader: _Reader, key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise reader.error(f"spec.{key} is {value!r}; write true or false")
    return value


def _text(reader: _Reader, key: str, value: object) -> str:
    most = limits.USER_METADATA_CHARACTERS_MAX
    if not isinstance(value, str) or len(value) > most:
        raise reader.error(f"spec.{key} must be text of at most {most} characters")
    return value


def _whole(lowest: int, highest: int) -> Any:
    def read(reader: _Reader, key: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            raise reader.error(f"spec.{key} is {value!r}; write a whole number from {lowest} to {highest}")
        return value

    return read


def _choice(kinds: type[StrEnum]) -> Any:
    def read(reader: _Reader, key: str, value: object) -> StrEnum:
        try:
            return kinds(str(value))
        except ValueError:
            raise reader.error(f"spec.{key} is {value!r}; it is one of {', '.join(kinds)}") from None

    return read


def _duration(lowest: int, highest: int, example: str) -> Any:
    def read(reader: _Reader, key: str, value: object) -> int:
        length = durations.milliseconds(value) if isinstance(value, str) else None
        if length is None or not lowest <= length <= highest:
            bounds = f"from {lowest / 1000:g} s" + (f" to {highest / 1000:g} s" if highest < limits.TIME_MS_MAX else "")
            raise reader.error(f"spec.{key} is {value!r}; write an ISO 8601 duration {bounds}, such as {example}")
        return length

    return read


_FIELDS: Final[Mapping[str, tuple[str, Any]]] = {
    "enablePartitioning": ("enable_partitioning", _flag),
    "partitionLayout": ("partition_layout", _choice(PartitionLayout)),
    "sizeGB": ("size_gb", _whole(1, max(limits.SIZES_GB_CONVENTIONAL))),
    "requiresSession": ("requires_session", _flag),
    "requiresDuplicateDetection": ("requires_duplicate_detection", _flag),
    "lockDuration": ("lock_duration_ms", _duration(limits.LOCK_DURATION_MS_MIN, limits.LOCK_DURATION_MS_MAX, "PT1M")),
    "maxDeliveryCount": ("max_delivery_count", _whole(limits.MAX_DELIVERY_COUNT_MIN, limits.MAX_DELIVERY_COUNT_MAX)),
    "defaultMessageTimeToLive": (
        "default_message_time_to_live_ms",
        _duration(limits.TIME_TO_LIVE_MS_MIN, limits.TIME_MS_MAX, "P14D"),
    ),
    "deadLetteringOnMessageExpiration": ("dead_lettering_on_message_expiration", _flag),
    "duplicateDetectionHistoryTimeWindow": (
        "duplicate_detection_history_time_window_ms",
        _duration(limits.DUPLICATE_DETECTION_WINDOW_MS_MIN, limits.DUPLICATE_DETECTION_WINDOW_MS_MAX, "PT10M"),
    ),
    "autoDeleteOnIdle": (
        "auto_delete_on_idle_ms",
        _duration(limits.AUTO_DELETE_ON_IDLE_MS_MIN, limits.TIME_MS_MAX, "P1D"),
    ),
    "forwardTo": ("forward_to", _text),
    "forwardDeadLetteredMessagesTo": ("forward_dead_lettered_messages_to", _text),
    "status": ("status", _choice(QueueStatus)),
    "userMetadata": ("user_metadata", _text),
    "durability": ("durability", _choice(Durability)),
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
