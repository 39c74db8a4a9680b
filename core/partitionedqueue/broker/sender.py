"""Sending to a queue of many partitions: routing, coalescing, and retries that store a message once."""

import asyncio
import itertools
import random
import uuid
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from partitionedqueue.broker import calls
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import SendResult
from partitionedqueue.model import limits, partitioning, stored_message
from partitionedqueue.model.errors import BrokerUnavailable, InvalidMessage, PartitionedQueueError, QueueFull
from partitionedqueue.model.identifiers import SequenceNumber, sequence_number
from partitionedqueue.model.message import Message

_LATE_CHECK_S: Final = 0.1


@dataclass(slots=True, eq=False)
class _Pending:
    """Messages that go together, and who waits for them."""

    stored: list[bytes]
    keyed: bool
    done: "asyncio.Future[SequenceNumber | None]"
    may_be_stored: bool = False
    refused_by: set[int] = field(default_factory=set)  # partitions that were full


class _Lane:
    """The way to one partition: one send at a time, so that order is kept; what waits goes along with the next one."""

    def __init__(self, sender: "QueueSender", partition: int, client: BrokerClient) -> None:
        self.partition = partition
        self._sender = sender
        self._client = client
        self._down_until = 0.0
        self._asked_at: float | None = None  # since when a send waits for its reply
        self._id = uuid.uuid4().hex
        self._numbers = itertools.count(1)
        self._buffer: deque[_Pending] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_up(self) -> bool:
        """Not known to be down, and not long in answering; what was down is tried again after a while."""
        now = asyncio.get_running_loop().time()
        return self._down_until < now and (self._asked_at is None or now - self._asked_at < limits.SLOW_BROKER_S)

    @property
    def name(self) -> str:
        """For errors."""
        return f"partition {self.partition} (broker {self._client.address})"

    def put(self, pending: _Pending) -> None:
        self._buffer.append(pending)
        if self._task is None:
            self._task = asyncio.create_task(self._work())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._fail(self._buffer, BrokerUnavailable("the sender was closed before this was sent"))
        self._buffer.clear()

    async def _work(self) -> None:
        try:
            await asyncio.sleep(0)  # what is sent in this turn of the loop goes in one call
            while batch := self._next_batch():
                try:
                    await self._send(batch)
                except asyncio.CancelledError:
                    words = "the sender was closed while this was being sent"
                    self._fail(batch, BrokerUnavailable(words, outcome_unknown=any(p.may_be_stored for p in batch)))
                    raise
                except Exception as error:  # noqa: BLE001 -- whoever waits for these messages is told
                    self._fail(batch, error)
        finally:
            self._task = None

    def _next_batch(self) -> list[_Pending]:
        batch: list[_Pending] = []
        messages, size = 0, 0
        while self._buffer:
            head = self._buffer[0]
            if head.done.done():  # its sender has left: it is not sent any more
                self._buffer.popleft()
                continue
            messages += len(head.stored)
            size += sum(map(len, head.stored))
            if batch and (messages > limits.SEND_BATCH_MESSAGES_MAX or size > limits.SEND_BATCH_BYTES_MAX):
                break
            batch.append(self._buffer.popleft())
        return batch

    @staticmethod
    def _fail(several: Iterable[_Pending], error: Exception) -> None:
        for pending in several:
            if not pending.done.done():
                pending.done.set_exception(error)

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
                result = await self._attempt(batch, call)
            except QueueFull as error:
                if not unsure:
                    self._settle_full(batch, error)
                    return
                # Refused before the broker looked whether it has this send already: only a later repeat can tell.
            except BrokerUnavailable as error:
                unsure = unsure or error.outcome_unknown
            else:
                self._settle(batch, result)
                return
            self._down_until = asyncio.get_running_loop().time() + limits.RECONNECT_DELAY_S_MAX
            self._let_go(batch, unsure=unsure)
            await asyncio.sleep(delay)
            delay = min(delay * 2, limits.RECONNECT_DELAY_S_MAX)

    async def _attempt(self, batch: list[_Pending], call: Call[SendResult]) -> SendResult:
        self._asked_at = asyncio.get_running_loop().time()
        before = [pending.may_be_stored for pending in batch]
        for pending in batch:
            pending.may_be_stored = True
        try:
            return await self._client.call(call)
        except PartitionedQueueError as error:
            if not (isinstance(error, BrokerUnavailable) and error.outcome_unknown):
                for pending, was in zip(batch, before, strict=True):
                    pending.may_be_stored = was
            raise
        finally:
            self._asked_at = None

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
            pending.refused_by.add(self.partition)
            lane = None if pending.keyed else self._sender.next_lane(pending.refused_by)
            if lane is None:
                self._fail([pending], error)
            else:
                lane.put(pending)

    def _let_go(self, batch: list[_Pending], *, unsure: bool) -> None:
        """Keyless messages that were surely not stored here go to a partition that is up; those given up on go."""
        if not unsure:
            batch[:] = [pending for pending in batch if not pending.done.done()]
        elif all(pending.done.done() for pending in batch):
            batch.clear()
        for source in (self._buffer,) if unsure else (batch, self._buffer):
            for pending in [p for p in source if not p.keyed]:
                lane = self._sender.next_lane(pending.refused_by)
                if lane is not None and lane is not self and lane.is_up:
                    source.remove(pending)
                    lane.put(pending)


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
        self._turn = itertools.count(random.randrange(max(1, len(clients))))  # many short programs spread, too
        self._closed = False
        self._waiting: list[tuple[float, _Pending, _Lane]] = []
        self._watch: asyncio.TimerHandle | None = None

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
        if self._closed:
            raise BrokerUnavailable("the sender is closed")
        loop = asyncio.get_running_loop()
        pending = _Pending(stored, key is not None, loop.create_future())
        lane = self.next_lane() if key is None else self._lanes[partitioning.partition_of(key, self.partitions)]
        if lane is None:
            raise BrokerUnavailable("this queue has no partitions")
        self._waiting.append((loop.time() + self._timeout_s, pending, lane))
        if self._watch is None:
            self._watch = loop.call_later(_LATE_CHECK_S, self._tell_the_late)
        lane.put(pending)
        return await pending.done

    def _tell_the_late(self) -> None:
        """One timer for all: a timer a message would cost a tenth of sending it."""
        loop = asyncio.get_running_loop()
        self._waiting = [entry for entry in self._waiting if not entry[1].done.done()]
        for deadline, pending, lane in self._waiting:
            if deadline <= loop.time():
                words = f"{lane.name} is down: not stored within {self._timeout_s:g} s"
                pending.done.set_exception(BrokerUnavailable(words, outcome_unknown=pending.may_be_stored))
        self._watch = loop.call_later(_LATE_CHECK_S, self._tell_the_late) if self._waiting else None

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self._lanes)

    def next_lane(self, refused_by: Collection[int] = ()) -> _Lane | None:
        """Round-robin over those that were not full, passing over what is down; None where all were full."""
        turn, otherwise = next(self._turn), None
        for place in range(len(self._lanes)):
            lane = self._lanes[(turn + place) % len(self._lanes)]
            if lane.partition in refused_by:
                continue
            if lane.is_up:
                return lane
            otherwise = otherwise or lane
        return otherwise

    async def close(self) -> None:
        """Stop; what has not been stored by now fails. The clients are the caller's to close, afterwards."""
        self._closed = True
        if self._watch is not None:
            self._watch.cancel()
        for lane in self._lanes:
            await lane.close()
