"""`pq purge` and `pq resubmit`: many messages at once, away or back to where they came from."""

import argparse
import asyncio

from partitionedqueue.broker import calls
from partitionedqueue.broker.replies import Moved
from partitionedqueue_cli.partitions import Partitions

STATES = ("active", "deferred", "scheduled")


def purge(arguments: argparse.Namespace) -> int:
    """Remove messages for good; what is locked stays."""
    return asyncio.run(_purge(arguments))


async def _purge(arguments: argparse.Namespace) -> int:
    states = "".join(sorted({state[0] for state in arguments.state or STATES}))
    async with Partitions(arguments, dead_letters=arguments.dead_letters) as partitions:
        counts = await asyncio.gather(*(_purge_one(partitions, number, states) for number in range(len(partitions))))
    print(f"Purged {_messages(sum(counts))} of queue {partitions.keys.name}")
    return partitions.complain()


async def _purge_one(partitions: Partitions, number: int, states: str) -> int:
    count = 0
    moved: Moved | None = Moved(0, 0, 0)
    while moved is not None:
        moved = await partitions.call(
            number, calls.purge(partitions.keys, states=states, upto=moved.upto, cursor=moved.more)
        )
        count += moved.count if moved is not None else 0
        if moved is not None and not moved.more:
            break
    return count


def resubmit(arguments: argparse.Namespace) -> int:
    """Move dead letters back to their queue: all that are there now, or those that are named."""
    return asyncio.run(_resubmit(arguments))


async def _resubmit(arguments: argparse.Namespace) -> int:
    async with Partitions(arguments, dead_letters=True) as partitions:
        named: dict[int, list[int]] = {number: [] for number in range(len(partitions))}
        for sequence in arguments.sequence_number:
            partition, local = partitions.place_of(sequence)
            named[partition].append(local)
        counts = await asyncio.gather(
            *(
                _resubmit_one(partitions, number, here)
                for number, here in named.items()
                if here or not arguments.sequence_number
            )
        )
    print(f"Resubmitted {_messages(sum(counts))} of queue {partitions.keys.name}")
    return partitions.complain()


async def _resubmit_one(partitions: Partitions, number: int, sequences: list[int]) -> int:
    count = 0
    moved: Moved | None = Moved(0, 0, 0)
    while moved is not None:
        moved = await partitions.call(number, calls.resubmit(partitions.keys, upto=moved.upto, sequences=sequences))
        count += moved.count if moved is not None else 0
        if moved is not None and (sequences or not moved.more):
            break
    return count


def _messages(count: int) -> str:
    return f"{count} {'message' if count == 1 else 'messages'}"
