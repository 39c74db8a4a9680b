"""The next session that has something to receive, of all partitions, for all in this process who wait for one."""

import asyncio

from partitionedqueue.broker import calls
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.waiting import AT_ONCE, seconds_until
from partitionedqueue.model import partitioning
from partitionedqueue.model.errors import BrokerUnavailable, PartitionedQueueError
from partitionedqueue_gateway.entities.background import Background, settled
from partitionedqueue_gateway.entities.brokers import QueueBrokers
from partitionedqueue_gateway.entities.failures import NoSessionAvailable
from partitionedqueue_gateway.entities.fan_in import FanIn, Source
from partitionedqueue_gateway.entities.session import Session


async def accept_named(
    brokers: QueueBrokers, keys: QueueKeys, background: Background, session_id: str, within_s: float
) -> Session:
    """Hold the session of that name. A broker that is away is waited for; SessionCannotBeLocked comes at once."""
    partition = partitioning.partition_of(session_id, len(brokers.clients))
    client = brokers.clients[partition]
    call = calls.accept_session(keys, session_id)
    accepting = asyncio.ensure_future(client.call(call, patience_s=within_s))

    async def release() -> None:
        await settled(Session(client, keys, partition, await accepting).release())

    try:
        return Session(client, keys, partition, await asyncio.shield(accepting))
    except asyncio.CancelledError:
        background.start(release())
        raise


class NextSessions(FanIn):
    """Those who wait are served in the order they came."""

    ask_most = 1

    def __init__(self, brokers: QueueBrokers, keys: QueueKeys, background: Background) -> None:
        super().__init__(brokers, keys.wake, range(len(brokers.clients)), background)
        self._keys = keys
        self._line: dict[asyncio.Future[Session], None] = {}

    async def accept(self, within_s: float) -> Session:
        """The next one. Raises NoSessionAvailable, refusals, BrokerUnavailable where no partition could be asked."""
        found: asyncio.Future[Session] = self._loop.create_future()
        self._line[found] = None
        self.begin()
        self.pump_soon()
        try:
            await asyncio.wait((found,), timeout=within_s)
        except asyncio.CancelledError:
            if found.done() and not found.exception():
                self._background.start(found.result().release())
            raise
        finally:
            self._line.pop(found, None)
            if not self._line:
                self.linger()
        if found.done():
            return found.result()
        if self.all_down:
            raise BrokerUnavailable("none of the partitions could be asked for a session; try again")
        raise NoSessionAvailable(f"no session became available within {within_s:g} s")

    def lose(self, error: PartitionedQueueError) -> None:
        """There will be none from here any more."""
        line, self._line = self._line, {}
        for found in line:
            if not found.done():
                found.set_exception(error)

    @property
    def wanted(self) -> int:
        """A session each."""
        return len(self._line)

    def refused(self, error: PartitionedQueueError) -> None:
        """All who wait are told."""
        self.lose(error)

    async def ask(self, source: Source, most: int) -> tuple[int, float]:
        """Accept the next session of a partition."""
        client = self._brokers.clients[source.number]
        reply = await client.call(calls.accept_session(self._keys, None))
        if reply.session is None:
            return 0, seconds_until(reply.ask_again_ms, reply.now_ms)
        session = Session(client, self._keys, source.number, reply)
        while self._line:
            found = next(iter(self._line))
            del self._line[found]
            if not found.done():
                found.set_result(session)
                return 1, AT_ONCE
        self._background.start(settled(session.release()))
        return 1, AT_ONCE

    async def look(self, source: Source) -> tuple[int, float]:
        """How many sessions may be accepted."""
        client = self._brokers.clients[source.number]
        totals, due_ms = await asyncio.gather(
            client.call(calls.totals(self._keys)), client.call(calls.next_due(self._keys))
        )
        return totals.sessions, seconds_until(due_ms, totals.now_ms)
