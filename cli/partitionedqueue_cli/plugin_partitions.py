"""`kubectl pq partitions`: each partition of a queue, as a gateway, the pods and the operator see it."""

import argparse
import json
import sys
from dataclasses import dataclass, field
from typing import Any, Final

from partitionedqueue.model import placement
from partitionedqueue.model.errors import InvalidManifest
from partitionedqueue.model.queue_spec import QueueSpec
from partitionedqueue_cli import plugin_gateway, plugin_pods, plugin_queues
from partitionedqueue_cli.plugin_api import ClusterApi
from partitionedqueue_cli.plugin_pods import Pod
from partitionedqueue_cli.plugin_queues import Json
from partitionedqueue_cli.plugin_status import words_of
from partitionedqueue_cli.tables import print_table

_COUNTS: Final = ("active", "deadLetter", "scheduled", "deferred")
_FOLLOWS: Final = "Unreachable"  # from a pod that is not there or not ready: nothing new
_HEADINGS: Final = (
    *("PARTITION", "POD", "NODE", "READY", "REASON"),
    *("ACTIVE", "DEAD-LETTERS", "SCHEDULED", "DEFERRED", "BYTES", "LIBRARY"),
)


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: what a gateway says of it, if one was asked; its pod, if it is seen; the operator's words."""

    number: int
    pod_name: str
    gateway: Json | None
    pod: Pod | None
    sick: Json | None
    pods_are_seen: bool

    @property
    def faults(self) -> list[Json]:
        """Why it does not serve, by whoever says so: the pod first, as it mostly is the cause."""
        found: list[Json] = []
        if self.pod is not None and not self.pod.ready:
            found.append({"reason": self.pod.reason, "message": self.pod.message})
        elif self.pod is None and self.pods_are_seen:
            found.append({"reason": "PodMissing", "message": "there is no such pod"})
        if self.gateway is not None and not self.gateway["up"] and not (found and self.gateway["reason"] == _FOLLOWS):
            found.append({"reason": self.gateway["reason"], "message": self.gateway["message"]})
        if self.sick is not None and not found and self.gateway is None:
            found.append(self.sick)
        return found

    def row(self) -> tuple[str, ...]:
        """As in the table."""
        gateway, faults = self.gateway or {}, self.faults
        counts: dict[str, Any] = gateway.get("counts", {})
        figures = (*(counts.get(name) for name in _COUNTS), gateway.get("sizeInBytes"), gateway.get("libraryVersion"))
        return (
            *(str(self.number), self.pod_name, self.pod.node if self.pod is not None else "-"),
            *("no" if faults else "yes", str(faults[0].get("reason", "-")) if faults else ""),
            *("-" if figure is None else str(figure) for figure in figures),
        )

    def as_json(self) -> Json:
        """For programs."""
        shape: Json = {"partition": self.number, "pod": self.pod_name, "ready": not self.faults}
        if self.pod is not None:
            shape |= {"node": self.pod.node, "restarts": self.pod.restarts}
        if self.faults:
            shape["faults"] = self.faults
        known = ("counts", "messages", "locked", "sizeInBytes", "quotaInBytes", "libraryVersion", "lastSequenceNumber")
        return shape | {name: self.gateway[name] for name in known if self.gateway and name in self.gateway}


@dataclass(frozen=True, slots=True)
class Found:
    """All partitions of a queue, and in words what could not be had."""

    queue: Json
    partitions: list[Partition]
    counts_from: str | None
    notes: list[str] = field(default_factory=list)


def partitions(api: ClusterApi, namespace: str, arguments: argparse.Namespace) -> int:
    """Print a table, and what is wrong with which partition; 0 where all serve, 1 otherwise."""
    found = _find(api, namespace, arguments.name, arguments.gateway)
    if arguments.json:
        shape = {
            "namespace": namespace,
            "name": arguments.name,
            "availability": found.queue.get("status", {}).get("availability"),
            "countsFrom": found.counts_from,
            "notes": found.notes,
            "partitions": [one.as_json() for one in found.partitions],
        }
        print(json.dumps(shape, indent=1))
    else:
        print_table([_HEADINGS, *(one.row() for one in found.partitions)])
        for one in found.partitions:
            for fault in one.faults:
                print(f"{arguments.name}: partition {one.number} ({one.pod_name}) does not serve: {words_of(fault)}")
        for words in plugin_queues.troubles(found.queue):
            print(f"{arguments.name}: {words}")
        for note in found.notes:
            print(f"kubectl pq: {note}", file=sys.stderr)
    return 1 if not found.partitions or any(one.faults for one in found.partitions) else 0


def _find(api: ClusterApi, namespace: str, name: str, service: tuple[str, str] | None) -> Found:
    queue = plugin_queues.one(api, namespace, name)
    pods = plugin_pods.of_queue(api, namespace, name)
    answer = plugin_gateway.ask(api, namespace, name, service)
    asked = {one["partition"]: one for one in (answer.queue or {}).get("eachPartition", ())}
    sick = plugin_queues.sick_partitions(queue)
    notes = [pods] if isinstance(pods, str) else []
    if answer.queue is None:
        notes.append(
            f"no counts by partition, as {answer.words}; the rest is what the pods and the operator's status say"
        )
    each = []
    for number in range(_how_many(queue)):
        pod_name = placement.pod_name(name, number)
        seen = {} if isinstance(pods, str) else pods
        each.append(Partition(number, pod_name, asked.get(number), seen.get(pod_name), sick.get(number), seen is pods))
    return Found(queue, each, answer.words if answer.queue is not None else None, notes)


def _how_many(queue: Json) -> int:
    try:
        return QueueSpec.from_manifest(queue, source=queue["metadata"]["name"]).partitions
    except InvalidManifest:  # of a later version: its operator knows
        return int(queue.get("status", {}).get("partitions", {}).get("total", 0))
