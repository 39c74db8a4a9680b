"""Receive-and-delete: messages are locked, completed, and only then handed over.

So a broker or gateway that dies loses none that nobody had, and whoever has one is the only one who ever will. What was
deleted for a receiver that left meanwhile is given to the next one, or put back at the end of its partition.
"""

import asyncio
import logging
import uuid
from collections.abc import Sequence
from typing import Final

from partitionedqueue.broker import calls
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.replies import Settlement
from partitionedqueue.model import limits as core_limits
from partitionedqueue.model.errors import BrokerUnavailable, PartitionedQueueError
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.messages import MessageFanIn
from partitionedqueue_gateway.entities.ranges import merged
from partitionedqueue_gateway.entities.receiver import Receiver
from partitionedqueue_gateway.entities.taken import Taken

_made: Final = tuple.__new__
"""A named tuple's own way to be made costs three times as much."""
_log = logging.getLogger(__name__)


class DeletingFanIn(MessageFanIn):
    """Serves receivers who want no locks."""

    _deleting = 0
    _kept: Sequence[Taken] = ()
    _keeping: asyncio.TimerHandle | None = None

    @property
    def wanted(self) -> int:
        """By all receivers, without what is kept for them."""
        return super().wanted - len(self._kept)

    def wants_more(self, receiver: Receiver, count: int) -> None:
        """As for locked ones; what is kept goes first."""
        super().wants_more(receiver, count)
        if self._kept:
            self._loop.call_soon(self._offer)

    def returned(self, messages: Sequence[Taken]) -> None:
        """It is deleted already: the next who wants something has it, or it is put back."""
        self._kept = [*messages, *self._kept]
        self._loop.call_soon(self._offer)

    async def arrived(self, partition: int, messages: Sequence[Taken], lock_ends_s: float) -> None:
        """Messages have come, locked: complete what is still wanted."""
        room = max(0, self.wanted - self._deleting)
        messages, rest = messages[:room], messages[room:]
        if rest:
            self.give_back(partition, rest)
        if messages:
            deleted = await self._deleted(partition, messages, lock_ends_s)
            self._kept = [*self._kept, *deleted]
            self._offer()

    async def put_back(self) -> None:
        """What is kept goes back to its partitions, at the end: nobody came who wanted it."""
        kept, self._kept = self._kept, ()
        for partition in {one.partition for one in kept}:
            stored = [one.stored for one in kept if one.partition == partition]
            no_ids = bytes(core_limits.FINGERPRINT_BYTES * len(stored))  # it is no duplicate of itself
            call = calls.send(self._keys, stored, sender=uuid.uuid4().hex, number=1, fingerprints=no_ids)
            try:
                await self._brokers.clients[partition].call(call, patience_s=core_limits.OPERATION_TIMEOUT_S_MIN)
            except PartitionedQueueError as error:
                _log.error("%d deleted messages of %s are lost: %s", len(stored), self._keys.name, error)

    def end(self) -> None:
        """As for locked ones; what is kept goes back."""
        super().end()
        if self._keeping is not None:
            self._keeping.cancel()
            self._keeping = None
        if self._kept:
            self._background.start(self.put_back())

    def _offer(self) -> None:
        self._kept = self.hand_out(self._kept)
        if not self._kept:
            self.pump_soon()
        elif not self.is_listening:  # this is the end
            self._background.start(self.put_back())
        elif self._keeping is None:
            self._keeping = self._loop.call_later(limits.DELETED_KEPT_S, self._keep_no_longer)

    def _keep_no_longer(self) -> None:
        self._keeping = None
        if self._kept:
            self._background.start(self.put_back())

    async def _deleted(self, partition: int, messages: Sequence[Taken], lock_ends_s: float) -> Sequence[Taken]:
        """Complete messages; gives those that are surely gone by our own doing, as deleted ones."""
        settlements = merged(messages)
        self._deleting += len(messages)
        try:
            places = await self._brokers.clients[partition].call(self._completing(settlements))
        except BrokerUnavailable as error:
            first_error = error
        else:
            return _without([settlements[place] for place in places], messages)
        finally:
            self._deleting -= len(messages)
        return await self._deleted_again(partition, messages, lock_ends_s, unsure=first_error.outcome_unknown)

    async def _deleted_again(
        self, partition: int, messages: Sequence[Taken], lock_ends_s: float, *, unsure: bool
    ) -> Sequence[Taken]:
        """Repeat a complete whose outcome is unknown.

        What is refused then was completed the first time, as nobody else holds the lock: for as long as that lasts.
        """
        settlements = merged(messages)
        delay_s = core_limits.RECONNECT_DELAY_S_MIN
        while True:
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, core_limits.RECONNECT_DELAY_S_MAX)
            try:
                places = await self._brokers.clients[partition].call(self._completing(settlements))
            except BrokerUnavailable as error:
                unsure = unsure or error.outcome_unknown
                if self._loop.time() > lock_ends_s:
                    raise
                continue
            held = self._loop.time() < lock_ends_s
            return _without([] if unsure and held else [settlements[place] for place in places], messages)

    def _completing(self, settlements: Sequence[Settlement]) -> Call[list[int]]:
        return calls.complete(self._keys, settlements, session=self._session)


def _without(refused: Sequence[Settlement], messages: Sequence[Taken]) -> list[Taken]:
    """As deleted ones, without those that were refused. HOT."""
    if refused:
        messages = [
            one
            for one in messages
            if not any(lost.lock == one.lock and lost.first <= one.sequence <= lost.last for lost in refused)
        ]
    return [
        _made(Taken, (partition, sequence, 0, deliveries, enqueued_ms, 0, stored))
        for partition, sequence, _, deliveries, enqueued_ms, _, stored in messages
    ]
