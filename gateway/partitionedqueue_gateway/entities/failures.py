"""What can go wrong between the gateway and a queue's brokers, beyond what any client of a broker knows."""

from partitionedqueue.model.errors import BrokerUnavailable, PartitionedQueueError


class NoCredentials(BrokerUnavailable):
    """The password of a queue's brokers cannot be had; the words say why. It may be had later."""


class EntityNotFound(PartitionedQueueError):
    """There is no entity of that name (Azure: MessagingEntityNotFound). `path` is what was asked for."""

    def __init__(self, path: str) -> None:
        super().__init__(f"The messaging entity '{path}' could not be found.")
        self.path = path


class QueueGone(EntityNotFound):
    """The queue went, or another took its name, while it was used."""


class NoSessionAvailable(PartitionedQueueError):
    """No session had something to receive in the time given (Azure: ServiceTimeout)."""


class SendNotAllowed(PartitionedQueueError):
    """Nobody sends to a sub-queue: it takes what its queue gives it (Azure: InvalidOperation)."""
