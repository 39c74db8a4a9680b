"""What a query asks for, from the filters that Spark hands over: partitions and segments without it are not read.

All filters go back to Spark as well: it looks at what is read once more, and so nothing here must be exact, only never
too narrow.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Self

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from partitionedqueue.model import limits

STATES: Final = {"active": b"a", "locked": b"l", "deferred": b"d", "scheduled": b"s"}
ALL_STATES: Final = b"alds"
_OWN: Final = (1 << limits.SEQUENCE_BITS) - 1
_MOST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Numbers:
    """Whole numbers from low to high, and where that is known only those among some."""

    low: int = 0
    high: int = _MOST
    among: frozenset[int] | None = None

    def __contains__(self, number: int) -> bool:
        return self.low <= number <= self.high and (self.among is None or number in self.among)

    def narrowed(self, one: Filter) -> Self:
        """Those that a filter lets through."""
        match one:
            case EqualTo(value=int(value)) | EqualNullSafe(value=int(value)):
                return self._only((value,))
            case In(value=tuple(values)) if all(isinstance(value, int) for value in values):
                return self._only(values)
            case GreaterThan(value=int(value)):
                return replace(self, low=max(self.low, value + 1))
            case GreaterThanOrEqual(value=int(value)):
                return replace(self, low=max(self.low, value))
            case LessThan(value=int(value)):
                return replace(self, high=min(self.high, value - 1))
            case LessThanOrEqual(value=int(value)):
                return replace(self, high=min(self.high, value))
        return self

    def _only(self, values: Iterable[int]) -> Self:
        found = frozenset(values)
        return replace(self, among=found if self.among is None else self.among & found)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Of one partition: its own sequence numbers, and the states of messages."""

    numbers: Numbers = Numbers(1, _OWN)
    states: bytes = ALL_STATES

    def ranges(self, last: int) -> Iterator[tuple[int, int]]:
        """Ranges of sequence numbers up to `last`, from segment to segment where single messages are asked for."""
        high = min(self.numbers.high, last)
        if self.numbers.among is None:
            if self.numbers.low <= high:
                yield self.numbers.low, high
            return
        segments: dict[int, list[int]] = {}
        for number in sorted(self.numbers.among):
            if self.numbers.low <= number <= high:
                segments.setdefault((number - 1) // limits.SEGMENT_MESSAGES, []).append(number)
        for several in segments.values():
            yield several[0], several[-1]

    def narrowed(self, first: int, states: bytes) -> bytes:
        """The states of messages from `first` on, with `-` for what is not wanted."""
        if self.states != ALL_STATES:
            states = states.translate(bytes(n if n in self.states else ord("-") for n in range(256)))
        if self.numbers.among is None:
            return states
        return bytes(
            letter if number in self.numbers.among else ord("-") for number, letter in enumerate(states, first)
        )


@dataclass(frozen=True, slots=True)
class Pushed:
    """What all filters let through."""

    partitions: Numbers = Numbers()
    sequences: Numbers = Numbers()
    states: bytes = ALL_STATES

    @classmethod
    def of(cls, filters: Iterable[Filter]) -> Self:
        """Take in what can be used of the filters, which are joined by AND."""
        found = cls()
        for one in filters:
            column = getattr(one, "attribute", None)
            if column == ("partition",):
                found = replace(found, partitions=found.partitions.narrowed(one))
            elif column == ("sequence_number",):
                found = replace(found, sequences=found.sequences.narrowed(one))
            elif column == ("state",):
                found = replace(found, states=found._with_states(one))
        return found

    def _with_states(self, one: Filter) -> bytes:
        match one:
            case EqualTo(value=str(value)) | EqualNullSafe(value=str(value)):
                names = {value}
            case In(value=tuple(values)):
                names = {value for value in values if isinstance(value, str)}
            case _:
                return self.states
        letters = b"".join(STATES[name] for name in names if name in STATES)
        return bytes(letter for letter in self.states if letter in letters)

    def of_partition(self, partition: int) -> Wanted | None:
        """What is asked for of one partition; None where it is nothing."""
        base = partition << limits.SEQUENCE_BITS
        low, high = max(self.sequences.low - base, 1), min(self.sequences.high - base, _OWN)
        among = self.sequences.among
        if among is not None:
            among = frozenset(number - base for number in among if number >> limits.SEQUENCE_BITS == partition)
        if partition not in self.partitions or low > high or among == frozenset() or not self.states:
            return None
        return Wanted(Numbers(low, high, among), self.states)
