"""What an HTTP client may ask for and not get, beyond what any user of a queue knows."""

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway.access.failures import TokenRefused


class InvalidRequest(PartitionedQueueError):
    """A request says something that cannot be: a header, a parameter, its body."""


class BodyTooLarge(PartitionedQueueError):
    """A body is larger than what is taken here; the rest of it is not read."""


class BodyTooSlow(PartitionedQueueError):
    """A body did not come within the time given for it."""


class NotSupported(PartitionedQueueError):
    """Something of Service Bus that is not served here."""


class EntityGone(PartitionedQueueError):
    """There is no entity of that name, says the data plane (Azure: 410; its administration says 404)."""


class TooManyRequests(PartitionedQueueError):
    """So many are under way that no further one is taken."""


class MissingToken(TokenRefused):
    """Somebody has shown nothing."""

    def __init__(self) -> None:
        super().__init__(
            "MissingToken: The request has no Authorization header; "
            "it takes a shared access signature: 'SharedAccessSignature sr=…&sig=…&se=…&skn=…'."
        )
