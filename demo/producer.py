"""Sends every flight as one message, many at a time, and counts what the brokers have acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.sender import QueueSender
from partitionedqueue.model.message import Message
from partitionedqueue.model.placement import BrokerAddress

# Enough that each of 16 brokers always has its next batch waiting; at half a KB each they are a few MB.
IN_FLIGHT_MAX = 4096


class Producer:
    """One sender over all partitions. What is in flight towards one broker leaves as one atomic batch."""

    def __init__(self, brokers: Sequence[BrokerAddress], keys: QueueKeys) -> None:
        self.acknowledged = 0
        self._clients = [BrokerClient(broker) for broker in brokers]
        self._sender = QueueSender(self._clients, keys)

    async def send(self, messages: Iterator[Message]) -> None:
        """Send them all; on return every one is acknowledged.

        Raises:
            PartitionedQueueError: a message could not be stored within the sender's time; some may have been sent.
        """
        async with asyncio.TaskGroup() as group:
            for _ in range(IN_FLIGHT_MAX):
                group.create_task(self._send_one_after_the_other(messages))

    async def _send_one_after_the_other(self, messages: Iterator[Message]) -> None:
        for message in messages:
            await self._sender.send(message)
            self.acknowledged += 1

    async def close(self) -> None:
        """Close the connections."""
        await self._sender.close()
        for client in self._clients:
            await client.close()
