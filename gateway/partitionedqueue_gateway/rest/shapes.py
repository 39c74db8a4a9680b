"""Reports as JSON: names and meanings are those of the custom resource's status (docs/reference/gateway-http.md)."""

from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from partitionedqueue.broker.counts import Counts
from partitionedqueue.broker.replies import About, Totals
from partitionedqueue.model.placement import BrokerAddress
from partitionedqueue_gateway.entities.health import PartitionReport, QueueReport, Sickness

Json: TypeAlias = dict[str, Any]
SICK_LISTED_MAX: Final = 16
"""As in the custom resource; how many there are is to be seen from `partitions`."""


def queue(report: QueueReport) -> Json:
    """How a queue stands. Where it was not heard out, there are no counts."""
    name = report.queue.name
    shape: Json = {
        "namespace": name.namespace,
        "name": name.name,
        "availability": report.availability.value,
        "partitions": {"total": report.queue.spec.partitions, "ready": len(report.totals)},
        "unavailablePartitions": [
            sick_partition(number, report.partitions[number].pod, why)
            for number, why in [*report.sick.items()][:SICK_LISTED_MAX]
        ],
        "maxSizeInMegabytes": report.queue.spec.max_size_in_megabytes,
    }
    if report.known:
        counts = report.counts
        shape |= {
            "counts": counts_by_state(counts),
            "messages": counts.messages,
            "countsComplete": not report.sick,
            "sizeInBytes": counts.size_in_bytes,
            "countsObservedAt": _moment(report.observed_ms),
        }
    if report.queue.held_back is not None:
        shape["notAccepted"] = report.queue.held_back
    return shape


def partition(number: int, report: PartitionReport, address: BrokerAddress, about: About | None) -> Json:
    """How one partition stands, and which library it runs."""
    shape: Json = {"partition": number, "pod": report.pod, "address": str(address), "up": False}
    if about is not None:
        shape |= {"libraryVersion": about.library, "layout": about.layout}
    if isinstance(report.found, Sickness):
        return shape | {"reason": report.found.reason.value, "message": report.found.message}
    found: Totals = report.found
    counts = Counts.of(found)
    return shape | {
        "up": True,
        "counts": counts_by_state(counts),
        "messages": counts.messages,
        "locked": found.locked + found.claimed,
        "sizeInBytes": counts.size_in_bytes,
        "quotaInBytes": found.quota,
        "lastSequenceNumber": found.last,
    }


def sick_partition(number: int, pod: str, why: Sickness) -> Json:
    """One of `unavailablePartitions`."""
    return {"partition": number, "pod": pod, "reason": why.reason.value, "message": why.message}


def counts_by_state(counts: Counts) -> Json:
    """Messages by where they are, and sessions."""
    return {**counts.by_state(), "sessions": counts.sessions}


def error(reason: str, message: str) -> Json:
    """Why a request was not answered."""
    return {"error": {"reason": reason, "message": message}}


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
