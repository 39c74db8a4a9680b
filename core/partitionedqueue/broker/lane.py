"""The way to one partition: sends that wait for each other travel together, and are repeated until they are settled."""

import asyncio
import itertools
import logging
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from partitionedqueue.broker import calls
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import SendResult
from partitionedqueue.model import limits, stored_message
from partitionedqueue.model.errors import BrokerUnavailable, PartitionedQueueError, QueueFull
from partitionedqueue.model.identifiers import SequenceNumber, sequence_number


class Numbers(NamedTuple):
    """The numbers that messages were given in a partition: `first`, first + 1, ..., none for the places of duplicates.

    `first` is 0 where none of them is known.
    """

    partition: int
    first: int
    duplicates: frozenset[int]

    def each(self, count: int) -> list[SequenceNumber | None]:
        """The number of each of so many messages."""
        if not self.first:
            return [None] * count
        locals_ = itertools.count(self.first)
        return [
            None if place in self.duplicates else sequence_number(self.partition, next(locals_))
            for place in range(count)
        ]


_NO_DUPLICATES: Final[frozenset[int]] = frozenset()
_NOBODY: Final[frozenset[int]] = frozenset()
_made: Final = tuple.__new__
"""A named tuple's own way to be made costs three times as much."""


def _count(batch: "list[Pending]") -> int:
    return sum([len(pending.stored) for pending in batch])


_log = logging.getLogger(__name__)

Told: TypeAlias = Callable[[Numbers | Exception], None]
"""What becomes of a send: its numbers, or why it failed. It is told once, and must not raise."""


class Pending:
    """Messages that go together, and who waits for them until when. `session`: only others of the same one go along."""

    __slots__ = (
        "bytes",
        "deadline",
        "fingerprints",
        "future",
        "keyed",
        "lane",
        "may_be_stored",
        "refused_by",
        "session",
        "stored",
        "told",
    )

    def __init__(  # noqa: PLR0917 -- one for each send: names would cost a tenth of it
        self,
        stored: list[bytes],
        fingerprints: bytes,
        keyed: bool,
        session: str | None,
        told: Told | None,
        future: "asyncio.Future[Numbers] | None",
        deadline: float,
    ) -> None:
        self.stored = stored
        self.bytes = len(stored[0]) if len(stored) == 1 else sum(map(len, stored))
        self.fingerprints = fingerprints
        self.keyed = keyed
        self.session = session
        self.told = told  # whoever waits, by one or the other
        self.future = future
        self.deadline = deadline
        self.lane: Lane  # that it was given to last
        self.may_be_stored = False
        self.refused_by = _NOBODY  # partitions that were full

    @property
    def over(self) -> bool:
        """Whether nobody waits any more."""
        return self.told is None if self.future is None else self.future.done()

    def tell(self, outcome: Numbers | Exception) -> None:
        """Say what has become of it, unless that was said before."""
        told = self.told
        if told is not None:
            self.told = None
            try:
                told(outcome)
            except Exception:  # noqa: BLE001 -- a defect of theirs is no failure of what was sent along
                _log.exception("what is told of a send failed")
        elif self.future is None or self.future.done():
            pass
        elif isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


@dataclass(slots=True)
class Traffic:
    """On how many lanes of a sender something is under way, and in which loop."""

    loop: asyncio.AbstractEventLoop
    lanes: int = 0


class Lane:
    """The way to one partition: one send at a time, so that order is kept; what waits goes along with the next one.

    Where the queue has sessions, one send at a time of each session, as a broker takes no two sessions in one.
    """

    def __init__(
        self,
        partition: int,
        client: BrokerClient,
        keys: QueueKeys,
        another: Callable[[float, Collection[int]], "Lane | None"],
        traffic: Traffic,
    ) -> None:
        self.partition = partition
        self._client = client
        self._keys = keys
        self._loop = traffic.loop
        self._traffic = traffic
        self._another = another  # a lane, now, for a keyless message that cannot go here, none of those partitions
        self._down_until = 0.0
        self._asked_at: float | None = None  # since when a send waits for its reply
        self._id = uuid.uuid4().hex
        self._numbers = itertools.count(1)
        self._tail = 0  # the last sequence number that is known of
        self._plain_sends = 0  # that are to come before one goes past Lua again
        self._under_way = 0  # messages that will stand behind it, if all goes well
        self._buffers: dict[str | None, deque[Pending]] = {}  # by session
        self.gathers = False  # what comes now still goes with what has come in this turn of the loop
        self._task: asyncio.Task[None] | None = None

    def is_up(self, now: float) -> bool:
        """Not known to be down, and not long in answering; what was down is tried again after a while."""
        asked_at = self._asked_at
        return self._down_until < now and (asked_at is None or now - asked_at < limits.SLOW_BROKER_S)

    @property
    def name(self) -> str:
        """For errors."""
        return f"partition {self.partition} (broker {self._client.address})"

    def put(self, pending: Pending) -> None:
        """Have something sent."""
        pending.lane = self
        buffer = self._buffers.get(pending.session)
        if buffer is None:
            buffer = self._buffers[pending.session] = deque()
        buffer.append(pending)
        if self._task is None:
            self.gathers = True
            self._traffic.lanes += 1
            self._task = self._loop.create_task(self._work())

    async def cancel_scheduled(self, sequences: list[int], *, within_s: float) -> None:
        """Remove scheduled messages, all or none; a broker that is away is waited for. Raises MessageNotFound."""
        await self._client.call(calls.cancel_scheduled(self._keys, sequences), patience_s=within_s)

    async def close(self) -> None:
        """Stop; what has not been stored by now fails."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for buffer in self._buffers.values():
            self._fail(buffer, BrokerUnavailable("the sender was closed before this was sent"))
        self._buffers.clear()

    async def _work(self) -> None:
        try:
            await asyncio.sleep(0)  # what is sent in this turn of the loop goes in one call
            self.gathers = False
            while batches := self._next_batches():
                if len(batches) == 1:
                    await self._send_or_fail(batches[0])
                    continue
                async with asyncio.TaskGroup() as group:
                    for batch in batches:
                        group.create_task(self._send_or_fail(batch))
        finally:
            self._task = None
            self.gathers = False
            self._traffic.lanes -= 1

    async def _send_or_fail(self, batch: list[Pending]) -> None:
        try:
            await self._send(batch)
        except asyncio.CancelledError:
            words = "the sender was closed while this was being sent"
            self._fail(batch, BrokerUnavailable(words, outcome_unknown=any(p.may_be_stored for p in batch)))
            raise
        except Exception as error:  # noqa: BLE001 -- whoever waits for these messages is told
            self._fail(batch, error)

    def _next_batches(self) -> list[list[Pending]]:
        """One batch of each session that has something, of so many as the broker remembers sends."""
        batches: list[list[Pending]] = []
        while self._buffers and not batches:
            for session in list(itertools.islice(self._buffers, limits.SENDS_IN_FLIGHT_MAX)):
                buffer = self._buffers.pop(session)
                if batch := self._next_batch(buffer):
                    batches.append(batch)
                if buffer:  # behind the other sessions, for what is left of it
                    self._buffers[session] = buffer
        return batches

    @staticmethod
    def _next_batch(buffer: deque[Pending]) -> list[Pending]:
        batch: list[Pending] = []
        messages, size = 0, 0
        while buffer:
            head = buffer[0]
            if head.told is None and head.over:  # its sender has left: it is not sent any more
                buffer.popleft()
                continue
            messages += len(head.stored)
            size += head.bytes
            if batch and (messages > limits.SEND_BATCH_MESSAGES_MAX or size > limits.SEND_BATCH_BYTES_MAX):
                break
            batch.append(buffer.popleft())
        return batch

    @staticmethod
    def _fail(several: Iterable[Pending], error: Exception) -> None:
        for pending in several:
            pending.tell(error)

    async def _send(self, batch: list[Pending]) -> None:
        """Send a batch under one number until it is settled. Once it may have been stored, it is repeated unchanged."""
        number = next(self._numbers)
        call: Call[SendResult] | None = None
        delay, unsure = limits.RECONNECT_DELAY_S_MIN, False
        while batch:
            if call is None or not unsure:
                call = self._call(batch, number)
            try:
                result = await self._attempt(batch, call, unsure=unsure)
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
            self._down_until = self._loop.time() + limits.RECONNECT_DELAY_S_MAX
            self._let_go(batch, unsure=unsure)
            await asyncio.sleep(delay)
            delay = min(delay * 2, limits.RECONNECT_DELAY_S_MAX)

    def _call(self, batch: list[Pending], number: int) -> Call[SendResult]:
        """Larger batches go past Lua, to where the tail is thought to be; not for a while where others move it, too."""
        stored = [one for pending in batch for one in pending.stored]
        fingerprints = b"".join([pending.fingerprints for pending in batch]) if batch[0].fingerprints else b""
        self._plain_sends = max(0, self._plain_sends - 1)
        if (
            not self._client.takes_pushes
            or self._plain_sends
            or sum([pending.bytes for pending in batch]) < limits.PUSHED_BYTES_MIN
            or len(stored) > limits.PUSHED_MESSAGES_MAX
            or stored_message.are_scheduled(stored)
        ):
            return calls.send(self._keys, stored, sender=self._id, number=number, fingerprints=fingerprints)
        return calls.send_pushed(
            self._keys,
            stored,
            guess=self._tail + self._under_way,
            sender=self._id,
            number=number,
            fingerprints=fingerprints,
            session=batch[0].session or "",
        )

    async def _attempt(self, batch: list[Pending], call: Call[SendResult], *, unsure: bool) -> SendResult:
        """`unsure`: an earlier attempt may have stored them."""
        self._asked_at = self._loop.time()
        count = _count(batch)
        self._under_way += count
        for pending in batch:
            pending.may_be_stored = True
        try:
            return await self._client.call(call)
        except PartitionedQueueError as error:
            if not (unsure or (isinstance(error, BrokerUnavailable) and error.outcome_unknown)):
                for pending in batch:
                    pending.may_be_stored = False
            raise
        finally:
            self._asked_at = None
            self._under_way -= count

    def _settle(self, batch: list[Pending], result: SendResult) -> None:
        self._down_until = 0.0
        local = result.first
        if local:
            if self._tail and local > self._tail + self._under_way + 1:
                self._plain_sends = limits.SENDS_AFTER_A_WRONG_GUESS  # somebody else sends here, too
            self._tail = local + _count(batch) - len(result.duplicates) - 1
        if result.duplicates:
            self._settle_some(batch, local, frozenset(result.duplicates))
            return
        for pending in batch:
            pending.tell(_made(Numbers, (self.partition, local, _NO_DUPLICATES)))
            if local:
                local += len(pending.stored)

    def _settle_some(self, batch: list[Pending], local: int, dropped: frozenset[int]) -> None:
        """Settle a batch of which those at some places were dropped."""
        place = 0
        for pending in batch:
            count = len(pending.stored)
            mine = frozenset(n for n in range(count) if place + n in dropped)
            pending.tell(Numbers(self.partition, local if len(mine) < count else 0, mine))
            local += count - len(mine) if local else 0
            place += count

    def _settle_full(self, batch: list[Pending], error: QueueFull) -> None:
        """Refused before anything was stored: a keyless message tries every other partition once, a keyed one fails."""
        now = self._loop.time()
        for pending in batch:
            pending.refused_by |= {self.partition}
            lane = None if pending.keyed else self._another(now, pending.refused_by)
            if lane is None:
                self._fail([pending], error)
            else:
                lane.put(pending)

    def _let_go(self, batch: list[Pending], *, unsure: bool) -> None:
        """Keyless messages that were surely not stored here go to a partition that is up; those given up on go."""
        if not unsure:
            batch[:] = [pending for pending in batch if not pending.over]
        elif all(pending.over for pending in batch):
            batch.clear()
        buffer = self._buffers.get(None, deque())  # a message of a session has a key
        now = self._loop.time()
        for source in (buffer,) if unsure else (batch, buffer):
            for pending in [p for p in source if not p.keyed]:
                lane = self._another(now, pending.refused_by)
                if lane is not None and lane is not self and lane.is_up(now):
                    source.remove(pending)
                    lane.put(pending)
