"""Where the broker of a partition is."""

from dataclasses import dataclass
from typing import Self

from partitionedqueue.model.errors import PartitionedQueueError

BROKER_PORT = 6379
_PORT_MAX = 65_535


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


def pod_address(queue: str, partition: int, *, namespace: str) -> BrokerAddress:
    """The stable name of a broker pod: partition n is pod n of the queue's StatefulSet, under its headless Service."""
    return BrokerAddress(f"{queue}-{partition}.{queue}.{namespace}.svc", BROKER_PORT)
