"""Spark's offsets: how far a reading group is in each partition's claim log. Pure values; nothing here does I/O.

    {"v": 1, "g": "<group>", "o": {"<partition>": <ordinal in the claim log>}}

The group travels inside the END offset: a Python source is not told its checkpoint, and Spark asks for the initial
offset again when batch 0 is replayed, so that one is a constant. Spark compares offsets as JSON text: partitions come
in order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from partitionedqueue.model.errors import PartitionedQueueError

VERSION: Final = 1


class InvalidOffset(PartitionedQueueError):
    """A checkpoint that is not of this source, or not of this queue."""


@dataclass(frozen=True, slots=True)
class Position:
    """The ordinals that a group has reached, by partition. No group yet: a query that has not read anything."""

    group: str | None
    ordinals: tuple[int, ...]

    @classmethod
    def parse(cls, offset: Mapping[str, Any], partitions: int) -> Self:
        """Read an offset. Raises InvalidOffset, also where it was written for another number of partitions."""
        if offset.get("v") != VERSION or not isinstance(offset.get("o"), dict):
            raise InvalidOffset(f"the checkpoint holds an offset that this version does not know: {dict(offset)}")
        if not offset["o"]:
            return cls(None, (0,) * partitions)
        if "m" in offset:
            raise InvalidOffset(
                f"the checkpoint was written with option mode set to {offset['m']}, and now it is consume"
            )
        return cls(offset.get("g"), numbers_of(offset["o"], partitions))

    def offset(self) -> dict[str, Any]:
        """The offset as Spark keeps it."""
        if self.group is None:
            return initial_offset()
        return {"v": VERSION, "g": self.group, "o": by_partition(self.ordinals)}


def numbers_of(found: Mapping[str, Any], partitions: int) -> tuple[int, ...]:
    """The numbers of an offset, in the partitions' order. Raises InvalidOffset where it has others."""
    if sorted(found, key=int) != [str(partition) for partition in range(partitions)]:
        raise InvalidOffset(
            f"the checkpoint was written for a queue of {len(found)} partitions; {partitions} brokers are given"
        )
    return tuple(int(found[str(partition)]) for partition in range(partitions))


def by_partition(numbers: Sequence[int]) -> dict[str, int]:
    """Numbers as an offset has them."""
    return {str(partition): number for partition, number in enumerate(numbers)}


def initial_offset() -> dict[str, Any]:
    """Where a new query begins: a constant."""
    return {"v": VERSION, "o": {}}


def fair_shares(most: int, available: Sequence[int]) -> list[int]:
    """Spread `most` messages over partitions that have `available` ones; what one does not use goes to the others."""
    shares = [0] * len(available)
    left = most
    hungry = [n for n, count in enumerate(available) if count > 0]
    while left > 0 and hungry:
        each, more = divmod(left, len(hungry))
        for place, n in enumerate(hungry):
            part = min(available[n] - shares[n], each + (place < more))
            shares[n] += part
            left -= part
        hungry = [n for n in hungry if shares[n] < available[n]]
    return shares


def byte_shares(bytes_most: int, held: Sequence[int], sizes: Sequence[int], turn: int) -> list[int]:
    """Spread a batch's bytes over partitions that hold `held` messages of about `sizes` bytes each.

    No more partitions than have room for a message; which of them, goes round with `turn`. Whole numbers only: a
    partition's claim ends with the message that reaches its share.
    """
    hungry = [n for n, count in enumerate(held) if count > 0]
    if not hungry:
        return [0] * len(held)
    mean = max(1, sum(sizes[n] for n in hungry) // len(hungry))
    some = max(1, min(len(hungry), bytes_most // mean))
    first = turn % len(hungry)
    chosen = [*hungry[first:], *hungry[:first]][:some]
    shares = [0] * len(held)
    for place, n in enumerate(chosen):
        shares[n] = bytes_most // some + (place < bytes_most % some)
    return shares
