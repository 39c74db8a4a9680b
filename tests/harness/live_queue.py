"""A queue on a cluster, as its owner sees it with kubectl, and its brokers, dialled by their pods' addresses."""

import base64
import contextlib
import json
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from harness.cluster.cluster import Cluster, CommandFailed, program
from harness.patience import eventually
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Totals
from partitionedqueue.model.message import Message
from partitionedqueue.model.placement import BROKER_PORT, BrokerAddress, broker_name, pod_name, secret_name
from partitionedqueue.model.queue_spec import API_VERSION, KIND
from partitionedqueue.model.stored_message import encode

PARTITIONED = {"enablePartitioning": True}
SMALL = {"broker": {"resources": {"requests": {"cpu": "5m", "memory": "16Mi"}}}}


class Told:
    """What a watch has brought: statuses, and when they came (time.monotonic)."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.statuses: list[tuple[float, dict[str, Any]]] = []
        self._process = process
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        words = ""
        for line in self._process.stdout:
            words += line
            if line == "}\n":
                self.statuses.append((time.monotonic(), json.loads(words).get("status") or {}))
                words = ""

    def first(self, since: float, availability: str, seconds: float = 30) -> tuple[float, dict[str, Any]]:
        """Seconds after `since` when it first stood so, and its status then."""

        def found() -> tuple[float, dict[str, Any]] | None:
            later = ((at - since, status) for at, status in list(self.statuses) if at > since)
            return next((one for one in later if one[1].get("availability") == availability), None)

        after_s, status = eventually(found, f"it was never {availability}: {self.statuses[-1]}", seconds)
        return float(after_s), dict(status)


class LiveQueue:
    """One queue by name."""

    def __init__(self, cluster: Cluster, namespace: str, name: str = "orders") -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.name = name
        self.keys = QueueKeys(name)

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        return self.cluster.kubectl("-n", self.namespace, *arguments, input=input)

    def apply(self, **spec: Any) -> None:
        """As its owner would."""
        metadata = {"name": self.name, "namespace": self.namespace}
        manifest = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": {**SMALL, **spec}}
        self.kubectl("apply", "-f", "-", input=json.dumps(manifest))

    def delete(self) -> None:
        self.kubectl("delete", "pq", self.name, "--wait=false")

    def get(self, kind: str = "pq", name: str | None = None) -> dict[str, Any]:
        """An object as it is; empty where there is none."""
        found = self.kubectl("get", kind, name or self.name, "-o", "json", "--ignore-not-found")
        return dict(json.loads(found)) if found else {}

    @property
    def status(self) -> dict[str, Any]:
        return dict(self.get().get("status") or {})

    def condition(self, kind: str) -> dict[str, Any]:
        """One of its conditions; empty where it has none."""
        return next((c for c in self.status.get("conditions", []) if c["type"] == kind), {})

    def settled(self, seconds: float = 120) -> dict[str, Any]:
        """Wait until its newest spec holds in every partition; its status then."""

        def settled() -> dict[str, Any] | None:
            queue = self.get()
            status = queue.get("status") or {}
            ready: dict[str, Any] = next((c for c in status.get("conditions", []) if c["type"] == "Ready"), {})
            newest = ready.get("observedGeneration") == queue["metadata"]["generation"]
            return status if newest and ready.get("status") == "True" else None

        return dict(eventually(settled, f"{self.name} is not ready: {self.status}", seconds))

    def awaited(self, kind: str, reason: str, seconds: float = 30) -> dict[str, Any]:
        """Wait for a condition with that reason."""

        def found() -> dict[str, Any] | None:
            condition = self.condition(kind)
            return condition if condition.get("reason") == reason else None

        return dict(eventually(found, f"{kind} has not become {reason}: {self.status}", seconds))

    @contextlib.contextmanager
    def watched(self) -> Iterator["Told"]:
        """All that is written into its status meanwhile."""
        command = [program("kubectl"), "-n", self.namespace, "get", "pq", self.name, "--watch", "-o", "json"]
        with subprocess.Popen(command, env=self.cluster.environment, stdout=subprocess.PIPE, text=True) as process:
            told = Told(process)
            eventually(lambda: told.statuses, "kubectl does not watch", 20)
            try:
                yield told
            finally:
                process.kill()

    # ---- its objects

    def pods(self) -> list[dict[str, Any]]:
        found = self.kubectl("get", "pods", "-l", f"messaging.partitionedqueue.io/queue={self.name}", "-o", "json")
        return list(json.loads(found)["items"])

    def claims(self) -> list[str]:
        label = f"messaging.partitionedqueue.io/queue={self.name}"
        return self.kubectl("get", "pvc", "-l", label, "-o", "name").split()

    def events(self, reason: str) -> list[str]:
        """The messages of its Events with that reason."""
        found = self.kubectl("get", "events", "--field-selector", f"reason={reason},involvedObject.name={self.name}",
                             "-o", "json")  # fmt: skip
        return [item["message"] for item in json.loads(found)["items"]]

    def kill_broker(self, partition: int) -> None:
        """kill -9 of what runs in the container; the kubelet starts it anew."""
        script = "for p in /proc/[0-9]*; do grep -q -- -server $p/comm && kill -9 ${p#/proc/}; done; true"
        with contextlib.suppress(CommandFailed):  # the container may end before kubectl has heard of it
            self.kubectl("exec", pod_name(self.name, partition), "--", "sh", "-c", script)

    # ---- its brokers

    def password(self, user: str) -> str:
        data = self.get("secret", secret_name(self.name))["data"]
        return base64.b64decode(data[f"{user}-password"]).decode()

    def broker(self, partition: int, user: str = "gateway") -> BlockingBroker:
        """A connection to one partition's broker, as a program would have it."""
        pod = self.get("pod", pod_name(self.name, partition))
        address = BrokerAddress(pod["status"]["podIP"], BROKER_PORT)
        return BlockingBroker(address, patience_s=30, username=user, password=self.password(user))

    def send(self, partition: int, bodies: Sequence[str]) -> None:
        """Send to one partition; returns when all are acknowledged."""
        with self.broker(partition) as broker:
            broker.call(calls.send(self.keys, [encode(Message(body=body.encode())) for body in bodies], sender="t",
                                   number=1))  # fmt: skip

    def totals(self, partition: int) -> Totals:
        with self.broker(partition) as broker:
            return broker.call(calls.totals(self.keys))

    def settings(self, partition: int) -> tuple[int, int]:
        """Lock duration in ms and maxDeliveryCount that a broker has been told, read past the library."""
        with self.broker(partition, "default") as broker:
            packed = broker.call(calls.Call(("HGET", self.keys.state, "config"), bytes))
        lock_ms, max_deliveries = struct.unpack_from("<IH", packed)
        return int(lock_ms), int(max_deliveries)

    @property
    def workload(self) -> str:
        return broker_name(self.name)
