"""Messages as a round of a task brings them, column by column."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Longs: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Truths: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Sequence numbers in the partition, enqueued times, deliveries with this one, states as pq_states' letters.

    No states: messages that are consumed. `stored` is empty where no message was asked for.
    """

    sequences: Longs
    times_ms: Longs
    deliveries: Longs
    stored: list[bytes]
    states: Bytes | None = None

    def __len__(self) -> int:
        return len(self.sequences)

    def part(self, first: int, stop: int) -> "Chunk":
        """Messages first..stop-1 of it."""
        return Chunk(
            self.sequences[first:stop],
            self.times_ms[first:stop],
            self.deliveries[first:stop],
            self.stored[first:stop],
            None if self.states is None else self.states[first:stop],
        )
