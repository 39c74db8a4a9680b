"""`pq receive` and `pq peek`: messages of all partitions, merged by age."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from typing import TypeVar

from partitionedqueue.broker import calls
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import PeekedRun, Received, Totals
from partitionedqueue.model import limits as model_limits
from partitionedqueue.model.errors import BrokerUnavailable, LockLost
from partitionedqueue.model.identifiers import split_sequence_number
from partitionedqueue_cli import deliveries, namespace
from partitionedqueue_cli.deliveries import Delivery
from partitionedqueue_cli.failures import CommandFailed

T = TypeVar("T")


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


class _Partitions:
    """The brokers of one queue. One that is down is left out, and named at the end."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.queue = namespace.load_running(arguments.data_dir).queue_up(arguments.queue)
        self.spec = self.queue.spec()
        self.keys = QueueKeys(arguments.queue)
        self.down: dict[int, str] = {}
        self._clients = [BrokerClient(address, timeout_s=arguments.timeout) for address in self.queue.addresses()]

    def __len__(self) -> int:
        return len(self._clients)

    async def call(self, partition: int, call: Call[T]) -> T | None:
        """One call; None where the partition is down."""
        try:
            return await self._clients[partition].call(call)
        except BrokerUnavailable as error:
            self.down[partition] = str(error)
            return None

    async def totals(self, partition: int) -> Totals | None:
        """How one partition stands."""
        call: Call[Totals] = calls.totals(self.keys)
        return await self.call(partition, call)

    async def close(self) -> None:
        """Close every connection."""
        for client in self._clients:
            await client.close()

    def complain(self) -> int:
        """Name what is down; the exit code."""
        for partition, words in sorted(self.down.items()):
            print(f"pq: partition {partition} of queue {self.spec.name} is down: {words}", file=sys.stderr)
        return 1 if self.down else 0


def receive(arguments: argparse.Namespace) -> int:
    """Take messages of all partitions, print them, and complete them (or not)."""
    return asyncio.run(_receive(arguments))


async def _receive(arguments: argparse.Namespace) -> int:
    partitions = _Partitions(arguments)
    lock_ms = 0 if arguments.delete else partitions.spec.lock_duration_ms
    left: int = arguments.number
    try:
        while left > 0:
            found = await _take(partitions, min(left, model_limits.RECEIVE_MESSAGES_MAX), lock_ms)
            if not found:
                break
            left -= len(found)
            try:
                _print(found, as_json=arguments.json)
            except BaseException:
                if lock_ms:
                    await _settle(partitions, found, complete=False)
                raise
            if lock_ms:
                await _settle(partitions, found, complete=not arguments.no_complete)
            if arguments.no_complete:
                break  # what was given back would come again
    finally:
        await partitions.close()
    if left == arguments.number and not partitions.down and not arguments.json:
        print(f"No message is ready in queue {arguments.queue}", file=sys.stderr)
    return partitions.complain()


async def _take(partitions: _Partitions, wanted: int, lock_ms: int) -> list[Delivery]:
    keys, numbers = partitions.keys, range(len(partitions))
    totals = await asyncio.gather(*(partitions.totals(n) for n in numbers))
    heads = await asyncio.gather(*(_peek_one(partitions, n, 1, 1) for n in numbers))
    oldest_first = sorted(numbers, key=lambda n: heads[n][0].order if heads[n] else (0, n, 0))
    plan = shares([0 if one is None else one.ready for one in totals], wanted, oldest_first)

    async def ask(partition: int, most: int) -> list[Delivery]:
        reply: Received | None = await partitions.call(partition, calls.receive(keys, most=most, lock_ms=lock_ms))
        return [] if reply is None else [one for run in reply.runs for one in deliveries.of_run(partition, run)]

    found = [one for some in await asyncio.gather(*(ask(n, plan[n]) for n in numbers if plan[n])) for one in some]
    for number in numbers:  # an expired lock gives its messages back at the next receive: ask where there are locks
        state = totals[number]
        if len(found) < wanted and state is not None and state.locked + state.claimed:
            found += await ask(number, wanted - len(found))
    return sorted(found, key=lambda one: one.order)


async def _settle(partitions: _Partitions, found: list[Delivery], *, complete: bool) -> None:
    lost = 0
    for partition in sorted({one.partition for one in found}):
        settlements = [one.settlement for one in found if one.partition == partition]
        call = calls.complete(partitions.keys, settlements) if complete else calls.abandon(partitions.keys, settlements)
        refused = await partitions.call(partition, call)
        lost += len(settlements) if refused is None else len(refused)
    if lost:
        raise LockLost(f"{lost} of the messages had lost their lock before they were settled; they will come again")


def peek(arguments: argparse.Namespace) -> int:
    """Show messages of all partitions without taking them."""
    return asyncio.run(_peek(arguments))


async def _peek(arguments: argparse.Namespace) -> int:
    partitions = _Partitions(arguments)
    begin: list[int | None] = [1] * len(partitions)
    if arguments.start is not None:
        begin = _places(arguments.start, len(partitions))
    try:
        found = await asyncio.gather(
            *(_peek_one(partitions, number, at, arguments.number) for number, at in enumerate(begin) if at is not None)
        )
    finally:
        await partitions.close()
    ordered = sorted(
        (one for some in found for one in some),
        key=lambda one: one.order if arguments.start is None else (one.partition, one.local, 0),
    )
    _print(ordered[: arguments.number], as_json=arguments.json)
    if not ordered and not partitions.down and not arguments.json:
        print(f"No message is in queue {arguments.queue}", file=sys.stderr)
    return partitions.complain()


def _places(start: int, partitions: int) -> list[int | None]:
    """Where each partition's peek begins: from a sequence number on; earlier partitions are left out."""
    try:
        partition, local = split_sequence_number(start)
    except ValueError as error:
        raise CommandFailed(str(error)) from error
    if partition >= partitions:
        raise CommandFailed(f"{start} is of partition {partition}; the queue has partitions 0 to {partitions - 1}")
    return [None if n < partition else max(local, 1) if n == partition else 1 for n in range(partitions)]


async def _peek_one(partitions: _Partitions, partition: int, begin: int, wanted: int) -> list[Delivery]:
    found: list[Delivery] = []
    while len(found) < wanted:
        most = min(wanted - len(found), model_limits.RECEIVE_MESSAGES_MAX)
        call = calls.peek(partitions.keys, from_sequence=begin, most=most, bytes_most=model_limits.PEEK_BYTES_MAX)
        runs: list[PeekedRun] | None = await partitions.call(partition, call)
        if not runs:
            break
        found += [one for run in runs for one in deliveries.of_run(partition, run)]
        begin = found[-1].local + 1
    return found


def _print(found: Sequence[Delivery], *, as_json: bool) -> None:
    for one in found:
        print(json.dumps(one.as_json(), ensure_ascii=False) if as_json else one.as_line())
    sys.stdout.flush()
