"""Where the broker of a partition is, and what the objects around it are called."""

from dataclasses import dataclass
from typing import Final, Self

from partitionedqueue.model.errors import PartitionedQueueError

BROKER_PORT: Final = 6379
_PORT_MAX: Final = 65_535
QUEUE_LABEL: Final = "messaging.partitionedqueue.io/queue"
"""On everything that belongs to a queue; its value is the queue's name."""
BROKER_CLIENT_LABEL: Final = "messaging.partitionedqueue.io/broker-client"
"""On pods of anybody's that may reach brokers, with the value "true"."""


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """A host name or address, and a TCP port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read "host:port"; raises PartitionedQueueError where it is not that."""
        host, _, port = text.strip().rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) <= _PORT_MAX:
            raise PartitionedQueueError(f"'{text}' is no broker address; write it as host:port")
        return cls(host.strip("[]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def maxmemory_bytes(partition_gb: int) -> int:
    """The memory that a broker's redis-server may use: room above the quota for its structures, buffers and replies."""
    quota = partition_gb * 2**30
    return quota + quota // 4 + 64 * 2**20


def volume_bytes(partition_gb: int) -> int:
    """The volume that a broker is given where its queue names no size.

    Redis rewrites its append-only file when that has doubled, and keeps the old one until the new one is whole: three
    times what the partition holds, and what is written meanwhile.
    """
    return 4 * partition_gb * 2**30


def volume_bytes_min(partition_gb: int) -> int:
    """Less, and a full partition could never be rewritten: the old file and the new one side by side."""
    return 2 * partition_gb * 2**30


def broker_name(queue: str) -> str:
    """The StatefulSet of a queue's brokers; its ConfigMap, PodDisruptionBudget and NetworkPolicy are called alike.

    Not plainly the queue's name: a Service `orders` may well be its owner's own.
    """
    return f"{queue}-broker"


def service_name(queue: str) -> str:
    """The headless Service that gives the broker pods their names."""
    return broker_name(queue)


def secret_name(queue: str) -> str:
    """The Secret with the brokers' users and their passwords."""
    return broker_name(queue)


def pod_name(queue: str, partition: int) -> str:
    """Partition n is pod n of the StatefulSet."""
    return f"{broker_name(queue)}-{partition}"


def volume_claim_name(queue: str, partition: int) -> str:
    """The claim that a partition's data is in."""
    return f"data-{pod_name(queue, partition)}"


def pod_address(queue: str, partition: int, *, namespace: str) -> BrokerAddress:
    """The stable name of a broker pod, under its headless Service."""
    return BrokerAddress(f"{pod_name(queue, partition)}.{service_name(queue)}.{namespace}.svc", BROKER_PORT)
