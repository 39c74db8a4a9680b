"""What a peer must not do, and AMQP's names for it (§2.8.15 to §2.8.18)."""

from typing import TYPE_CHECKING, Final

from partitionedqueue_gateway.amqp.engine.performatives import AmqpError

if TYPE_CHECKING:
    from partitionedqueue_gateway.amqp.engine.amqp_session import AmqpSession
    from partitionedqueue_gateway.amqp.engine.link import Link

DECODE_ERROR: Final = "amqp:decode-error"
INVALID_FIELD: Final = "amqp:invalid-field"
NOT_ALLOWED: Final = "amqp:not-allowed"
RESOURCE_LIMIT_EXCEEDED: Final = "amqp:resource-limit-exceeded"
FRAMING_ERROR: Final = "amqp:connection:framing-error"
CONNECTION_FORCED: Final = "amqp:connection:forced"
WINDOW_VIOLATION: Final = "amqp:session:window-violation"
HANDLE_IN_USE: Final = "amqp:session:handle-in-use"
UNATTACHED_HANDLE: Final = "amqp:session:unattached-handle"
UNAUTHORIZED_ACCESS: Final = "amqp:unauthorized-access"
TRANSFER_LIMIT_EXCEEDED: Final = "amqp:link:transfer-limit-exceeded"
MESSAGE_SIZE_EXCEEDED: Final = "amqp:link:message-size-exceeded"


class Violation(Exception):
    """Ends the connection."""

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(description)
        self.error = AmqpError(condition, description)


class SessionViolation(Violation):
    """Ends an AMQP session."""

    def __init__(self, session: "AmqpSession", condition: str, description: str) -> None:
        super().__init__(condition, description)
        self.session = session


class LinkViolation(Violation):
    """Ends a link."""

    def __init__(self, link: "Link", condition: str, description: str) -> None:
        super().__init__(condition, description)
        self.link = link


class NotSendable(RuntimeError):
    """A message was sent over a link that has no credit, or is over: the application did not look."""
