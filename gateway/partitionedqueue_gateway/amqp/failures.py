"""What a client of the AMQP wire may ask for and not get, beyond what any user of a queue knows."""

from partitionedqueue.model.errors import PartitionedQueueError


class InvalidRequest(PartitionedQueueError):
    """A request to a management node, or a link, says something that cannot be (Azure: ArgumentError)."""


class ArgumentOutOfRange(InvalidRequest):
    """A number in a request is too small or too large."""


class NotSupported(PartitionedQueueError):
    """Something of Service Bus, or of AMQP, that is not served here."""


class NotAllowed(PartitionedQueueError):
    """What is asked for does not fit the entity (Azure: InvalidOperation)."""


class TokenLapsed(PartitionedQueueError):
    """The claims that a link stands on have lapsed, and the client has not put a new token."""

    def __init__(self) -> None:
        super().__init__("ExpiredToken: The token is expired. Put a new one to $cbs, then attach again.")


class OperationTimeout(PartitionedQueueError):
    """What was asked for was not done within the time that the client gave (Azure: ServiceTimeout)."""

    def __init__(self, within_s: float) -> None:
        whole = int(within_s)
        allotted = f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
        super().__init__(
            f"The operation did not complete within the allotted timeout of {allotted}. "
            "The time allotted to this operation may have been a portion of a longer timeout."
        )


class LinkDetached(PartitionedQueueError):
    """This gateway gives a link up; the client finds another."""
