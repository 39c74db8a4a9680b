"""Where a cluster's brokers of a queue are: their names follow from the queue's, and one of them knows how many."""

import dataclasses
from typing import TypeVar

from partitionedqueue.broker import calls
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.placement import pod_address
from partitionedqueue_spark.connection import Connection
from partitionedqueue_spark.fetching import broker_at
from partitionedqueue_spark.partition import in_its_place, unreadable

C = TypeVar("C", bound=Connection)


def located(options: C) -> C:
    """The same options with the brokers' addresses, where a namespace was given. Raises PartitionUnreadable."""
    if options.namespace is None:
        return options
    first = pod_address(options.queue, 0, namespace=options.namespace)
    try:
        with broker_at(first, options) as broker:
            totals = broker.call(calls.totals(QueueKeys(options.queue)))
    except PartitionedQueueError as error:
        raise unreadable(0, error) from error
    count = in_its_place(totals, options.queue, 0, totals.partitions).partitions
    brokers = tuple(pod_address(options.queue, n, namespace=options.namespace) for n in range(count))
    return dataclasses.replace(options, brokers=brokers)
