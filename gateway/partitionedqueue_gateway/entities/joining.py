"""Joining what is settled: alike in one turn of the loop goes to a partition in one call, as ranges.

A range is refused whole where one message of it is lost; it is tried again message by message, so that each one's
outcome is its own.
"""

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol, TypeAlias

from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.replies import SessionLock, Settlement
from partitionedqueue.model import limits as core_limits
from partitionedqueue.model.errors import BrokerUnavailable, LockLost, PartitionedQueueError, SessionLockLost
from partitionedqueue.model.lock_token import LockToken
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.background import Background
from partitionedqueue_gateway.entities.brokers import QueueBrokers
from partitionedqueue_gateway.entities.ranges import LOCK_LOST
from partitionedqueue_gateway.entities.session import Session

Lost: TypeAlias = Mapping[LockToken, PartitionedQueueError]
"""Tokens that were not settled, and why: LockLost, SessionLockLost, BrokerUnavailable. Empty: all were."""


class Settle(Protocol):
    """How a partition is told, in one of the four ways."""

    def __call__(self, settlements: Sequence[Settlement], *, session: SessionLock | None) -> Call[list[int]]:
        """A call that gives the places of what was refused."""


class _One:
    """Somebody waits for one token."""

    __slots__ = ("done",)

    def __init__(self, done: "asyncio.Future[None]") -> None:
        self.done = done

    def settled(self, _token: LockToken, error: PartitionedQueueError | None) -> None:
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


class _Several:
    """Somebody waits for some tokens, in any partitions."""

    __slots__ = ("done", "left", "lost")

    def __init__(self, done: "asyncio.Future[Lost]", left: int) -> None:
        self.done = done
        self.left = left  # whose outcome is not known yet
        self.lost: dict[LockToken, PartitionedQueueError] = {}

    def settled(self, token: LockToken, error: PartitionedQueueError | None) -> None:
        if error is not None:
            self.lost[token] = error
        self.left -= 1
        if not self.left and not self.done.done():
            self.done.set_result(self.lost)


_Entry: TypeAlias = tuple[LockToken, _One | _Several]


class _Join:
    """What is settled alike in one partition, and what is waited for with it."""

    __slots__ = ("entries", "lock", "partition", "session", "settle")

    def __init__(self, partition: int, settle: Settle, session: Session | None) -> None:
        self.partition = partition
        self.settle = settle
        self.session = session
        self.lock = session.lock if session is not None else None
        self.entries: list[_Entry] = []


class Joiner:
    """Settles for everybody in this process who holds something of one queue or sub-queue."""

    def __init__(self, brokers: QueueBrokers, background: Background) -> None:
        self._clients = brokers.clients
        self._background = background
        self._loop = asyncio.get_running_loop()
        self._joins: dict[tuple[int, Hashable, Session | None], _Join] = {}

    def one(self, alike: Hashable, settle: Settle, token: LockToken, session: Session | None) -> "asyncio.Future[None]":
        """Settle a message; `alike` is equal for what may be settled with it, by the same `settle`."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._put(alike, settle, session, (token, _One(done)))
        return done

    def several(
        self, alike: Hashable, settle: Settle, tokens: Sequence[LockToken], session: Session | None
    ) -> "asyncio.Future[Lost]":
        """Settle messages; their outcomes are told together."""
        done: asyncio.Future[Lost] = self._loop.create_future()
        waits = _Several(done, len(tokens))
        if not tokens:
            done.set_result(waits.lost)
        for token in tokens:
            self._put(alike, settle, session, (token, waits))
        return done

    def _put(self, alike: Hashable, settle: Settle, session: Session | None, entry: _Entry) -> None:
        token, waits = entry
        if token.partition >= len(self._clients):
            waits.settled(token, LockLost(LOCK_LOST))
        elif session is not None and session.lost is not None:
            waits.settled(token, session.lost)
        else:
            key = (token.partition, alike, session)
            join = self._joins.get(key)
            if join is None:
                if not self._joins:
                    self._loop.call_soon(self._settle_all)
                join = self._joins[key] = _Join(token.partition, settle, session)
            join.entries.append(entry)

    def _settle_all(self) -> None:
        joins, self._joins = self._joins, {}
        for join in joins.values():
            self._background.start(self._settle(join))

    async def _settle(self, join: _Join) -> None:
        entries = sorted(join.entries, key=_by_lock) if len(join.entries) > 1 else join.entries
        ranges, spans = _ranges(entries)
        pieces: list[_Entry] = []
        for at in range(0, len(ranges), core_limits.SETTLEMENTS_MAX):
            refused = await self._told(join, ranges[at : at + core_limits.SETTLEMENTS_MAX], spans[at:])
            for span in refused:
                if len(span) > 1:
                    pieces += span
                else:
                    span[0][1].settled(span[0][0], LockLost(LOCK_LOST))
        for at in range(0, len(pieces), core_limits.SETTLEMENTS_MAX):
            some = pieces[at : at + core_limits.SETTLEMENTS_MAX]
            singles = [Settlement(token.lock, token.sequence, token.sequence) for token, _ in some]
            for ((token, waits),) in await self._told(join, singles, [[entry] for entry in some]):
                waits.settled(token, LockLost(LOCK_LOST))

    async def _told(
        self, join: _Join, ranges: Sequence[Settlement], spans: Sequence[list[_Entry]]
    ) -> list[list[_Entry]]:
        """Tell a partition, and those who wait for what it took; gives what it refused."""
        error: PartitionedQueueError | None = None
        places: Sequence[int] = ()
        try:
            places, unsure = await self._carried(join.partition, join.settle(ranges, session=join.lock))
            if unsure:  # by the first try, or because the lock had run out
                error = (
                    BrokerUnavailable("whether it was settled cannot be told", outcome_unknown=True) if places else None
                )
        except SessionLockLost as lost:
            if join.session is not None:
                join.session.lose(lost)
            error, places = lost, range(len(ranges))
        except PartitionedQueueError as failure:
            error, places = failure, range(len(ranges))
        refused: list[list[_Entry]] = []
        not_taken = set(places)
        for place, span in enumerate(spans[: len(ranges)]):
            if place in not_taken and error is None:
                refused.append(span)
                continue
            for token, waits in span:
                waits.settled(token, error if place in not_taken else None)
        return refused

    async def _carried(self, partition: int, call: Call[list[int]]) -> tuple[list[int], bool]:
        """Carry a call, again where its outcome is unknown: what was settled the first time is refused then.

        Gives what was refused, and whether an earlier try may have settled it.
        """
        client, unsure, delay_s = self._clients[partition], False, core_limits.RECONNECT_DELAY_S_MIN
        until_s = self._loop.time() + limits.SETTLE_S_MAX
        while True:
            try:
                return await client.call(call), unsure
            except BrokerUnavailable as error:
                unsure = unsure or error.outcome_unknown
                if self._loop.time() + delay_s > until_s:
                    raise
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, core_limits.RECONNECT_DELAY_S_MAX)


def _by_lock(entry: _Entry) -> tuple[int, int]:
    token = entry[0]
    return token.lock, token.sequence


def _ranges(entries: Sequence[_Entry]) -> tuple[list[Settlement], list[list[_Entry]]]:
    """Ranges in order, and the entries of each; a token that came twice is in a range of its own the second time."""
    ranges: list[Settlement] = []
    spans: list[list[_Entry]] = []
    lock = last = 0
    for entry in entries:
        token = entry[0]
        if token.lock == lock and token.sequence == last + 1:
            spans[-1].append(entry)
            ranges[-1] = Settlement(lock, ranges[-1].first, token.sequence)
        else:
            spans.append([entry])
            ranges.append(Settlement(token.lock, token.sequence, token.sequence))
        lock, last = token.lock, token.sequence
    return ranges, spans
