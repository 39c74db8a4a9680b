"""The names of a queue's keys inside a broker; the Lua library derives the same (includes/segments.lua)."""

from dataclasses import dataclass

from partitionedqueue.model import limits


@dataclass(frozen=True, slots=True)
class QueueKeys:
    """The keys of one queue."""

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


def place_of(sequence: int) -> tuple[int, int]:
    """The segment of a message, and its index in it."""
    return divmod(sequence - 1, limits.SEGMENT_MESSAGES)
