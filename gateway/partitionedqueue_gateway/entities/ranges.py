"""Messages under locks, as the ranges that brokers are told of."""

from collections.abc import Iterable
from typing import Final, Protocol

from partitionedqueue.broker.replies import Settlement

LOCK_LOST: Final = (
    "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue."
)
"""Azure's words, which clients know."""


class Held(Protocol):
    """A message under a lock."""

    @property
    def sequence(self) -> int:
        """Its number in the partition."""

    @property
    def lock(self) -> int:
        """The number of the lock."""


def merged(several: Iterable[Held]) -> list[Settlement]:
    """As few ranges as they make."""
    ranges: list[Settlement] = []
    first = last = lock = 0
    for number, sequence in sorted({(one.lock, one.sequence) for one in several}):
        if number == lock and sequence == last + 1:
            last = sequence
            continue
        if lock:
            ranges.append(Settlement(lock, first, last))
        lock, first, last = number, sequence, sequence
    if lock:
        ranges.append(Settlement(lock, first, last))
    return ranges
