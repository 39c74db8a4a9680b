"""Sending to a queue of many partitions: routing, coalescing, and retries that store a message once."""

import asyncio
import itertools
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from partitionedqueue.broker import calls
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import SendResult
from partitionedqueue.model import limits, partitioning, stored_message
from partitionedqueue.model.errors import BrokerUnavailable, InvalidMessage, PartitionedQueueError, QueueFull
from partitionedqueue.model.identifiers import SequenceNumber, sequence_number
from partitionedqueue.model.message import Message


@dataclass(slots=True)
class _Pending:
    """Messages that go together, and who waits for them."""

    stored: list[bytes]
    keyed: bool
    deadline: float
    done: "asyncio.Future[SequenceNumber | None]"
    refusals: int = 0


class _Lane:
    """The way to one partition: one send at a time, so that order is kept; what waits goes along with the next one."""

    def __init__(self, sender: "QueueSender", partition: int, client: BrokerClient) -> None:
        self.partition = partition
        self._down_until = 0.0
        self._sender = sender
        self._client = client
        self._id = uuid.uuid4().hex
        self._numbers = itertools.count(1)
        self._buffer: deque[_Pending] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_up(self) -> bool:
        """Not known to be down; what was is tried again after a while."""
        return self._down_until < asyncio.get_running_loop().time()

    def put(self, pending: _Pending) -> None:
        self._buffer.append(pending)
        if self._task is None:
            self._task = asyncio.create_task(self._work())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for pending in self._buffer:
            pending.done.cancel()

    async def _work(self) -> None:
        await asyncio.sleep(0)  # what is sent in this turn of the loop goes in one call
        try:
            while self._buffer:
                batch = self._next_batch()
                try:
                    await self._send(batch)
                except BaseException as error:
                    self._fail(batch, error)
                    if not isinstance(error, PartitionedQueueError):
                        raise
        finally:
            self._task = None

    def _next_batch(self) -> list[_Pending]:
        batch: list[_Pending] = []
        messages, size = 0, 0
        while self._buffer:
            head = self._buffer[0]
            messages += len(head.stored)
            size += sum(map(len, head.stored))
            if batch and (messages > limits.SEND_BATCH_MESSAGES_MAX or size > limits.SEND_BATCH_BYTES_MAX):
                break
            batch.append(self._buffer.popleft())
        return batch

    @staticmethod
    def _fail(batch: list[_Pending], error: BaseException) -> None:
        for pending in batch:
            if not pending.done.done():
                pending.done.set_exception(error) if isinstance(error, Exception) else pending.done.cancel()

    async def _send(self, batch: list[_Pending]) -> None:
        """Send a batch under one number until it is settled. Once it may have been stored, it is repeated unchanged."""
        number = next(self._numbers)
        call: Call[SendResult] | None = None
        delay, unsure = limits.RECONNECT_DELAY_S_MIN, False
        while batch:
            if call is None or not unsure:
                stored = [one for pending in batch for one in pending.stored]
                call = calls.send(self._sender.keys, stored, sender=self._id, number=number)
            try:
                result = await self._client.call(call)
            except QueueFull as error:
                self._settle_full(batch, error)
                return
            except BrokerUnavailable as error:
                self._down_until = asyncio.get_running_loop().time() + limits.RECONNECT_DELAY_S_MAX
                unsure = unsure or error.outcome_unknown
            else:
                self._settle(batch, result)
                return
            self._hand_over_keyless(batch, unsure=unsure)
            self._drop_late(batch, unsure=unsure)
            await asyncio.sleep(delay)
            delay = min(delay * 2, limits.RECONNECT_DELAY_S_MAX)

    def _settle(self, batch: list[_Pending], result: SendResult) -> None:
        self._down_until = 0.0
        local = result.first
        for pending in batch:
            if not pending.done.done():
                pending.done.set_result(sequence_number(self.partition, local) if local else None)
            local += len(pending.stored) if local else 0

    def _settle_full(self, batch: list[_Pending], error: QueueFull) -> None:
        """Refused before anything was stored: a keyless message tries every other partition once, a keyed one fails."""
        for pending in batch:
            pending.refusals += 1
            if pending.keyed or pending.refusals >= self._sender.partitions:
                self._fail([pending], error)
            else:
                self._sender.next_lane().put(pending)

    def _hand_over_keyless(self, batch: list[_Pending], *, unsure: bool) -> None:
        """Keyless messages that were surely not stored here go to a partition that is up."""
        for source in (self._buffer,) if unsure else (batch, self._buffer):
            for pending in [p for p in source if not p.keyed]:
                lane = self._sender.next_lane()
                if lane is not self and lane.is_up:
                    source.remove(pending)
                    lane.put(pending)

    def _drop_late(self, batch: list[_Pending], *, unsure: bool) -> None:
        """Tell those whose operation timeout has passed; a batch that may be stored goes when all are told."""
        now = asyncio.get_running_loop().time()
        for source, may_be_stored in ((batch, unsure), (self._buffer, False)):
            for pending in source:
                if pending.deadline < now and not pending.done.done():
                    words = f"partition {self.partition} (broker {self._client.address}) is down"
                    pending.done.set_exception(BrokerUnavailable(words, outcome_unknown=may_be_stored))
        self._buffer = deque(p for p in self._buffer if not p.done.done())
        if not unsure or all(p.done.done() for p in batch):
            batch[:] = [p for p in batch if not p.done.done()]


class QueueSender:
    """Sends to one queue. `clients` are those of its partitions, in order.

    A keyed message goes to its key's partition and waits for it up to the operation timeout; a keyless one goes
    round-robin to a partition that is up. Sends of one turn of the loop to one partition travel together. A send whose
    reply was lost is repeated under the same number, and stored once.
    """

    def __init__(
        self,
        clients: Sequence[BrokerClient],
        keys: QueueKeys,
        *,
        operation_timeout_s: float = limits.OPERATION_TIMEOUT_S_DEFAULT,
        requires_duplicate_detection: bool = False,
    ) -> None:
        self.keys = keys
        self._timeout_s = operation_timeout_s
        self._detects = requires_duplicate_detection
        self._lanes = [_Lane(self, partition, client) for partition, client in enumerate(clients)]
        self._turn = itertools.count()

    async def send(self, message: Message) -> SequenceNumber | None:
        """Send one message; returns once it is stored. None where a repeat found it stored: its number is not told.

        Raises BrokerUnavailable (`outcome_unknown` where it may have been stored), QueueFull, InvalidMessage.
        """
        return await self.send_batch((message,))

    async def send_batch(self, messages: Sequence[Message]) -> SequenceNumber | None:
        """Send a batch, all or none, to one partition; gives the first number. Errors: as `send`, BatchKeyConflict."""
        if not messages:
            raise InvalidMessage("a batch has at least one message")
        key = partitioning.key_of_batch(messages, requires_duplicate_detection=self._detects)
        stored = [stored_message.encode(message) for message in messages]
        loop = asyncio.get_running_loop()
        pending = _Pending(stored, key is not None, loop.time() + self._timeout_s, loop.create_future())
        lane = self.next_lane() if key is None else self._lanes[partitioning.partition_of(key, self.partitions)]
        lane.put(pending)
        return await pending.done

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self._lanes)

    def next_lane(self) -> _Lane:
        """Round-robin, passing over partitions that are down; the next one, should all be."""
        for _ in self._lanes:
            lane = self._lanes[next(self._turn) % len(self._lanes)]
            if lane.is_up:
                return lane
        return self._lanes[next(self._turn) % len(self._lanes)]

    async def close(self) -> None:
        """Stop; what has not been stored by now is cancelled."""
        for lane in self._lanes:
            await lane.close()
