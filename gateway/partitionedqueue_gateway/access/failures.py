"""Why somebody is not let in, in Azure's words: programs are known to look for them."""

from partitionedqueue.model.errors import PartitionedQueueError


class PoliciesUnreadable(PartitionedQueueError):
    """A policy's file says something that cannot be. The words never quote it: it holds keys."""


class TokenRefused(PartitionedQueueError):
    """A token or a password that lets nobody in (Azure: 401, com.microsoft:auth-failed)."""


class MalformedToken(TokenRefused):
    """It is no token at all."""

    def __init__(self) -> None:
        super().__init__("MalformedToken: The credentials are not in the form of a shared access signature.")


class InvalidSignature(TokenRefused):
    """No policy of that name has signed it. Which of the two is wrong is nobody's business."""

    def __init__(self) -> None:
        super().__init__("InvalidSignature: The token has an invalid signature.")


class InvalidAudience(TokenRefused):
    """It was signed for something else, or its policy does not reach so far."""

    def __init__(self) -> None:
        super().__init__("InvalidAudience: The authorization header contains a token signed for another resource.")


class ExpiredToken(TokenRefused):
    """Its time has passed."""

    def __init__(self, expired: str) -> None:
        super().__init__(f"ExpiredToken: The token is expired. Expiration time: '{expired}'.")


class Unauthorized(PartitionedQueueError):
    """Somebody was let in, but not to do this (Azure: amqp:unauthorized-access)."""

    def __init__(self, right: str) -> None:
        super().__init__(f"Unauthorized access. '{right}' claim(s) are required to perform this operation.")
