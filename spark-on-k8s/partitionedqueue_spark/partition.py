"""What a task is sent: plain values, pickled by Spark."""

from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from partitionedqueue.broker.replies import Totals
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.placement import BrokerAddress


class PartitionUnreadable(PartitionedQueueError):
    """A partition could not be read; which, and why."""


class ClaimsLost(PartitionedQueueError):
    """Messages that this query had claimed were given back to the queue."""


@dataclass
class BrowsedPartition(InputPartition):
    """All messages of a partition up to its own sequence number `last`."""

    partition: int
    address: BrokerAddress
    last: int


@dataclass
class ClaimedPartition(InputPartition):
    """Ordinals start..end-1 of a group's claim log."""

    partition: int
    address: BrokerAddress
    group: str
    start: int
    end: int


def unreadable(partition: int, error: PartitionedQueueError) -> PartitionUnreadable:
    """The error, with the partition's number in front."""
    return PartitionUnreadable(f"partition {partition}: {error}")


def in_its_place(totals: Totals, queue: str, partition: int, partitions: int) -> Totals:
    """The same totals, if they are those of this partition of this queue. Raises PartitionUnreadable."""
    if totals.partitions == 0:
        raise PartitionUnreadable(f"partition {partition}: there is no queue {queue} in this broker")
    if (totals.partition, totals.partitions) != (partition, partitions):
        raise PartitionUnreadable(
            f"partition {partition}: this broker holds partition {totals.partition} of {totals.partitions}, and it was "
            f"given as number {partition} of {partitions}; give all brokers of queue {queue}, in partition order"
        )
    return totals


def claims_lost(partition: int, group: str, first: int, last: int) -> ClaimsLost:
    """The sentence for lost claims: ordinals first..last-1."""
    return ClaimsLost(
        f"LOCK_LOST partition {partition}: claims [{first}, {last}) of group {group} were given back to the queue: "
        "nobody renewed their lease (option claimTimeout) and another consumer asked; with failOnLockLost set to "
        "false the query goes on, and whoever receives them next has them a second time"
    )
