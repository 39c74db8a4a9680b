"""Puts NetworkPolicies in force on every node: watches what they speak of, and loads the rules anew when that changes."""

import http.client
import subprocess
import sys
import threading
import time
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final

from harness.cluster.addresses import Slot
from harness.cluster.api import Api, Object
from harness.cluster.policies import World, ruleset

_PODS: Final = "/api/v1/pods"
_NAMESPACES: Final = "/api/v1/namespaces"
_POLICIES: Final = "/apis/networking.k8s.io/v1/networkpolicies"
_AGAIN_SECONDS: Final = 0.5
_TOGETHER_SECONDS: Final = 0.2  # changes come in crowds


class Enforcer:
    """Of one cluster."""

    def __init__(self, cluster: Path, slot: Slot) -> None:
        self._api = Api(cluster / "pki", slot)
        self._slot = slot
        self._known: dict[str, dict[str, Object]] = {path: {} for path in (_PODS, _NAMESPACES, _POLICIES)}
        self._lock = threading.Lock()
        self._changed = threading.Event()

    def serve(self) -> None:
        """Never returns."""
        for path in self._known:
            threading.Thread(target=self._follow, args=(path,), daemon=True).start()
        loaded: tuple[str, dict[str, int]] = ("", {})
        while True:
            self._changed.wait(1.0)  # a node that came back is noticed without an event
            time.sleep(_TOGETHER_SECONDS)
            self._changed.clear()
            wanted = (ruleset(self._world(), self._slot), self._nodes())
            if wanted != loaded and (self._known[_POLICIES] or loaded[0]):
                for netns in wanted[1]:
                    self._load(netns, wanted[0])
                loaded = wanted

    def _follow(self, path: str) -> None:
        while True:
            try:
                for kind, each in self._api.follow(path):
                    self._note(path, kind, each)
            except (OSError, http.client.HTTPException, ValueError) as error:
                sys.stderr.write(f"{path}: {error}\n")  # an API server that starts, or starts again
            time.sleep(_AGAIN_SECONDS)

    def _note(self, path: str, kind: str, each: Object) -> None:
        with self._lock:
            known = self._known[path]
            if kind == "LISTED":
                known.clear()
                known.update({item["metadata"]["uid"]: item for item in each["items"] if self._matters(path, item)})
            elif kind == "DELETED" or not self._matters(path, each):
                if known.pop(each["metadata"]["uid"], None) is None:
                    return
            else:
                known[each["metadata"]["uid"]] = each
        self._changed.set()

    def _matters(self, path: str, each: Object) -> bool:
        """Of pods those that have an address of the pod network: no finished ones, nor any of the node's or simulated."""
        if path != _PODS:
            return True
        status: dict[str, Any] = each.get("status", {})
        address = status.get("podIP")
        running = status.get("phase") not in {"Succeeded", "Failed"}
        return running and bool(address) and IPv4Address(address) in self._slot.pods

    def _world(self) -> World:
        with self._lock:
            namespaces = self._known[_NAMESPACES].values()
            return World(
                pods=tuple(self._known[_PODS].values()),
                labels_of_namespaces={
                    each["metadata"]["name"]: each["metadata"].get("labels", {}) for each in namespaces
                },
                policies=tuple(self._known[_POLICIES].values()),
            )

    def _nodes(self) -> dict[str, int]:
        """The nodes' network namespaces that there are, each with what tells it from an earlier one of its name."""
        found = {}
        for node in self._slot.nodes():
            path = Path(f"/run/netns/{node.netns}")
            if path.exists():
                found[node.netns] = path.stat().st_ino
        return found

    def _load(self, netns: str, rules: str) -> None:
        done = subprocess.run(
            ["nsenter", f"--net=/run/netns/{netns}", "nft", "-f", "-"],
            input=rules,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        if done.returncode:
            sys.stderr.write(f"{netns}: {done.stderr}\n{rules}\n")
