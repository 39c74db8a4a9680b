"""How a task sends: with the gateway's own sender, to every partition directly, over connections of its own."""

import asyncio
import functools
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.lane import Numbers
from partitionedqueue.broker.logins import fixed
from partitionedqueue.broker.sender import QueueSender
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model import limits
from partitionedqueue.model.errors import BrokerUnavailable, PartitionedQueueError
from partitionedqueue.model.storable import Storable
from partitionedqueue_spark.connection import Connection
from partitionedqueue_spark.sink_columns import Rows, row_named

UNSETTLED_BYTES_MAX: Final = 8 * 1024 * 1024  # under way to the brokers; a full call for each of eight
TURN_MESSAGES: Final = 256  # a full call's worth, before replies are looked at again


class NotWritten(PartitionedQueueError):
    """A row that no broker took; which, and why."""


class Sending:
    """One task's sends. Made, used and closed in one event loop; the first failure ends it."""

    def __init__(self, options: Connection, settings: BrokerSettings, task: int) -> None:
        login = fixed(options.password, options.username)
        self.duplicates = 0
        self._task = task
        self._within_s = limits.CALL_TIMEOUT_S_DEFAULT + options.broker_timeout_ms / 1000
        self._clients = [BrokerClient(address, login=login) for address in options.brokers]
        self._sender = QueueSender(
            self._clients,
            QueueKeys(options.queue),
            requires_duplicate_detection=bool(settings.dedupe_ms),
            requires_session=bool(settings.sessions),
        )
        self._unsettled = 0
        self._unsettled_bytes = 0
        self._failed: Exception | None = None
        self._settled = asyncio.Event()

    async def send(self, messages: Iterable[Storable], first: int) -> None:
        """Send rows `first`, first + 1, ... and wait until all of them are stored. Raises NotWritten."""
        for row, message in enumerate(messages, first):
            size = len(message.stored)
            self._unsettled += 1
            self._unsettled_bytes += size
            told = functools.partial(self._told, row, message, size)
            self._sender.submit_then([message], told, within_s=self._within_s)
            if row % TURN_MESSAGES == 0:
                await asyncio.sleep(0)
            if self._unsettled_bytes > UNSETTLED_BYTES_MAX:
                await self._until(UNSETTLED_BYTES_MAX // 2)
            if self._failed is not None:
                raise self._failed
        await self._until(0)

    async def close(self) -> None:
        """Close the connections; what is not stored by now fails."""
        await self._sender.close()
        for client in self._clients:
            await client.close()

    async def _until(self, unsettled_bytes: int) -> None:
        while self._unsettled and self._unsettled_bytes > unsettled_bytes and self._failed is None:
            self._settled.clear()
            await self._settled.wait()  # each send has its deadline, at which it is told
        if self._failed is not None:
            raise self._failed

    def _told(self, row: int, message: Storable, size: int, outcome: Numbers | Exception) -> None:
        self._unsettled -= 1
        self._unsettled_bytes -= size
        if isinstance(outcome, Exception):
            self._failed = self._failed or self._not_written(row, message, outcome)
        else:
            self.duplicates += len(outcome.duplicates)
        self._settled.set()

    def _not_written(self, row: int, message: Storable, error: Exception) -> NotWritten:
        name = row_named(self._task, row, message.message_id, message.session_id, message.partition_key)
        unsure = isinstance(error, BrokerUnavailable) and error.outcome_unknown
        told = NotWritten(f"{name}: {error}" + ("; it may have been stored" if unsure else ""))
        told.__cause__ = error
        return told


async def send_all(
    options: Connection, settings: BrokerSettings, task: int, rows: Rows, batches: Iterable[pa.RecordBatch]
) -> int:
    """Send a task's rows; gives how many were duplicates. Raises InvalidRow, NotWritten.

    A batch is stored before the next one is asked for, which may take long: while Spark computes it, nothing waits for
    a reply that this loop would not see.
    """
    sending = Sending(options, settings, task)
    try:
        for batch in batches:
            await sending.send(rows.messages(batch), rows.count)
        return sending.duplicates
    finally:
        await sending.close()
