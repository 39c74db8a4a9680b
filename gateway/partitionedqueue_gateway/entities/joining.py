"""Joining what is settled: alike in one turn of the loop goes to a partition in one call, as ranges; and so does, then,
what comes while that call is under way.

A range is refused whole where one message of it is lost; it is tried again message by message, so that each one's
outcome is its own.
"""

import asyncio
import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
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
_log = logging.getLogger(__name__)


class Settle(Protocol):
    """How a partition is told, in one of the four ways."""

    def __call__(self, settlements: Sequence[Settlement], *, session: SessionLock | None) -> Call[list[int]]:
        """A call that gives the places of what was refused."""


Told: TypeAlias = Callable[[PartitionedQueueError | None], None]
"""Hears what became of a message: None, it was settled."""
_Key: TypeAlias = tuple[int, Hashable, Session | None]
"""What is settled alike: in a partition, in one of the four ways, in a session or none."""
_Entry: TypeAlias = tuple[int, int, int, Told]
"""Lock and sequence number of a message, its place among the others, and who is told."""


class _Several:
    """Somebody waits for some tokens, in any partitions."""

    __slots__ = ("done", "left", "lost")

    def __init__(self, done: "asyncio.Future[Lost]", left: int) -> None:
        self.done = done
        self.left = left  # whose outcome is not known yet
        self.lost: dict[LockToken, PartitionedQueueError] = {}

    def told(self, token: LockToken, error: PartitionedQueueError | None) -> None:
        if error is not None:
            self.lost[token] = error
        self.left -= 1
        if not self.left and not self.done.done():
            self.done.set_result(self.lost)


class _Join:
    """What is settled alike in one partition, and who is told."""

    __slots__ = ("entries", "lock", "partition", "session", "settle", "until_s")

    def __init__(self, partition: int, settle: Settle, session: Session | None, until_s: float) -> None:
        self.partition = partition
        self.settle = settle
        self.session = session
        self.lock = session.lock if session is not None else None
        self.until_s = until_s  # so long a partition that is away is waited for
        self.entries: list[_Entry] = []


class Joiner:
    """Settles for everybody in this process who holds something of one queue or sub-queue."""

    def __init__(self, brokers: QueueBrokers, background: Background) -> None:
        self._clients = brokers.clients
        self._background = background
        self._loop = asyncio.get_running_loop()
        self._joins: dict[_Key, _Join] = {}
        self._soon: list[_Key] = []  # those that go at the end of this turn
        self._under_way: set[_Key] = set()

    def one(self, alike: Hashable, settle: Settle, token: LockToken, session: Session | None, told: Told) -> None:
        """Settle a message; `alike` is equal for what may be settled with it, by the same `settle`. HOT."""
        partition, sequence, lock = token
        key = (partition, alike, session)
        join = self._joins.get(key)
        if join is None:
            if partition >= len(self._clients):
                self._loop.call_soon(told, LockLost(LOCK_LOST))
                return
            if session is not None and session.lost is not None:
                self._loop.call_soon(told, session.lost)
                return
            join = self._joins[key] = _Join(partition, settle, session, self._loop.time() + limits.SETTLE_S_MAX)
            if key not in self._under_way:  # else it goes when that call is over, with what else has come by then
                if not self._soon:
                    self._loop.call_soon(self._begin_soon)
                self._soon.append(key)
        join.entries.append((lock, sequence, len(join.entries), told))

    def several(
        self, alike: Hashable, settle: Settle, tokens: Sequence[LockToken], session: Session | None
    ) -> "asyncio.Future[Lost]":
        """Settle messages; their outcomes are told together."""
        done: asyncio.Future[Lost] = self._loop.create_future()
        waits = _Several(done, len(tokens))
        if not tokens:
            done.set_result(waits.lost)
        for token in tokens:
            self.one(alike, settle, token, session, partial(waits.told, token))
        return done

    def _begin_soon(self) -> None:
        soon, self._soon = self._soon, []
        for key in soon:
            self._begin(key)

    def _begin(self, key: _Key) -> None:
        join = self._joins.pop(key)
        if join.session is None:  # in a session nothing waits: it may be let go right behind what was settled in it
            self._under_way.add(key)
        self._background.start(self._settle_in_turn(key, join))

    async def _settle_in_turn(self, key: _Key, join: _Join) -> None:
        try:
            await self._settle(join)
        except asyncio.CancelledError:  # this is the end
            raise
        except BaseException:
            self._go_on(key)
            raise
        self._go_on(key)

    def _go_on(self, key: _Key) -> None:
        """What was asked for while a call was under way goes now."""
        if key in self._under_way:
            self._under_way.remove(key)
            if key in self._joins:
                self._begin(key)

    async def _settle(self, join: _Join) -> None:
        entries = join.entries
        entries.sort()
        ranges, starts = _ranges(entries)
        pieces: list[_Entry] = []
        for at in range(0, len(ranges), core_limits.SETTLEMENTS_MAX):
            some = ranges[at : at + core_limits.SETTLEMENTS_MAX]
            starting = starts[at : at + core_limits.SETTLEMENTS_MAX + 1]
            pieces += await self._told(join, some, entries, starting)
        for at in range(0, len(pieces), core_limits.SETTLEMENTS_MAX):
            alone = pieces[at : at + core_limits.SETTLEMENTS_MAX]
            singles = [Settlement(lock, sequence, sequence) for lock, sequence, _, _ in alone]
            await self._told(join, singles, alone, range(len(alone) + 1))

    async def _told(
        self, join: _Join, ranges: Sequence[Settlement], entries: Sequence[_Entry], starts: Sequence[int]
    ) -> list[_Entry]:
        """Tell a partition of ranges, of which number n has the entries from `starts[n]` on, and tell their owners.

        Gives those that were refused with others: each is to be tried by itself.
        """
        error: PartitionedQueueError | None = None
        try:
            places, unsure = await self._carried(join, join.settle(ranges, session=join.lock))
            if unsure:  # by the first try, or because the lock had run out
                error = BrokerUnavailable("whether the message was settled cannot be told", outcome_unknown=True)
        except SessionLockLost as lost:
            if join.session is not None:
                join.session.lose(lost)
            error, places = lost, [*range(len(ranges))]
        except PartitionedQueueError as failure:
            error, places = failure, [*range(len(ranges))]
        again: list[_Entry] = []
        after = starts[0]
        for place in places:
            _tell(entries[after : starts[place]], None)
            after = starts[place + 1]
            refused = entries[starts[place] : after]
            if error is None and len(refused) > 1:
                again += refused
            else:
                _tell(refused, error or LockLost(LOCK_LOST))
        _tell(entries[after : starts[-1]], None)
        return again

    async def _carried(self, join: _Join, call: Call[list[int]]) -> tuple[list[int], bool]:
        """Carry a call, again where its outcome is unknown: what was settled the first time is refused then.

        Gives what was refused, and whether an earlier try may have settled it.
        """
        client, unsure, delay_s = self._clients[join.partition], False, core_limits.RECONNECT_DELAY_S_MIN
        while True:
            try:
                return await client.call(call), unsure
            except BrokerUnavailable as error:
                unsure = unsure or error.outcome_unknown
                if self._loop.time() + delay_s > join.until_s:
                    raise
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, core_limits.RECONNECT_DELAY_S_MAX)


def _tell(entries: Sequence[_Entry], error: PartitionedQueueError | None) -> None:
    for entry in entries:
        try:
            entry[3](error)
        except Exception:  # noqa: BLE001 -- the others are told all the same
            _log.exception("a receiver failed to hear what became of a message")


def _ranges(entries: Sequence[_Entry]) -> tuple[list[Settlement], list[int]]:
    """Ranges in order, and where the entries of each begin, and end.

    A message that comes twice is in a range of its own the second time.
    """
    ranges: list[Settlement] = []
    starts: list[int] = []
    lock = first = last = 0
    for place, (its_lock, sequence, _, _) in enumerate(entries):
        if sequence == last + 1 and its_lock == lock:
            last = sequence
            continue
        if starts:
            ranges.append(Settlement(lock, first, last))
        starts.append(place)
        lock, first, last = its_lock, sequence, sequence
    ranges.append(Settlement(lock, first, last))
    starts.append(len(entries))
    return ranges, starts
