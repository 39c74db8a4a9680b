"""The ConfigMap with what a broker's start.sh is told by its environment."""

from typing import Any

from partitionedqueue.model.placement import maxmemory_bytes
from partitionedqueue.model.queue_spec import Durability
from partitionedqueue_operator.observed import TORN_END
from partitionedqueue_operator.resources.subject import Subject


def broker_config_map(subject: Subject) -> dict[str, Any]:
    """Read when a broker starts; what needs a new start changes the pod template as well."""
    # With Always nothing that was acknowledged can be in a torn end: it is cut off, and kept beside. Otherwise it may
    # hold a second's worth that a person should know of, and decide.
    cut = subject.spec.durability is Durability.ALWAYS or subject.queue.annotations.get(TORN_END) == "cut"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": subject.metadata(),
        "data": {
            "PQ_BIND": "* -::*",
            "PQ_DURABILITY": subject.spec.durability.value,
            "PQ_MAXMEMORY": str(maxmemory_bytes(subject.spec.partition_gb)),
            "PQ_START_SECONDS_MAX": str(start_seconds_max(subject.spec.partition_gb)),
            "PQ_TORN_END": "cut" if cut else "refuse",
        },
    }


def start_seconds_max(partition_gb: int) -> int:
    """How long a broker may read its files: a slow volume gives some 10 MB a second."""
    return 600 + 120 * partition_gb
