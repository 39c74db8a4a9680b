"""What a queue holds, added up over its partitions: one meaning for the operator, the gateway and whoever asks them."""

from dataclasses import dataclass, fields
from typing import Self

from partitionedqueue.broker.replies import Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Messages by state, as Azure names them; sessions with something to receive; bytes stored.

    `active` are those that a receiver may get or holds under a lock or a claim. `messages` is everything that deleting
    the queue would lose.
    """

    active: int = 0
    dead_letter: int = 0
    scheduled: int = 0
    deferred: int = 0
    transfer: int = 0
    transfer_dead_letter: int = 0
    sessions: int = 0
    messages: int = 0
    size_in_bytes: int = 0

    @classmethod
    def of(cls, totals: Totals) -> Self:
        """Those of one partition."""
        beside = totals.dead_letters + totals.transfers + totals.transfer_dead_letters
        return cls(
            active=totals.ready + totals.locked + totals.claimed,
            dead_letter=totals.dead_letters,
            scheduled=totals.scheduled,
            deferred=totals.deferred,
            transfer=totals.transfers,
            transfer_dead_letter=totals.transfer_dead_letters,
            sessions=totals.sessions + totals.sessions_locked,
            messages=totals.messages + beside,
            size_in_bytes=totals.bytes,
        )

    def by_state(self) -> dict[str, int]:
        """Messages by where they are, under the names of the custom resource's status and of the gateway's answers."""
        return {
            "active": self.active,
            "deadLetter": self.dead_letter,
            "scheduled": self.scheduled,
            "deferred": self.deferred,
            "transfer": self.transfer,
            "transferDeadLetter": self.transfer_dead_letter,
        }

    def __add__(self, other: Self) -> Self:
        return type(self)(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})
