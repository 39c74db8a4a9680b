"""What can go wrong between the gateway and a queue's brokers, beyond what any client of a broker knows."""

from partitionedqueue.model.errors import PartitionedQueueError


class NoCredentials(PartitionedQueueError):
    """The password of a queue's brokers cannot be had; the words say why."""


class QueueGone(PartitionedQueueError):
    """The queue went, or another took its name, before its brokers could be asked."""
