"""Puts NetworkPolicies in force on every node: watches what they speak of and loads rules anew when it changes."""

import http.client
import sys
import threading
import time
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final

from harness.cluster.addresses import NODES_MAX, Slot
from harness.cluster.api import Api, Object
from harness.cluster.node import Node
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
        self._cluster = cluster
        self._slot = slot
        self._known: dict[str, dict[str, Object]] = {path: {} for path in (_PODS, _NAMESPACES, _POLICIES)}
        self._lock = threading.Lock()
        self._changed = threading.Event()

    def serve(self) -> None:
        """Never returns."""
        for path in self._known:
            threading.Thread(target=self._follow, args=(path,), daemon=True).start()
        loaded: tuple[str, dict[Node, int]] = ("", {})
        while True:
            self._changed.wait(1.0)  # a node that came back is noticed without an event
            time.sleep(_TOGETHER_SECONDS)
            self._changed.clear()
            wanted = (ruleset(self._world(), self._slot), self._nodes())
            if wanted != loaded and (self._known[_POLICIES] or loaded[0]):
                outcomes = [_load(node, wanted[0]) for node in wanted[1]]
                if all(outcomes):  # else again, a second from now
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
        """Of pods those that have an address of the pod network: none that ended, nor a node's own or a simulated."""
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

    def _nodes(self) -> dict[Node, int]:
        """Those that run, each with what tells it from an earlier one of its name."""
        every = (Node(self._cluster, self._slot, number) for number in range(1, NODES_MAX + 1))
        return {node: Path(f"/run/netns/{node.address.netns}").stat().st_ino for node in every if node.running}


def _load(node: Node, rules: str) -> bool:
    """By the node's own nft: an older one of this machine's may fail on what kube-proxy's newer one has written."""
    try:
        done = node.run("nft", "-f", "-", input=rules)
    except AssertionError:  # the node is only just beginning
        return False
    if done.returncode:
        sys.stderr.write(f"{node.name}: {done.stderr}\n{rules}\n")
    return done.returncode == 0
