"""Deferred messages, by their sequence numbers: all of them or none, in however many partitions they are."""

import asyncio
from collections.abc import Sequence

from partitionedqueue.broker import calls
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import SessionLock, Settlement
from partitionedqueue.model import identifiers
from partitionedqueue.model.errors import LockLost, MessageNotFound, PartitionedQueueError
from partitionedqueue.model.lock_token import LockToken
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.ranges import LOCK_LOST, merged
from partitionedqueue_gateway.entities.taken import Taken, taken_of


def by_partition(numbers: Sequence[int], partitions: int) -> dict[int, list[int]]:
    """Sequence numbers of 64 bits as those of each partition. Raises MessageNotFound for what cannot be one."""
    found: dict[int, list[int]] = {}
    for number in numbers:
        try:
            partition, local = identifiers.split_sequence_number(number)
        except ValueError:
            raise MessageNotFound(f"{number} is no sequence number") from None
        if partition >= partitions or not local:
            raise MessageNotFound(f"{number} is of partition {partition}; this entity has {partitions}")
        found.setdefault(int(partition), []).append(local)
    return found


class DeferredMessages:
    """Those of a queue or sub-queue."""

    def __init__(self, clients: Sequence[BrokerClient], keys: QueueKeys) -> None:
        self._clients = clients
        self._keys = keys

    async def receive(self, numbers: Sequence[int], *, delete: bool, session: SessionLock | None) -> list[Taken]:
        """In the order of the numbers. Raises MessageNotFound, and then none is locked or gone."""
        asked = by_partition(numbers, len(self._clients))
        outcomes = await asyncio.gather(
            *(self._receive(partition, local, session) for partition, local in asked.items()), return_exceptions=True
        )
        found = [one for outcome in outcomes if not isinstance(outcome, BaseException) for one in outcome]
        try:
            for outcome in outcomes:
                if isinstance(outcome, BaseException):
                    raise outcome
        except PartitionedQueueError:
            await self._give_back(found, session)
            raise
        if delete:
            await self._delete(found, session)
            found = [one._replace(lock=0, locked_until_ms=0) for one in found]
        place = {number: at for at, number in enumerate(numbers)}
        return sorted(found, key=lambda one: place[identifiers.sequence_number(one.partition, one.sequence)])

    async def _receive(self, partition: int, local: Sequence[int], session: SessionLock | None) -> list[Taken]:
        call = calls.receive_deferred(self._keys, local, session=session)
        return taken_of(partition, await self._clients[partition].call(call, patience_s=limits.SETTLE_S_MAX))

    async def _give_back(self, found: Sequence[Taken], session: SessionLock | None) -> None:
        for partition in {one.partition for one in found}:
            settlements = merged(one for one in found if one.partition == partition)
            call = calls.abandon(self._keys, settlements, counted=False, session=session)
            await asyncio.gather(self._clients[partition].call(call), return_exceptions=True)

    async def _delete(self, found: Sequence[Taken], session: SessionLock | None) -> None:
        for partition in {one.partition for one in found}:
            settlements = merged(one for one in found if one.partition == partition)
            call = calls.complete(self._keys, settlements, session=session)
            if await self._clients[partition].call(call, patience_s=limits.SETTLE_S_MAX):
                raise LockLost(LOCK_LOST)


async def renew(clients: Sequence[BrokerClient], keys: QueueKeys, tokens: Sequence[LockToken]) -> list[int]:
    """Keep messages locked; until when, each. Raises LockLost where one is lost; the others are renewed."""
    until: dict[int, int] = {}
    if any(token.partition >= len(clients) for token in tokens):
        raise LockLost(LOCK_LOST)
    lost = False
    for partition in {token.partition for token in tokens}:
        call = calls.renew_lock(
            keys, [Settlement(one.lock, one.sequence, one.sequence) for one in tokens if one.partition == partition]
        )
        renewed = await clients[partition].call(call, patience_s=limits.SETTLE_S_MAX)
        until[partition] = renewed.locked_until_ms
        lost = lost or bool(renewed.refused)
    if lost:
        raise LockLost(LOCK_LOST)
    return [until[token.partition] for token in tokens]
