"""Deferred messages, by their sequence numbers: all of them or none, in however many partitions they are."""

import asyncio
from collections.abc import Sequence

from partitionedqueue.broker import calls
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import SessionLock, Settlement
from partitionedqueue.model import identifiers
from partitionedqueue.model import limits as core_limits
from partitionedqueue.model.errors import BrokerUnavailable, LockLost, MessageNotFound, PartitionedQueueError
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
        """In the order of the numbers. Raises MessageNotFound, and then none is locked or gone.

        To delete them takes a call to each partition: where one fails, those that others have deleted are given alone.
        """
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
            found = await self._deleted(found, session)
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

    async def _deleted(self, found: Sequence[Taken], session: SessionLock | None) -> list[Taken]:
        parts = [[one for one in found if one.partition == which] for which in {one.partition for one in found}]
        outcomes = await asyncio.gather(*(self._delete(part, session) for part in parts), return_exceptions=True)
        failures = [outcome for outcome in outcomes if outcome is not None]
        if len(failures) == len(parts) and failures:
            raise failures[0]
        gone = [one for part, outcome in zip(parts, outcomes, strict=True) if outcome is None for one in part]
        return [one._replace(lock=0, locked_until_ms=0) for one in gone]

    async def _delete(self, messages: Sequence[Taken], session: SessionLock | None) -> None:
        """Those of one partition; again where the outcome is unknown: what is refused then has gone the first time."""
        loop, unsure, delay_s = asyncio.get_running_loop(), False, core_limits.RECONNECT_DELAY_S_MIN
        until_s = loop.time() + limits.DELETE_S_MAX
        call = calls.complete(self._keys, merged(messages), session=session)
        while True:
            try:
                refused = await self._clients[messages[0].partition].call(call)
            except BrokerUnavailable as error:
                unsure = unsure or error.outcome_unknown
                if loop.time() + delay_s > until_s:
                    raise
            else:
                if refused and not unsure:
                    raise LockLost(LOCK_LOST)
                return
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, core_limits.RECONNECT_DELAY_S_MAX)


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
