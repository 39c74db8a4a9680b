"""What a task is sent: plain values, pickled by Spark."""

from dataclasses import dataclass, replace
from itertools import pairwise

from pyspark.sql.datasource import InputPartition

from partitionedqueue.broker.replies import Totals
from partitionedqueue.model import limits
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.placement import BrokerAddress
from partitionedqueue_spark.pushdown import Wanted


class PartitionUnreadable(PartitionedQueueError):
    """A partition could not be read; which, and why."""


class ClaimsLost(PartitionedQueueError):
    """Messages that this query had claimed were given back to the queue."""


@dataclass
class BrowsedPartition(InputPartition):
    """Messages of a partition that are wanted, up to its own sequence number `last`."""

    partition: int
    address: BrokerAddress
    last: int
    wanted: Wanted


@dataclass
class ReceivedPartition(InputPartition):
    """Whatever a partition gives first, so many messages at most."""

    partition: int
    address: BrokerAddress
    most: int


@dataclass
class ClaimedPartition(InputPartition):
    """Ordinals start..end-1 of a group's claim log."""

    partition: int
    address: BrokerAddress
    group: str
    start: int
    end: int


def browsed_in_tasks(whole: BrowsedPartition, messages: int, most: int) -> list[BrowsedPartition]:
    """A partition cut into up to `most` tasks of as many sequence numbers each."""
    numbers = whole.wanted.numbers
    low, high = numbers.low, min(numbers.high, whole.last)
    tasks = max(1, min(most, messages // limits.SEGMENT_MESSAGES, (high - low) // limits.SEGMENT_MESSAGES))
    bounds = [low + (high - low + 1) * n // tasks for n in range(tasks)] + [high + 1]
    return [
        replace(whole, last=stop - 1, wanted=replace(whole.wanted, numbers=replace(numbers, low=start)))
        for start, stop in pairwise(bounds)
    ]


def claimed_in_tasks(whole: ClaimedPartition, most: int) -> list[ClaimedPartition]:
    """A range of a claim log cut into up to `most` tasks."""
    count = whole.end - whole.start
    tasks = max(1, min(most, count // limits.SEGMENT_MESSAGES))
    bounds = [whole.start + count * n // tasks for n in range(tasks + 1)]
    return [replace(whole, start=start, end=stop) for start, stop in pairwise(bounds)]


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
