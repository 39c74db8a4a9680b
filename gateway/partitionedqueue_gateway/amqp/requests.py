"""Requests to `$cbs` and `$management`, and the answers to them: messages with a reply address."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from partitionedqueue.model.amqp_types import NULL, compound
from partitionedqueue_gateway.amqp.engine import decoding, sections
from partitionedqueue_gateway.amqp.engine.decoding import DecodeError
from partitionedqueue_gateway.amqp.engine.encoding import encode
from partitionedqueue_gateway.amqp.engine.values import Value
from partitionedqueue_gateway.amqp.failures import InvalidRequest

# Places in the list of properties (AMQP 1.0 §3.2.4).
_MESSAGE_ID: Final = 0
_REPLY_TO: Final = 4
_CORRELATION_ID: Final = 5
_HEADER: Final = b"\x00\x53\x70\x45"  # empty, but there: Java's client looks into it
_PROPERTIES: Final = b"\x00\x53\x73"


class Request(NamedTuple):
    """`message_id` is encoded, as it came: it goes back with the type that it had. `properties`: the application's."""

    message_id: bytes
    reply_to: str | None
    properties: Mapping[Any, Value]
    body: Value

    @property
    def operation(self) -> str:
        """What is asked for; "" where nothing is."""
        return self.text("operation") or ""

    def text(self, name: str) -> str | None:
        """An application property, where it is text."""
        value = self.properties.get(name)
        return str(value) if isinstance(value, str) else None


class Answer(NamedTuple):
    """`properties`: the application's; `body`: the amqp-value."""

    properties: Mapping[str, Value]
    body: Value = None


def read(payload: bytes) -> Request:
    """The request that a message is. Raises InvalidRequest."""
    message_id, reply_to, properties, body = NULL, None, {}, None
    try:
        for code, encoded in sections.split(payload):
            if code == sections.PROPERTIES:
                items = list(sections.slices(encoded))
                if len(items) > _MESSAGE_ID:
                    message_id = items[_MESSAGE_ID]
                if len(items) > _REPLY_TO:
                    reply_to = decoding.decode(items[_REPLY_TO])
            elif code == sections.APPLICATION_PROPERTIES:
                properties = decoding.decode(encoded)
            elif code == sections.VALUE:
                body = decoding.decode(encoded)
    except DecodeError as error:
        raise InvalidRequest(f"a request is no AMQP message: {error}") from error
    if not isinstance(properties, dict):
        raise InvalidRequest("the application properties of a request are a map")
    return Request(message_id, reply_to if isinstance(reply_to, str) else None, properties, body)


def write(answer: Answer, request: Request) -> bytes:
    """The message that answers a request."""
    properties = compound(0xC0, 0xD0, [NULL] * _CORRELATION_ID + [request.message_id])
    return b"".join(
        (
            _HEADER,
            _PROPERTIES + properties,
            sections.encode(sections.APPLICATION_PROPERTIES, dict(answer.properties)),
            b"\x00\x53" + bytes((sections.VALUE,)) + encode(answer.body),
        )
    )
