"""One who receives from an entity, by credit."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway.entities.taken import Taken

OnMessages: TypeAlias = Callable[[Sequence[Taken]], None]
OnLost: TypeAlias = Callable[[PartitionedQueueError], None]


class Served(Protocol):
    """By whom receivers are served."""

    def wants_more(self, receiver: "Receiver", count: int) -> None:
        """A receiver wants so many more; so many fewer where it is negative."""

    async def drained(self, enough: Callable[[], bool]) -> None:
        """Wait until all partitions have been asked, or there is enough."""

    def left(self, receiver: "Receiver") -> None:
        """A receiver has closed."""

    def returned(self, messages: Sequence[Taken]) -> None:
        """A receiver was handed what it has no use for."""


class Receiver:
    """Made by `Entity.receiver`. What it wants is handed over as it comes, never more; from callbacks of the loop."""

    def __init__(self, served: Served, on_messages: OnMessages, on_lost: OnLost | None) -> None:
        self.wanted = 0
        """Messages that may still be handed over."""
        self.lost: PartitionedQueueError | None = None
        """Why nothing will come any more, if so."""
        self.on_messages = on_messages
        self._on_lost = on_lost
        self._served = served
        self._closed = False

    def want(self, count: int) -> None:
        """So many messages more may be handed over."""
        if not self._closed and self.lost is None and count > 0:
            self.wanted += count
            self._served.wants_more(self, count)

    def stop(self) -> None:
        """Want nothing more: what is under way goes to others, or back. Nothing is handed over after this."""
        count, self.wanted = self.wanted, 0
        if count:
            self._served.wants_more(self, -count)

    async def drain(self) -> None:
        """Have what is ready now handed over, as far as it is wanted; then nothing more is wanted."""
        if self.wanted:
            await self._served.drained(lambda: not self.wanted)
        self.stop()

    def give_back(self, messages: Sequence[Taken]) -> None:
        """What it was handed last and nobody has seen: it is as if it had never been handed over."""
        self._served.returned(messages)

    def close(self) -> None:
        """`stop`, for good. What was handed over stays locked: whoever has it gives it back."""
        self.stop()
        if not self._closed:
            self._closed = True
            self._served.left(self)

    def lose(self, error: PartitionedQueueError) -> None:
        """Nothing will come any more; told once."""
        if self._closed or self.lost is not None:
            return
        self.lost = error
        self.stop()
        if self._on_lost is not None:
            self._on_lost(error)
