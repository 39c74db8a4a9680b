"""Offsets of streams without a claim log: a number for each partition. Pure values.

    {"v": 1, "m": "browse", "o": {"<partition>": <last sequence number that was read>}}
    {"v": 1, "m": "receiveAndDelete", "o": {"<partition>": <messages asked for so far>}}

The first END offset also says where it began ("s"): Spark asks for the initial offset again when batch 0 is replayed,
and by then `latest` would be another place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from partitionedqueue_spark.offsets import VERSION, InvalidOffset, by_partition, numbers_of


@dataclass(frozen=True, slots=True)
class Marks:
    """A number for each partition; None: a query that has not begun."""

    mode: str
    numbers: tuple[int, ...] | None = None
    began: tuple[int, ...] | None = None

    @classmethod
    def parse(cls, offset: Mapping[str, Any], mode: str, partitions: int) -> Self:
        """Read an offset. Raises InvalidOffset."""
        if offset.get("v") != VERSION or not isinstance(offset.get("o"), dict):
            raise InvalidOffset(f"the checkpoint holds an offset that this version does not know: {dict(offset)}")
        if not offset["o"]:
            return cls(mode)
        if offset.get("m") != mode:
            raise InvalidOffset(
                f"the checkpoint was written with option mode set to {offset.get('m', 'consume')}, and now it is {mode}"
            )
        began = numbers_of(offset["s"], partitions) if "s" in offset else None
        return cls(mode, numbers_of(offset["o"], partitions), began)

    def offset(self) -> dict[str, Any]:
        """The offset as Spark keeps it."""
        if self.numbers is None:
            return {"v": VERSION, "o": {}}
        began = {} if self.began is None else {"s": by_partition(self.began)}
        return {"v": VERSION, "m": self.mode, "o": by_partition(self.numbers)} | began

    def moved(self, by: Sequence[int]) -> Self:
        """The same, so much further."""
        assert self.numbers is not None
        return type(self)(self.mode, tuple(n + more for n, more in zip(self.numbers, by, strict=True)))
