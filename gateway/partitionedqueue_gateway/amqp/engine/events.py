"""What a peer did, for the application: made by Connection.receive_data and tick, in the order of the wire.

When an event is looked at, later bytes of the same read are taken in already: a link whose message it tells of may be
gone. Calls on what is gone do nothing, except `send`, which needs `sendable`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from partitionedqueue_gateway.amqp.engine.performatives import AmqpError

if TYPE_CHECKING:
    from partitionedqueue_gateway.amqp.engine.amqp_session import AmqpSession
    from partitionedqueue_gateway.amqp.engine.link import Link, ReceivingLink, SendingLink


class SaslInit(NamedTuple):
    """A client chose one of our mechanisms; the application answers by Connection.sasl_outcome, at once or later."""

    mechanism: str
    response: bytes
    hostname: str | None


class Opened(NamedTuple):
    """The peer's open came; a server's was sent in answer."""

    container_id: str
    hostname: str | None
    properties: Mapping[str, Any]


class SessionBegan(NamedTuple):
    """An AMQP session is there, both ways."""

    session: "AmqpSession"


class SessionEnded(NamedTuple):
    """An AMQP session is over; a Detached for each of its links came before."""

    session: "AmqpSession"
    error: AmqpError | None


class AttachRequested(NamedTuple):
    """A peer wants a link: answer by link.attach(…) or link.refuse(…), at once or later."""

    link: "Link"


class Attached(NamedTuple):
    """The peer has answered the attach that we asked for (a client's event). Where it refuses, a Detached follows."""

    link: "Link"


class Detached(NamedTuple):
    """A link is over, whatever ended it, unless the application itself detached or refused it. Given once."""

    link: "Link"
    error: AmqpError | None


class MessageReceived(NamedTuple):
    """A whole message; unless `settled`, the application settles it by link.settle(delivery_id, state)."""

    link: "ReceivingLink"
    delivery_id: int
    delivery_tag: bytes
    message_format: int
    settled: bool
    state: bytes
    payload: bytes


class CreditChanged(NamedTuple):
    """Look at link.sendable, link.credit and link.draining again: the peer granted or withdrew, or a window opened."""

    link: "SendingLink"


class Drained(NamedTuple):
    """A peer that was asked to drain has given all credit back (a client's event)."""

    link: "ReceivingLink"


class Dispositions(NamedTuple):
    """The peer says what becomes of deliveries, or settles them.

    `deliveries`: (link, delivery_id, context given to send). Those of ours come here once, with their first outcome.
    `code`: ACCEPTED_CODE …, 0 where no outcome is told; `state`: its bytes, for outcomes.read.
    `settled`: the peer waits for no answer; else the application answers by link.settle(delivery_id, state).
    """

    deliveries: "list[tuple[Link, int, Any]]"
    code: int
    state: bytes
    settled: bool


class ConnectionEnded(NamedTuple):
    """Nothing more comes or may be sent: write what data_to_send still gives, then close the socket.

    `error`: what the peer closed with, or what it was closed for (`by_peer` tells which); None after an orderly close.
    """

    error: AmqpError | None
    by_peer: bool


Event = (
    SaslInit
    | Opened
    | SessionBegan
    | SessionEnded
    | AttachRequested
    | Attached
    | Detached
    | MessageReceived
    | CreditChanged
    | Drained
    | Dispositions
    | ConnectionEnded
)
