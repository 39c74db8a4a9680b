"""Receiving from one broker: in one round trip where little is to come, past Lua where much is."""

import asyncio
from collections.abc import Iterator

from partitionedqueue.broker import calls
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Place, Received, Run, SessionLock
from partitionedqueue.model import limits


class Fetcher:
    """Receives messages of one queue, or of one session that is held.

    Whatever passes through Lua costs the broker a microsecond a kilobyte (docs/decisions/0005): from
    `limits.PUSHED_BYTES_MIN` on, by the mean of what has come so far, places are received and the bodies fetched.
    """

    def __init__(self, client: BrokerClient, keys: QueueKeys, session: SessionLock | None = None) -> None:
        self._client = client
        self._keys = keys
        self._session = session
        self._mean_bytes = 0.0

    async def receive(self, *, most: int, lock_ms: int = calls.QUEUES_LOCK, bytes_most: int = 0) -> Received:
        """As `calls.receive`; errors of `BrokerClient.call`."""
        if lock_ms == 0 or most * self._mean_bytes < limits.PUSHED_BYTES_MIN:
            received = await self._client.call(
                calls.receive(self._keys, most=most, lock_ms=lock_ms, bytes_most=bytes_most, session=self._session)
            )
        else:
            received = await self._by_places(most, lock_ms, bytes_most)
        count = sum([len(run.messages) for run in received.runs])
        if count:
            self._mean_bytes = sum([sum(map(len, run.messages)) for run in received.runs]) / count
        return received

    async def _by_places(self, most: int, lock_ms: int, bytes_most: int) -> Received:
        found = await self._client.call(
            calls.receive_places(self._keys, most=most, lock_ms=lock_ms, bytes_most=bytes_most, session=self._session)
        )
        if len(found.places) == 1:  # as a rule; a task of its own would cost as much as the call
            bodies = [await self._client.call(calls.bodies(self._keys, found.places[0]))]
        else:
            bodies = await asyncio.gather(
                *(self._client.call(calls.bodies(self._keys, place)) for place in found.places)
            )
        runs = [run for place, its in zip(found.places, bodies, strict=True) for run in _runs(place, its)]
        return Received(found.now_ms, found.locked_until_ms, found.ask_again_ms, runs)


def _runs(place: Place, bodies: list[bytes]) -> Iterator[Run]:
    """What is at a place; without messages whose lock was lost before they were fetched: they may have gone."""
    if len(bodies) == place.count and all(bodies):
        yield Run(place.lock, place.first, place.delivery_count, place.marks, bodies)
        return
    for index, body in enumerate(bodies):
        if body:
            yield Run(place.lock, place.first + index, place.delivery_count, place.marks, [body])
