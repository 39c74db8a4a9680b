"""`pq receive`: messages of all partitions, merged by age, or those of one session."""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

from partitionedqueue.broker import calls
from partitionedqueue.broker.replies import SessionLock
from partitionedqueue.model import limits as model_limits
from partitionedqueue.model import partitioning
from partitionedqueue.model.errors import LockLost, SessionLockLost
from partitionedqueue_cli import deliveries, peeking
from partitionedqueue_cli.deliveries import Delivery
from partitionedqueue_cli.failures import CommandFailed
from partitionedqueue_cli.partitions import Partitions


class _Held(NamedTuple):
    """A session that is held, and its partition."""

    partition: int
    session: SessionLock


def shares(ready: Sequence[int], wanted: int, order: Sequence[int]) -> list[int]:
    """How many of `wanted` messages to take from each partition: as evenly as what is `ready` allows.

    Where there are fewer messages to take than partitions, those that come first in `order` give.
    """
    taken, left = [0] * len(ready), min(wanted, sum(ready))
    while left > 0:
        open_partitions = [p for p in order if taken[p] < ready[p]]
        each = max(1, left // len(open_partitions))
        for partition in open_partitions[:left]:
            more = min(each, ready[partition] - taken[partition], left)
            taken[partition] += more
            left -= more
    return taken


def receive(arguments: argparse.Namespace) -> int:
    """Take messages of all partitions or of a session, print them, and complete them (or not)."""
    return asyncio.run(_receive(arguments))


async def _receive(arguments: argparse.Namespace) -> int:
    async with Partitions(arguments, dead_letters=arguments.dead_letters) as partitions:
        _check_sessions(arguments, partitions)
        held, found = None, 0
        if partitions.has_sessions:
            held = await _accept(partitions, arguments.session)
        if held is not None or not partitions.has_sessions:
            try:
                found = await _receive_from(partitions, held, arguments)
            finally:
                if held is not None:
                    with contextlib.suppress(SessionLockLost):
                        await partitions.call(held.partition, calls.release_session(partitions.keys, held.session))
    if not found and not partitions.down and not arguments.json:
        print(f"No message is ready in queue {partitions.keys.name}", file=sys.stderr)
    return partitions.complain()


def _check_sessions(arguments: argparse.Namespace, partitions: Partitions) -> None:
    wanted = arguments.session is not None or arguments.next_session
    if partitions.has_sessions and not wanted:
        raise CommandFailed(
            f"queue {partitions.keys.name} has sessions: name one (--session ID), or take the next (--next-session)"
        )
    if wanted and not partitions.has_sessions:
        raise CommandFailed(f"queue {partitions.keys.name} has no sessions")


async def _accept(partitions: Partitions, session_id: str | None) -> _Held | None:
    """Lock the session, or the first available one in partition order."""
    numbers: Sequence[int] = range(len(partitions))
    if session_id is not None:
        numbers = [partitioning.partition_of(session_id, len(partitions))]
    for number in numbers:
        accepted = await partitions.call(number, calls.accept_session(partitions.keys, session_id))
        if accepted is not None and accepted.session is not None:
            return _Held(number, accepted.session)
    return None


async def _receive_from(partitions: Partitions, held: _Held | None, arguments: argparse.Namespace) -> int:
    """How many messages were received."""
    lock_ms = 0 if arguments.delete else calls.QUEUES_LOCK
    left: int = arguments.number
    while left > 0:
        wanted = min(left, model_limits.RECEIVE_MESSAGES_MAX)
        if held is not None:
            found = await _take_one(partitions, held.partition, wanted, lock_ms, held.session)
        else:
            found = await _take(partitions, wanted, lock_ms)
        if not found:
            break
        left -= len(found)
        try:
            deliveries.print_all(found, as_json=arguments.json)
        except BaseException:
            if lock_ms:
                await _settle(partitions, found, held, complete=False)
            raise
        if lock_ms:
            await _settle(partitions, found, held, complete=not arguments.no_complete)
        if arguments.no_complete:
            break  # what was given back would come again
    return int(arguments.number) - left


async def _take(partitions: Partitions, wanted: int, lock_ms: int) -> list[Delivery]:
    numbers = range(len(partitions))
    totals = await asyncio.gather(*(partitions.totals(number) for number in numbers))
    heads = await asyncio.gather(*(peeking.peek_one(partitions, n, 1, 1, states="a") for n in numbers))
    oldest_first = sorted(numbers, key=lambda n: heads[n][0].order if heads[n] else (0, n, 0))
    plan = shares([0 if one is None else one.ready for one in totals], wanted, oldest_first)
    taken = await asyncio.gather(*(_take_one(partitions, n, plan[n], lock_ms) for n in numbers if plan[n]))
    found = [one for some in taken for one in some]
    for number in numbers:  # an expired lock gives its messages back at the next receive: ask where there are locks
        state = totals[number]
        if len(found) < wanted and state is not None and state.locked + state.claimed:
            found += await _take_one(partitions, number, wanted - len(found), lock_ms)
    return sorted(found, key=lambda one: one.order)


async def _take_one(
    partitions: Partitions, number: int, most: int, lock_ms: int, session: SessionLock | None = None
) -> list[Delivery]:
    call = calls.receive(partitions.keys, most=most, lock_ms=lock_ms, session=session)
    reply = await partitions.call(number, call)
    return [] if reply is None else [one for run in reply.runs for one in deliveries.of_run(number, run)]


async def _settle(partitions: Partitions, found: list[Delivery], held: _Held | None, *, complete: bool) -> None:
    lost, keys, session = 0, partitions.keys, held.session if held is not None else None
    for partition in sorted({one.partition for one in found}):
        settlements = [one.settlement for one in found if one.partition == partition]
        call = (calls.complete if complete else calls.abandon)(keys, settlements, session=session)
        refused = await partitions.call(partition, call)
        lost += len(settlements) if refused is None else len(refused)
    if lost:
        raise LockLost(f"{lost} of the messages had lost their lock before they were settled; they will come again")
