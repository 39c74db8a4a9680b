"""The names of a queue's keys inside a broker; the Lua library derives the same (includes/segments.lua)."""

from dataclasses import dataclass
from typing import Final

from partitionedqueue.model import limits

DEAD_LETTERS: Final = "/$DeadLetterQueue"  # Azure's paths of the sub-queues, after the name of a queue
TRANSFERS: Final = "/$Transfer"


@dataclass(frozen=True, slots=True)
class QueueKeys:
    """The keys of one queue, or of one of its sub-queues."""

    name: str

    @property
    def state(self) -> str:
        """The state hash; every command's one key."""
        return f"pq:{self.name}"

    def segment(self, segment: int) -> str:
        """The list of the bodies of one segment."""
        return f"pq:{self.name}:seg:{segment}"

    def times(self, segment: int) -> str:
        """The enqueued-time marks of one segment."""
        return f"pq:{self.name}:times:{segment}"

    @property
    def segments(self) -> str:
        """The sorted set of the segments that hold messages."""
        return f"pq:{self.name}:segments"

    @property
    def wake(self) -> str:
        """The channel that says when asking again is worthwhile; its messages name a session, or nothing."""
        return f"pq:{self.name}:wake"

    @property
    def dead_letters(self) -> "QueueKeys":
        """The sub-queue of what was dead-lettered from here."""
        return QueueKeys(self.name + DEAD_LETTERS)

    @property
    def transfers(self) -> "QueueKeys":
        """The sub-queue of what is on its way to another queue."""
        return QueueKeys(self.name + TRANSFERS)


def place_of(sequence: int) -> tuple[int, int]:
    """The segment of a message, and its index in it."""
    return divmod(sequence - 1, limits.SEGMENT_MESSAGES)
