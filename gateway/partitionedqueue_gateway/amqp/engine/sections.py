"""The sections of a message (§3.2), found by length and decoded only when asked for."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from partitionedqueue_gateway.amqp.engine import decoding, encoding
from partitionedqueue_gateway.amqp.engine.decoding import DecodeError
from partitionedqueue_gateway.amqp.engine.performatives import descriptor_code
from partitionedqueue_gateway.amqp.engine.values import Value

HEADER: Final = 0x70
DELIVERY_ANNOTATIONS: Final = 0x71
MESSAGE_ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION_PROPERTIES: Final = 0x74
DATA: Final = 0x75
SEQUENCE: Final = 0x76
VALUE: Final = 0x77
FOOTER: Final = 0x78

_NAMES: Final = {
    "amqp:header:list": HEADER,
    "amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    "amqp:properties:list": PROPERTIES,
    "amqp:application-properties:map": APPLICATION_PROPERTIES,
    "amqp:data:binary": DATA,
    "amqp:amqp-sequence:list": SEQUENCE,
    "amqp:amqp-value:*": VALUE,
    "amqp:footer:map": FOOTER,
}


class Section(NamedTuple):
    """`encoded`: the value inside, without the section's descriptor."""

    code: int
    encoded: bytes

    @property
    def value(self) -> Value:
        """Decoded. Raises DecodeError."""
        return decoding.decode(self.encoded)


def split(payload: bytes) -> list[Section]:
    """All sections, in order. Raises DecodeError for what is no message."""
    found: list[Section] = []
    at = 0
    while at < len(payload):
        if payload[at] != decoding.DESCRIBED:
            raise DecodeError(f"no section of a message begins at byte {at}")
        descriptor, start = decoding.decode_at(payload, at + 1)
        code = descriptor_code(descriptor, _NAMES)
        if not HEADER <= code <= FOOTER or (found and found[-1].code > code):
            raise DecodeError(f"the section at byte {at} is unknown, or out of order")
        at = decoding.skip(payload, start)
        found.append(Section(code, payload[start:at]))
    return found


def slices(encoded_list: bytes) -> Iterator[bytes]:
    """The items of an encoded list, each as it came: properties' message-id is the first, with its own type."""
    match encoded_list[:1]:
        case b"\x45":
            return
        case b"\xc0":
            at = 3
        case b"\xd0":
            at = 9
        case _:
            raise DecodeError("a list is expected")
    while at < len(encoded_list):
        end = decoding.skip(encoded_list, at)
        yield encoded_list[at:end]
        at = end


def encode(code: int, value: Value) -> bytes:
    """A whole section."""
    return bytes((0x00, 0x53, code)) + encoding.encode(value)
