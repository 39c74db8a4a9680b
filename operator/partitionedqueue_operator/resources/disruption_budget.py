"""The PodDisruptionBudget: a drained node takes one partition away at a time."""

from typing import Any

from partitionedqueue_operator.resources.subject import Subject


def broker_disruption_budget(subject: Subject) -> dict[str, Any]:
    """A pod that is not ready anyway may go: a node must not be held by a broker that cannot start."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": subject.metadata(),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": subject.selector},
        },
    }
