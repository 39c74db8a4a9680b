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
        ordinals, group = offset["o"], offset.get("g")
        if not ordinals:
            return cls(None, (0,) * partitions)
        if sorted(ordinals, key=int) != [str(partition) for partition in range(partitions)]:
            raise InvalidOffset(
                f"the checkpoint was written for a queue of {len(ordinals)} partitions; {partitions} brokers are given"
            )
        return cls(group, tuple(int(ordinals[str(partition)]) for partition in range(partitions)))

    def offset(self) -> dict[str, Any]:
        """The offset as Spark keeps it."""
        if self.group is None:
            return initial_offset()
        return {"v": VERSION, "g": self.group, "o": {str(n): ordinal for n, ordinal in enumerate(self.ordinals)}}


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
