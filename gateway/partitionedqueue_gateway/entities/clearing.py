"""Removing many messages at once, partition by partition."""

from collections.abc import Sequence

from partitionedqueue.broker import calls
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model.errors import BrokerUnavailable
from partitionedqueue_gateway.entities.brokers import in_time


async def delete_batch(clients: Sequence[BrokerClient], keys: QueueKeys, most: int, enqueued_before_ms: int) -> int:
    """Remove up to so many ready messages that were enqueued before a time, in the order of the partitions.

    A partition that is away is passed over: what is left there is for the next call. Raises BrokerUnavailable where
    none was removed for that.
    """
    count, missing = 0, None
    for client in clients:
        upto = cursor = 0
        try:
            while count < most:
                left = most - count
                call = calls.delete_batch(
                    keys, most=left, enqueued_before_ms=enqueued_before_ms, upto=upto, cursor=cursor
                )
                moved = await in_time(client, call)
                count, upto, cursor = count + moved.count, moved.upto, moved.more
                if not cursor:
                    break
        except BrokerUnavailable as error:
            missing = error
    if missing is not None and not count:
        raise missing
    return count
