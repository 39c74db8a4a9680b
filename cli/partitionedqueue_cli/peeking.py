"""`pq peek`: messages of all partitions, shown and not taken."""

import argparse
import asyncio
import sys

from partitionedqueue.broker import calls
from partitionedqueue.model import limits as model_limits
from partitionedqueue_cli import deliveries
from partitionedqueue_cli.deliveries import Delivery
from partitionedqueue_cli.partitions import Partitions


def peek(arguments: argparse.Namespace) -> int:
    """Show messages of all partitions, deferred and scheduled ones too, without taking them."""
    return asyncio.run(_peek(arguments))


async def _peek(arguments: argparse.Namespace) -> int:
    async with Partitions(arguments, dead_letters=arguments.dead_letters) as partitions:
        begin: list[int | None] = [1] * len(partitions)
        if arguments.start is not None:
            begin = _places(arguments.start, partitions)
        found = await asyncio.gather(
            *(
                peek_one(partitions, number, at, arguments.number, session=arguments.session)
                for number, at in enumerate(begin)
                if at is not None
            )
        )
    ordered = sorted(
        (one for some in found for one in some),
        key=lambda one: one.order if arguments.start is None else (one.partition, one.local, 0),
    )
    deliveries.print_all(ordered[: arguments.number], as_json=arguments.json)
    if not ordered and not partitions.down and not arguments.json:
        print(f"No message is in queue {partitions.keys.name}", file=sys.stderr)
    return partitions.complain()


def _places(start: int, partitions: Partitions) -> list[int | None]:
    """Where each partition's peek begins: from a sequence number on; earlier partitions are left out."""
    partition, local = partitions.place_of(start)
    return [None if n < partition else max(local, 1) if n == partition else 1 for n in range(len(partitions))]


async def peek_one(
    partitions: Partitions, partition: int, begin: int, wanted: int, *, states: str = "", session: str | None = None
) -> list[Delivery]:
    """Up to so many messages of one partition from a sequence number on; none where it is down."""
    found: list[Delivery] = []
    while begin and len(found) < wanted:
        call = calls.peek(
            partitions.keys,
            from_sequence=begin,
            most=min(wanted - len(found), model_limits.PEEK_MESSAGES_MAX),
            bytes_most=model_limits.PEEK_BYTES_MAX,
            states=states,
            session=session,
        )
        peeked = await partitions.call(partition, call)
        if peeked is None:
            break
        found += [one for run in peeked.runs for one in deliveries.of_run(partition, run)]
        begin = peeked.next
    return found
