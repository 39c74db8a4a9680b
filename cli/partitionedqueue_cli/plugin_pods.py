"""What Kubernetes says of a queue's broker pods: where they run, and in words what keeps them from being ready."""

from dataclasses import dataclass
from typing import Any

from partitionedqueue.model import placement
from partitionedqueue_cli.plugin_api import ClusterApi, ClusterRefused
from partitionedqueue_cli.plugin_queues import Json

_WORDS_MAX = 300  # of what a container said last: its end says why it ended
_CONTAINER = "broker"


@dataclass(frozen=True, slots=True)
class Pod:
    """One broker pod. `reason` is one word, empty where it is ready."""

    node: str
    ready: bool
    reason: str
    message: str
    restarts: int


def of_queue(api: ClusterApi, namespace: str, name: str) -> dict[str, Pod] | str:
    """Its pods by name; or, in words, why they cannot be seen."""
    try:
        selector = f"{placement.QUEUE_LABEL}={name}"
        found = api.get(f"/api/v1/namespaces/{namespace}/pods", {"labelSelector": selector})
    except ClusterRefused as error:
        return f"the pods cannot be listed: {error}"
    return {pod["metadata"]["name"]: pod_of(pod) for pod in found["items"]}


def pod_of(manifest: Json) -> Pod:
    """A pod in a few words."""
    status = manifest.get("status", {})
    conditions = {one["type"]: one for one in status.get("conditions", ())}
    container: Json = next((one for one in status.get("containerStatuses", ()) if one["name"] == _CONTAINER), {})
    ready = conditions.get("Ready", {}).get("status") == "True" and "deletionTimestamp" not in manifest["metadata"]
    reason, message = ("", "") if ready else _why(manifest, conditions, container)
    node = manifest.get("spec", {}).get("nodeName", "-")
    return Pod(node, ready, reason, message, int(container.get("restartCount", 0)))


def _why(manifest: Json, conditions: dict[str, Json], container: dict[str, Any]) -> tuple[str, str]:
    if "deletionTimestamp" in manifest["metadata"]:
        return "Terminating", "the pod is being ended"
    state, status = container.get("state", {}), manifest.get("status", {})
    stopped = state.get("terminated") or container.get("lastState", {}).get("terminated")
    ended = _ended(stopped) if stopped else ""
    if waiting := state.get("waiting"):
        return waiting.get("reason", "Waiting"), "; ".join(one for one in (waiting.get("message", ""), ended) if one)
    if state.get("terminated"):
        return stopped.get("reason", "Terminated"), ended
    unplaced = conditions.get("PodScheduled", {})
    if unplaced.get("status") == "False":
        return unplaced.get("reason", "Unschedulable"), unplaced.get("message", "")
    if "running" in state:
        return "NotReady", "; ".join(one for one in ("its readiness probe says no", ended) if one)
    return status.get("reason", status.get("phase", "Unknown")), status.get("message", "")


def _ended(terminated: Json) -> str:
    how = f"signal {terminated['signal']}" if terminated.get("signal") else f"exit code {terminated.get('exitCode')}"
    last = " ".join(terminated.get("message", "").split())[-_WORDS_MAX:]
    return f"its last run ended with {how}" + (f": {last}" if last else "")
