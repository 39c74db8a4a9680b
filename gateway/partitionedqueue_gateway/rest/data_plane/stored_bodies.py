"""Bodies of stored messages as the bytes that HTTP's receivers get."""

from partitionedqueue.model import amqp_sections as sections
from partitionedqueue.model.amqp_types import decode_value
from partitionedqueue.model.stored_message import BODY_IS_SECTIONS


def body_of(stored: bytes, body: bytes) -> bytes:
    """Of data sections, what is in them; of a value, its text in UTF-8 or its bytes, and else its AMQP encoding.

    `body` is what `stored_message.decode` gives. Raises InvalidMessage where it is damaged.
    """
    return _body_of_sections(body) if stored[1] & BODY_IS_SECTIONS else body


def _body_of_sections(body: bytes) -> bytes:
    pieces = []
    for descriptor, value in sections.sections_of(body):
        if descriptor == sections.DATA:
            pieces.append(sections.bytes_of(value))
        elif descriptor == sections.VALUE:
            found, _ = decode_value(value, 0)
            pieces.append(found.encode() if isinstance(found, str) else found if isinstance(found, bytes) else value)
        elif descriptor == sections.SEQUENCE:
            pieces.append(value)
    return b"".join(pieces)
