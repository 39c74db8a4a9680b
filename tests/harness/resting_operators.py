"""Operators that a chart has installed stand still for a while: two acting on the same queues would fight over them."""

from typing import Final

from harness.cluster.cluster import Cluster

_OPERATORS: Final = "app.kubernetes.io/name=partitionedqueue,app.kubernetes.io/component=operator"
_WHERE: Final = "{range .items[*]}{.metadata.namespace} {.metadata.name} {.spec.replicas}{'\\n'}{end}"


class RestingOperators:
    """None runs from here on until `wake`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        found = cluster.kubectl("get", "deployments", "-A", "-l", _OPERATORS, "-o", f"jsonpath={_WHERE}")
        self._deployments = [line.split() for line in found.splitlines()]
        for namespace, name, _ in self._deployments:
            self._scale(namespace, name, "0")
            cluster.kubectl("wait", "pods", "-n", namespace, "-l", _OPERATORS, "--for=delete", "--timeout=60s")

    def wake(self) -> None:
        """Those that were there before go on."""
        for namespace, name, replicas in self._deployments:
            self._scale(namespace, name, replicas)

    def _scale(self, namespace: str, name: str, replicas: str) -> None:
        self._cluster.kubectl("scale", "deployment", name, "-n", namespace, f"--replicas={replicas}")
