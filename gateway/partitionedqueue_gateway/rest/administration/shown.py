"""What clients are told of queues and of the namespace, property by property, in the order in which Azure has them."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from partitionedqueue.broker.counts import Counts
from partitionedqueue.model import durations
from partitionedqueue.model.queue_spec import QueueSpec
from partitionedqueue_gateway.entities.health import Availability, QueueReport
from partitionedqueue_gateway.entities.queue import Queue
from partitionedqueue_gateway.rest.administration.atom import Entry, Value
from partitionedqueue_gateway.rest.administration.queue_properties import FOR_EVER, QUEUE

NEVER: Final = "0001-01-01T00:00:00Z"
"""Azure's word for a time that is not known, .NET's DateTime.MinValue."""
_AVAILABILITY: Final = {
    Availability.AVAILABLE: "Available",
    Availability.LIMITED: "Limited",
    # SDKs know no word for it: their users look for what is not Available.
    Availability.UNAVAILABLE: "Limited",
    Availability.UNKNOWN: "Unknown",
}


def moment(ms: int) -> str:
    """A time since 1970; 0 is none."""
    if ms <= 0:
        return NEVER
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def path_of(queue: Queue, default_namespace: str) -> str:
    """What clients call a queue, so that it is found by that: a name of several parts stands behind its namespace."""
    title = queue.title or queue.spec.name
    if queue.spec.namespace == default_namespace and "/" not in title:
        return title
    return f"{queue.spec.namespace}/{title}"


def queue_entry(queue: Queue, report: QueueReport, default_namespace: str, host: str) -> Entry:
    """A queue as it is now, with what it holds; the report may be a second older."""
    path = path_of(queue, default_namespace)
    created, updated = moment(queue.created_ms), moment(queue.updated_ms)
    times = [("CreatedAt", created), ("UpdatedAt", updated), ("AccessedAt", NEVER)]
    return Entry(path, path, QUEUE, created, updated, [*_values(queue.spec, report, times, host)])


def _values(
    spec: QueueSpec, report: QueueReport, times: Sequence[tuple[str, str]], host: str
) -> Iterator[tuple[str, Value]]:
    counts = report.counts
    yield "LockDuration", durations.text(spec.lock_duration_ms)
    yield "MaxSizeInMegabytes", str(spec.max_size_in_megabytes)
    yield "RequiresDuplicateDetection", _flag(spec.requires_duplicate_detection)
    yield "RequiresSession", _flag(spec.requires_session)
    yield "DefaultMessageTimeToLive", _duration(spec.default_message_time_to_live_ms)
    yield "DeadLetteringOnMessageExpiration", _flag(spec.dead_lettering_on_message_expiration)
    yield "DuplicateDetectionHistoryTimeWindow", durations.text(spec.duplicate_detection_history_time_window_ms)
    yield "MaxDeliveryCount", str(spec.max_delivery_count)
    yield "EnableBatchedOperations", "true"
    yield "SizeInBytes", str(counts.size_in_bytes)
    yield "MessageCount", str(counts.messages)
    yield "IsAnonymousAccessible", "false"
    yield "AuthorizationRules", ""
    yield "Status", spec.status.value
    yield from times
    yield "SupportOrdering", "true"
    yield "CountDetails", _counts(counts)
    yield "AutoDeleteOnIdle", _duration(spec.auto_delete_on_idle_ms)
    yield "EnablePartitioning", _flag(spec.enable_partitioning)
    yield "EntityAvailabilityStatus", _AVAILABILITY[report.availability]
    yield "EnableExpress", "false"
    if spec.forward_to is not None:
        yield "ForwardTo", f"https://{host}/{spec.forward_to}"
    if spec.user_metadata is not None:
        yield "UserMetadata", spec.user_metadata
    if spec.forward_dead_lettered_messages_to is not None:
        yield "ForwardDeadLetteredMessagesTo", f"https://{host}/{spec.forward_dead_lettered_messages_to}"
    yield "MaxMessageSizeInKilobytes", str(spec.message_bytes_max // 1024)


def _counts(counts: Counts) -> Sequence[tuple[str, str]]:
    return [
        ("ActiveMessageCount", str(counts.active)),
        ("DeadLetterMessageCount", str(counts.dead_letter)),
        ("ScheduledMessageCount", str(counts.scheduled)),
        ("TransferMessageCount", str(counts.transfer)),
        ("TransferDeadLetterMessageCount", str(counts.transfer_dead_letter)),
    ]


def namespace_entry(name: str, created_ms: int) -> Entry:
    """The namespace; clients of Azure read its size from the SKU, so it has the one without messaging units."""
    created = moment(created_ms)
    values = [
        ("CreatedTime", created),
        ("MessagingSKU", "Standard"),
        ("MessagingUnits", "0"),
        ("ModifiedTime", created),
        ("Name", name),
        ("NamespaceType", "Messaging"),
    ]
    return Entry("$namespaceinfo", name, "NamespaceInfo", created, created, values)


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _duration(length_ms: int | None) -> str:
    return FOR_EVER if length_ms is None else durations.text(length_ms)
