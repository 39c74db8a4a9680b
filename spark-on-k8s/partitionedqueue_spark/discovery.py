"""Where a cluster's brokers of a queue are: their names follow from the queue's, and one of them knows how many."""

import dataclasses
from typing import TypeVar

from partitionedqueue.broker import calls
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model.errors import BrokerUnavailable, LoginRefused, PartitionedQueueError
from partitionedqueue.model.placement import BROKER_CLIENT_LABEL, BrokerAddress, pod_address, secret_name
from partitionedqueue_spark.connection import PASSWORD_VARIABLE, Connection
from partitionedqueue_spark.fetching import broker_at
from partitionedqueue_spark.partition import PartitionUnreadable, in_its_place, unreadable

C = TypeVar("C", bound=Connection)


def located(options: C) -> C:
    """The same options with the brokers' addresses, where a namespace was given. Raises PartitionUnreadable."""
    if options.namespace is None:
        return options
    count = partition_count(pod_address(options.queue, 0, namespace=options.namespace), options)
    brokers = tuple(pod_address(options.queue, n, namespace=options.namespace) for n in range(count))
    return dataclasses.replace(options, brokers=brokers)


def partition_count(first: BrokerAddress, options: Connection) -> int:
    """How many partitions the queue has whose first one is there. Raises PartitionUnreadable, which says what to do."""
    try:
        with broker_at(first, options) as broker:
            totals = broker.call(calls.totals(QueueKeys(options.queue)))
    except LoginRefused as error:
        raise PartitionUnreadable(
            f"partition 0: {str(error).rstrip('.')}. The password of user {options.username} is in the Secret "
            f"{secret_name(options.queue)}, {options.username}-password; the driver has it from {PASSWORD_VARIABLE}"
        ) from error
    except BrokerUnavailable as error:
        raise PartitionUnreadable(
            f"partition 0: {error}. Is there a queue {options.queue} in namespace {options.namespace} (kubectl get pq "
            f'-n {options.namespace}), and have driver and executors the label {BROKER_CLIENT_LABEL}: "true"?'
        ) from error
    except PartitionedQueueError as error:
        raise unreadable(0, error) from error
    return in_its_place(totals, options.queue, 0, totals.partitions).partitions
