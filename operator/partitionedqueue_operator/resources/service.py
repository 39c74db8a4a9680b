"""The headless Service that gives the broker pods their names."""

from typing import Any

from partitionedqueue.model.placement import BROKER_PORT
from partitionedqueue_operator.resources.subject import Subject


def broker_service(subject: Subject) -> dict[str, Any]:
    """Names are there before the pods are ready: a client that waits for a partition need not ask the DNS anew."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": subject.metadata(),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": subject.selector,
            "ports": [{"name": "redis", "port": BROKER_PORT, "targetPort": "redis", "protocol": "TCP"}],
        },
    }
