"""Making, changing and deleting queues where they are written down: what a source has to be for that.

What is asked for is done when it is written there. The catalog hears of it as of every other change.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway.entities.queue import Queue, QueueName


class QueueExists(PartitionedQueueError):
    """There is a queue of that name (Azure: MessagingEntityAlreadyExists)."""


class ChangeRefused(PartitionedQueueError):
    """Where queues are written down, this one is not taken as it should be; the words say why."""


class ChangeConflict(PartitionedQueueError):
    """Somebody else changes the same queue at this moment; the same request works shortly."""


class ChangesNotTaken(PartitionedQueueError):
    """Queues are written down where this gateway cannot write."""


class SourceUnavailable(PartitionedQueueError):
    """Where queues are written down cannot be reached just now; whether anything was done is not known."""


class QueueChanges(Protocol):
    """All of it raises what stands above, and EntityNotFound."""

    async def create(self, name: QueueName, manifest: Mapping[str, Any]) -> None:
        """Write a new queue down. Raises QueueExists."""

    async def change(self, queue: Queue, spec: Mapping[str, Any]) -> int:
        """Change these fields of a queue's spec, None: back to the default; the queue's generation from then on."""

    async def delete(self, queue: Queue, *, refused: bool = False) -> None:
        """Delete a queue and what it holds. `refused`: nobody has acted upon it yet, so there is nothing to keep."""


class NoChanges:
    """For queues that somebody writes down by hand."""

    async def create(self, name: QueueName, manifest: Mapping[str, Any]) -> None:
        """Raises ChangesNotTaken."""
        raise ChangesNotTaken(_WORDS)

    async def change(self, queue: Queue, spec: Mapping[str, Any]) -> int:
        """Raises ChangesNotTaken."""
        raise ChangesNotTaken(_WORDS)

    async def delete(self, queue: Queue, *, refused: bool = False) -> None:
        """Raises ChangesNotTaken."""
        raise ChangesNotTaken(_WORDS)


_WORDS = "The queues of this gateway are written down in a folder, by hand: change them there."
