"""Nodes that kwok makes the API server believe in, for tests of scale.

Their pods become Ready at once and consist of nothing. Only pods that ask for it go there: with `SELECTOR` as their
nodeSelector and `TOLERATION` among their tolerations.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from harness.cluster import binaries
from harness.cluster.addresses import Slot
from harness.cluster.cluster import Cluster
from harness.cluster.machine import DIES_WITH_US
from harness.cluster.progress import timed

SELECTOR: Final = {"type": "kwok"}
TOLERATION: Final = {"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"}
_ANNOTATION: Final = "kwok.x-k8s.io/node"
_READY_SECONDS_MAX: Final = 60
_END_SECONDS_MAX: Final = 10.0


@contextmanager
def nodes(cluster: Cluster, slot: Slot, count: int) -> Iterator[None]:
    """`count` simulated nodes, gone at the end; their pods are the caller's to remove."""
    command = [
        *DIES_WITH_US,
        str(binaries.programs(binaries.KWOK) / "kwok"),
        f"--kubeconfig={cluster.kubeconfig}",
        f"--cidr={slot.simulated}",
        f"--node-ip={slot.simulated[-2]}",
        f"--config={Path(__file__).parent / 'files' / 'stages.yaml'}",
        "--node-lease-duration-seconds=40",  # renewed every ten; a node is missed after sixteen
        f"--manage-nodes-with-annotation-selector={_ANNOTATION}=fake",
    ]
    with cluster.kubeconfig.with_name("kwok.log").open("w") as log:
        kwok = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        with timed(f"simulating {count} nodes"):
            listed = {"apiVersion": "v1", "kind": "List", "items": [_node(number) for number in range(1, count + 1)]}
            cluster.kubectl("apply", "-f", "-", input=json.dumps(listed))
            cluster.kubectl(
                "wait", "--for=condition=Ready", "node", "-l", "type=kwok", f"--timeout={_READY_SECONDS_MAX}s"
            )
        yield
        cluster.kubectl("delete", "node", "-l", "type=kwok")
    finally:
        kwok.terminate()
        kwok.wait(_END_SECONDS_MAX)


def _node(number: int) -> dict[str, Any]:
    name = f"simulated-{number}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {_ANNOTATION: "fake"},
            "labels": {**SELECTOR, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
        },
        "spec": {"taints": [{"key": _ANNOTATION, "value": "fake", "effect": "NoSchedule"}]},
    }
