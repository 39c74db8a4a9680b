"""How the partitions of what is read stand, asked on the driver."""

from collections.abc import Iterable

from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Totals
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_spark.fetching import broker_at
from partitionedqueue_spark.options import SourceOptions
from partitionedqueue_spark.partition import PartitionUnreadable, in_its_place, unreadable


def standing(broker: BlockingBroker, options: SourceOptions, partition: int) -> Totals:
    """How a partition of what is read stands. Raises PartitionUnreadable, also where it is another one's."""
    try:
        totals = broker.call(calls.totals(QueueKeys(options.queue)))
        in_its_place(totals, options.queue, partition, len(options.brokers))
        return totals if options.sub_queue is None else broker.call(calls.totals(options.keys))
    except PartitionUnreadable:
        raise
    except PartitionedQueueError as error:
        raise unreadable(partition, error) from error


def all_standing(options: SourceOptions, partitions: Iterable[int] | None = None) -> dict[int, Totals]:
    """How partitions stand: those that are named, or all."""
    found = {}
    for partition in range(len(options.brokers)) if partitions is None else partitions:
        with broker_at(options.brokers[partition], options) as broker:
            found[partition] = standing(broker, options, partition)
    return found
