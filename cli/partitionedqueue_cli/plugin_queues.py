"""PartitionedQueue objects as the API server has them: found, or said in words why not."""

from datetime import UTC, datetime
from typing import Any, TypeAlias

from partitionedqueue.model.queue_spec import API_VERSION, KIND, PLURAL
from partitionedqueue_cli.failures import CommandFailed, NoSuchQueue
from partitionedqueue_cli.plugin_api import ClusterApi, ClusterRefused

Json: TypeAlias = dict[str, Any]
_NOT_FOUND = 404
_PAGE = "500"


class NotInstalled(CommandFailed):
    """The cluster knows no PartitionedQueue."""


def one(api: ClusterApi, namespace: str, name: str) -> Json:
    """A queue. Raises NoSuchQueue, NotInstalled."""
    try:
        found: Json = api.get(f"/apis/{API_VERSION}/namespaces/{namespace}/{PLURAL}/{name}")
    except ClusterRefused as error:
        if error.status != _NOT_FOUND:
            raise
        if not isinstance(error.body, dict) or "name" not in error.body.get("details", {}):
            raise _not_installed() from error
        words = f"there is no queue {name} in namespace {namespace}; to see all of them: kubectl pq status -A"
        raise NoSuchQueue(words) from error
    return found


def every(api: ClusterApi, namespace: str | None) -> list[Json]:
    """The queues of a namespace, or of all of them, by name. Raises NotInstalled."""
    where = f"/namespaces/{namespace}" if namespace is not None else ""
    found: list[Json] = []
    parameters = {"limit": _PAGE}
    while True:
        try:
            page = api.get(f"/apis/{API_VERSION}{where}/{PLURAL}", parameters)
        except ClusterRefused as error:
            raise _not_installed() if error.status == _NOT_FOUND else error from error
        found += page["items"]
        if not page["metadata"].get("continue"):
            return sorted(found, key=lambda queue: (queue["metadata"]["namespace"], queue["metadata"]["name"]))
        parameters["continue"] = page["metadata"]["continue"]


def _not_installed() -> NotInstalled:
    return NotInstalled(f"this cluster knows no {KIND}; install the chart first: helm install, as docs/start shows")


def sick_partitions(queue: Json) -> dict[int, Json]:
    """Those that the operator names, by number; at most 16."""
    return {sick["partition"]: sick for sick in queue.get("status", {}).get("unavailablePartitions", ())}


def troubles(queue: Json) -> list[str]:
    """What a person should know of it, beyond its sick partitions."""
    status = queue.get("status")
    if not status:
        return ["the operator has not said anything about it yet; does it run?"]
    said = []
    if status.get("observedGeneration", 0) < queue["metadata"]["generation"]:
        said.append("the operator has not seen its last change yet")
    conditions = {condition["type"]: condition for condition in status.get("conditions", ())}
    for kind, words in (("Accepted", "not accepted"), ("Ready", "not ready")):
        condition = conditions.get(kind)
        is_said_already = bool(sick_partitions(queue)) and (condition or {}).get("reason") == "PartitionsUnavailable"
        if condition is not None and condition["status"] == "False" and not is_said_already:
            said.append(f"{words}: {condition['reason']}: {condition['message']}")
            break  # what is not accepted is not ready either
    unnamed = _partitions_missing(status) - len(sick_partitions(queue))
    if unnamed > 0 and sick_partitions(queue):
        said.append(f"{unnamed} more partitions do not serve")
    if status.get("countsComplete") is False:
        said.append("there may be more messages than it says: not every partition could be counted")
    return said


def _partitions_missing(status: Json) -> int:
    partitions = status.get("partitions", {})
    return int(partitions.get("total", 0)) - int(partitions.get("ready", 0))


def age(queue: Json) -> str:
    """How long ago it was made, as kubectl writes it."""
    made = datetime.fromisoformat(queue["metadata"]["creationTimestamp"])
    seconds = max(int((datetime.now(UTC) - made).total_seconds()), 0)
    for unit, length, until in (("s", 1, 120), ("m", 60, 7_200), ("h", 3_600, 172_800)):
        if seconds < until:
            return f"{seconds // length}{unit}"
    return f"{seconds // 86_400}d"
