"""Looking at what partitions hold, in the order of the sequence numbers: that of the partitions, and within each."""

import asyncio
from collections.abc import Sequence

from partitionedqueue.broker import calls
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Peeked as Peek
from partitionedqueue.model import identifiers
from partitionedqueue.model import limits as core_limits
from partitionedqueue.model.errors import BrokerUnavailable, PartitionedQueueError
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.brokers import in_time
from partitionedqueue_gateway.entities.taken import Peeked, Shown, shown_of


class Browser:
    """Peeks and lists over all partitions of a queue or sub-queue."""

    def __init__(self, clients: Sequence[BrokerClient], keys: QueueKeys) -> None:
        self._clients = clients
        self._keys = keys
        self._resting_until_s: dict[int, float] = {}  # partitions that took long to fail

    async def peek(self, from_number: int, most: int, *, session: str | None, states: str, bytes_most: int) -> Peeked:
        """Messages from a sequence number on. Where a partition cannot be asked it is missing; all: BrokerUnavailable.

        Partitions are looked into several at a time, ever more while little is found. What does not fit is for the next
        peek, from where this one ends.
        """
        partition, local = (0, 1) if from_number <= 0 else identifiers.split_sequence_number(from_number)
        bytes_most = min(bytes_most or core_limits.PEEK_BYTES_MAX, core_limits.PEEK_BYTES_MAX)
        collected = _Collected(most, bytes_most)
        at_once, asked = 1, 0
        while partition < len(self._clients) and not collected.full:
            several = range(partition, min(partition + at_once, len(self._clients)))
            looks = (
                self._looked(_Look(n, max(local, 1) if n == partition else 1, session, states), collected)
                for n in several
            )
            for number, look in zip(several, await asyncio.gather(*looks), strict=True):
                collected.add(number, look)
            asked += len(several)
            partition, local, at_once = several.stop, 1, min(2 * at_once, limits.PEEKS_AT_ONCE_MAX)
        if asked and len(collected.missing) == asked:
            raise BrokerUnavailable(str(next(iter(collected.missing.values()))))
        return Peeked(collected.messages, collected.missing)

    async def list_sessions(self, skip: int, most: int) -> list[str]:
        """The ids of sessions, partition by partition. Raises BrokerUnavailable where one cannot be asked."""
        found: list[str] = []
        for client in self._clients:
            at, page = 0, [""]
            while page and len(found) < skip + most:
                call = calls.list_sessions(self._keys, skip=at, most=core_limits.SESSIONS_LISTED_MAX)
                page = await in_time(client, call)
                found += page
                at += len(page)
        return found[skip : skip + most]

    async def _looked(self, look: "_Look", collected: "_Collected") -> "_Look":
        """Look into one partition, however many calls that takes."""
        if asyncio.get_running_loop().time() < self._resting_until_s.get(look.partition, 0.0):
            look.error = BrokerUnavailable(f"partition {look.partition} did not answer a moment ago")
            return look
        room, bytes_left = collected.room, collected.bytes_left
        try:
            while look.local and len(look.found) < room and bytes_left > 0:
                most = min(room - len(look.found), core_limits.PEEK_MESSAGES_MAX)
                reply = await in_time(self._clients[look.partition], look.call(self._keys, most, bytes_left))
                shown = shown_of(look.partition, reply.runs)
                look.found += shown
                bytes_left -= sum(len(one.stored) for one in shown)
                look.local = reply.next
        except BrokerUnavailable as error:
            look.error = error
            if error.outcome_unknown:  # it took its time
                rest_s = limits.SICK_REST_FACTOR * limits.PARTITION_ANSWER_S_MAX
                self._resting_until_s[look.partition] = asyncio.get_running_loop().time() + rest_s
        except PartitionedQueueError as error:
            look.error = error
        return look


class _Look:
    """What is asked of one partition in a peek, and what it has shown."""

    def __init__(self, partition: int, local: int, session: str | None, states: str) -> None:
        self.partition = partition
        self.local = local
        self.found: list[Shown] = []
        self.error: PartitionedQueueError | None = None
        self._session = session
        self._states = states

    def call(self, keys: QueueKeys, most: int, bytes_most: int) -> Call[Peek]:
        return calls.peek(
            keys,
            from_sequence=self.local,
            most=most,
            bytes_most=bytes_most,
            states=self._states,
            session=self._session,
        )


class _Collected:
    """What a peek has found so far."""

    def __init__(self, most: int, bytes_most: int) -> None:
        self.messages: list[Shown] = []
        self.missing: dict[int, PartitionedQueueError] = {}
        self.full = most <= 0
        self.room = most
        self.bytes_left = bytes_most

    def add(self, number: int, look: _Look) -> None:
        """What the next partition has shown; nothing may come behind what it did not show."""
        if look.error is not None and not look.found:
            self.missing[number] = look.error
        for one in look.found:
            if self.full or (self.messages and len(one.stored) > self.bytes_left):
                self.full = True
                return
            self.messages.append(one)
            self.room -= 1
            self.bytes_left -= len(one.stored)
            self.full = self.room == 0 or self.bytes_left <= 0
        self.full = self.full or bool(look.found and look.error)
