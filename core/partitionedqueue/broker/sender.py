"""Sending to a queue of many partitions: routing, and numbers that a message is stored once by (lane.py)."""

import asyncio
import dataclasses
import itertools
import random
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.lane import Lane, Numbers, Pending, Told, Traffic
from partitionedqueue.model import duplicates, limits, partitioning
from partitionedqueue.model.errors import BrokerUnavailable, InvalidMessage, MessageNotFound
from partitionedqueue.model.identifiers import SequenceNumber, sequence_number, split_sequence_number
from partitionedqueue.model.message import Message
from partitionedqueue.model.storable import Storable, storable

_LATE_CHECK_S: Final = 0.1


class QueueSender:
    """Sends to one queue. `clients` are those of its partitions, in order.

    A keyed message goes to its key's partition and waits for it up to the operation timeout. Keyless ones go
    round-robin to partitions that are up; those of one turn of the loop, and of times when much is under way, in small
    companies: dozens in one call cost a broker, and us, little more than one. Where there is one partition alone, no
    message has a key. Sends of one turn to one partition (and session) travel together.
    A send whose reply was lost is repeated under the same number, and stored once. A duplicate, where the queue detects
    them, is accepted and dropped.
    """

    def __init__(
        self,
        clients: Sequence[BrokerClient],
        keys: QueueKeys,
        *,
        operation_timeout_s: float = limits.OPERATION_TIMEOUT_S_DEFAULT,
        requires_duplicate_detection: bool = False,
        requires_session: bool = False,
    ) -> None:
        self.keys = keys
        self._timeout_s = operation_timeout_s
        self._has_sessions = requires_session
        self._detects = requires_duplicate_detection
        self._loop = asyncio.get_running_loop()
        self._traffic = Traffic(self._loop)
        self._lanes = [
            Lane(partition, client, keys, self._next_lane, self._traffic) for partition, client in enumerate(clients)
        ]
        self._many = len(self._lanes) > 1
        self._company: Lane | None = None  # where the last keyless message went
        self._company_left = 0  # that may still go there
        self._turn = itertools.count(random.randrange(max(1, len(clients))))  # many short programs spread, too
        self._closed = False
        self._waiting: list[Pending] = []
        self._watch: asyncio.TimerHandle | None = None

    async def send(self, message: Message) -> SequenceNumber | None:
        """Send one message; returns once it is stored.

        None where its number is not told: it is a duplicate, which was dropped, or a repeat found it stored. Raises
        BrokerUnavailable (`outcome_unknown` where it may have been stored), InvalidMessage, and the broker's refusals.
        """
        return await self.send_batch((message,))

    async def send_batch(self, messages: Sequence[Message]) -> SequenceNumber | None:
        """Send a batch, all or none, to one partition; gives the first number, of those that are no duplicates.

        None and errors: as `send`, and BatchKeyConflict.
        """
        numbers = await self.submit([storable(message) for message in messages])
        return sequence_number(numbers.partition, numbers.first) if numbers.first else None

    async def schedule(self, messages: Sequence[Message], at_ms: int) -> list[SequenceNumber | None]:
        """Send a batch that becomes visible at a time (ms since 1970): the number of each, for `cancel_scheduled`.

        When its time has come a message is given a new number. None and errors: as `send_batch`.
        """
        scheduled = [dataclasses.replace(message, scheduled_enqueue_time_ms=at_ms) for message in messages]
        return (await self.submit([storable(message) for message in scheduled])).each(len(scheduled))

    def submit(self, messages: Sequence[Storable], *, within_s: float | None = None) -> "asyncio.Future[Numbers]":
        """Have a batch stored, all or none, in one partition, within the operation timeout or a time of one's own.

        Raises InvalidMessage, BatchKeyConflict, and BrokerUnavailable where the sender is closed; the future has the
        numbers, or BrokerUnavailable (`outcome_unknown` where it may be stored all the same), or the broker's refusal.
        """
        done: asyncio.Future[Numbers] = self._loop.create_future()
        self.submit_then(messages, None, within_s, done)
        return done

    def submit_then(
        self,
        messages: Sequence[Storable],
        told: Told | None,
        within_s: float | None = None,
        future: "asyncio.Future[Numbers] | None" = None,
    ) -> None:
        """As `submit`, without a future of ours: `told` is called with the outcome, and must not raise. HOT."""
        if self._closed:
            raise BrokerUnavailable("the sender is closed")
        if len(messages) == 1:  # what follows is a function's work, whose call would cost as much
            one = messages[0]
            stored = [one.stored]
            key = one.session_id
            if key is None:
                key = one.partition_key
                if key is None and self._detects:
                    key = one.message_id
        else:
            if not messages:
                raise InvalidMessage("a batch has at least one message")
            stored = [message.stored for message in messages]
            key = (
                partitioning.key_of_batch(messages, requires_duplicate_detection=self._detects) if self._many else None
            )
        now = self._loop.time()
        if key is not None and self._many:
            lane: Lane | None = self._lanes[partitioning.partition_of(key, len(self._lanes))]
        else:
            key = None
            lane = self._lane_in_company(now)
        if lane is None:
            raise BrokerUnavailable("this queue has no partitions")
        pending = Pending(
            stored,
            duplicates.fingerprints(messages) if self._detects else b"",
            key is not None,
            messages[0].session_id if self._has_sessions else None,
            told,
            future,
            now + (self._timeout_s if within_s is None else within_s),
        )
        self._waiting.append(pending)
        if self._watch is None:
            self._watch = self._loop.call_later(_LATE_CHECK_S, self._tell_the_late)
        lane.put(pending)

    async def cancel_scheduled(self, numbers: Iterable[int]) -> None:
        """Remove scheduled messages before their time; in each partition all of them or none.

        Raises MessageNotFound for what is not scheduled (any more), BrokerUnavailable.
        """
        by_partition: dict[int, list[int]] = {}
        for number in numbers:
            partition, local = split_sequence_number(number)
            if partition >= self.partitions:
                raise MessageNotFound(f"{number} is of partition {partition}; this queue has {self.partitions}")
            by_partition.setdefault(partition, []).append(local)
        outcomes = await asyncio.gather(
            *(
                self._lanes[partition].cancel_scheduled(here, within_s=self._timeout_s)
                for partition, here in by_partition.items()
            ),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    def _tell_the_late(self) -> None:
        """One timer for all: a timer a message would cost a tenth of sending it."""
        now = self._loop.time()
        self._waiting = [pending for pending in self._waiting if pending.told is not None or not pending.over]
        for pending in self._waiting:
            if pending.deadline <= now:
                words = f"{pending.lane.name} is down: not stored in time"
                pending.tell(BrokerUnavailable(words, outcome_unknown=pending.may_be_stored))
        self._watch = self._loop.call_later(_LATE_CHECK_S, self._tell_the_late) if self._waiting else None

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self._lanes)

    def _lane_in_company(self, now: float) -> Lane | None:
        """Where a keyless message goes: along with the last one, or a lane on."""
        lane = self._company
        busy = self._traffic.lanes >= limits.LANES_IN_USE_MIN
        if self._company_left and lane is not None and (lane.gathers or busy) and lane.is_up(now):
            self._company_left -= 1
            return lane
        self._company, self._company_left = self._next_lane(now), limits.COMPANY_MESSAGES_MAX - 1
        return self._company

    def _next_lane(self, now: float, refused_by: Collection[int] = ()) -> Lane | None:
        """Round-robin over those that were not full, passing over what is down; None where all were full."""
        turn, otherwise = next(self._turn), None
        for place in range(turn, turn + len(self._lanes)):
            lane = self._lanes[place % len(self._lanes)]
            if lane.partition in refused_by:
                continue
            if lane.is_up(now):
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
