"""Messages of one queue, sub-queue or session, for all in this process who receive there."""

import asyncio
import logging
from collections.abc import Sequence

from partitionedqueue.broker import calls
from partitionedqueue.broker.fetching import Fetcher
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.waiting import AT_ONCE, seconds_until
from partitionedqueue.model import limits as core_limits
from partitionedqueue.model.errors import PartitionedQueueError, SessionLockLost
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.background import Background, settled
from partitionedqueue_gateway.entities.brokers import QueueBrokers
from partitionedqueue_gateway.entities.fan_in import FanIn, Source
from partitionedqueue_gateway.entities.ranges import merged
from partitionedqueue_gateway.entities.receiver import Receiver
from partitionedqueue_gateway.entities.session import Session
from partitionedqueue_gateway.entities.taken import Taken, taken_of

_log = logging.getLogger(__name__)


class MessageFanIn(FanIn):
    """Serves receivers in the order in which they began to want something; who was given something goes to the end."""

    def __init__(
        self,
        brokers: QueueBrokers,
        keys: QueueKeys,
        background: Background,
        *,
        session: Session | None = None,
    ) -> None:
        partitions = range(len(brokers.clients)) if session is None else (session.partition,)
        super().__init__(brokers, keys.wake, partitions, background)
        self._keys = keys
        self._held = session
        self._session = session.lock if session is not None else None
        self._session_id = session.session_id.encode() if session is not None else b""
        if session is not None:
            session.on_lost(self.lose)
        self._fetchers = {n: Fetcher(brokers.clients[n], keys, self._session) for n in partitions}
        self._bytes_most = min(core_limits.RECEIVE_BYTES_DEFAULT, limits.RECEIVED_BYTES_MAX // len(partitions))
        self._open: dict[Receiver, None] = {}
        self._line: dict[Receiver, None] = {}
        self._wanted = 0

    # ---- receivers

    def join(self, receiver: Receiver) -> None:
        """Somebody receives here."""
        self._open[receiver] = None
        self.begin()

    def left(self, receiver: Receiver) -> None:
        """A receiver has closed."""
        self._open.pop(receiver, None)
        if not self._open and self._held is None:
            self.linger()
        elif not self._open:
            self.end()

    def wants_more(self, receiver: Receiver, count: int) -> None:
        """A receiver wants so many more; so many fewer where it is negative."""
        self._wanted += count
        if receiver.wanted:
            self._line.setdefault(receiver)
            self.pump_soon()
        else:
            self._line.pop(receiver, None)

    def returned(self, messages: Sequence[Taken]) -> None:
        """What a receiver has no use for goes back."""
        for partition in {one.partition for one in messages}:
            self.give_back(partition, [one for one in messages if one.partition == partition])

    def lose(self, error: PartitionedQueueError) -> None:
        """Nothing will come from here any more."""
        for receiver in [*self._open]:
            receiver.lose(error)

    # ---- asking

    @property
    def wanted(self) -> int:
        """By all receivers."""
        return self._wanted

    def concerns(self, payload: bytes) -> bool:
        """A session is rung by its id."""
        return self._session is None or payload in {b"", self._session_id}

    def refused(self, error: PartitionedQueueError) -> None:
        """All receivers are told."""
        if self._held is not None and isinstance(error, SessionLockLost):
            self._held.lose(error)
        self.lose(error)

    async def ask(self, source: Source, most: int) -> tuple[int, float]:
        """Receive under a lock."""
        asked_s = self._loop.time()
        reply = await self._fetchers[source.number].receive(most=most, bytes_most=self._bytes_most)
        messages = taken_of(source.number, reply)
        if messages:
            lasts_s = (reply.locked_until_ms - reply.now_ms) / 1000
            await self.arrived(source.number, messages, asked_s + lasts_s)
        return len(messages), AT_ONCE if len(messages) >= most else seconds_until(reply.ask_again_ms, reply.now_ms)

    async def look(self, source: Source) -> tuple[int, float]:
        """How many are ready."""
        client = self._brokers.clients[source.number]
        totals, due_ms = await asyncio.gather(
            client.call(calls.totals(self._keys)), client.call(calls.next_due(self._keys))
        )
        return totals.ready, seconds_until(due_ms, totals.now_ms)

    # ---- handing out

    async def arrived(self, partition: int, messages: Sequence[Taken], lock_ends_s: float) -> None:
        """Messages have come, locked until then by the loop's clock, at least."""
        left = self.hand_out(messages)
        if left:
            self.give_back(partition, left)

    def hand_out(self, messages: Sequence[Taken]) -> Sequence[Taken]:
        """Give messages to those who want them; gives those that nobody wants."""
        while messages and self._line:
            receiver = next(iter(self._line))
            del self._line[receiver]
            part, messages = messages[: receiver.wanted], messages[receiver.wanted :]
            receiver.wanted -= len(part)
            self._wanted -= len(part)
            if receiver.wanted:
                self._line[receiver] = None
            try:
                receiver.on_messages(part)
            except Exception:  # noqa: BLE001 -- its locks expire; the others are served
                _log.exception("a receiver of %s failed to take %d messages", self._keys.name, len(part))
        return messages

    def give_back(self, partition: int, messages: Sequence[Taken]) -> None:
        """Unlock what nobody wants, at once and uncounted."""
        call = calls.abandon(self._keys, merged(messages), counted=False, session=self._session)
        self._background.start(settled(self._brokers.clients[partition].call(call, patience_s=limits.SETTLE_S_MAX)))
