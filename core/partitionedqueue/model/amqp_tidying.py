"""What of an AMQP message cannot be stored as it came, brought into the form in which it can.

A message id that is no text stays what it is; its text stands in a delivery annotation, which only the stored form has.
"""

from typing import Final
from uuid import UUID

from partitionedqueue.model import amqp_sections as sections
from partitionedqueue.model import limits
from partitionedqueue.model.amqp_types import Symbol, decode_value, encode_map, encode_value
from partitionedqueue.model.errors import InvalidMessage

BROKERS_OWN: Final = frozenset(
    (
        b"x-opt-sequence-number", b"x-opt-enqueue-sequence-number", b"x-opt-enqueued-time", b"x-opt-locked-until",
        b"x-opt-message-state", b"x-opt-partition-id", b"x-opt-deadletter-source", b"x-opt-lock-token",
    )
)  # fmt: skip
"""Annotations that the broker gives; a sender's are dropped."""
_KNOWN: Final = range(sections.HEADER, sections.FOOTER + 1)


def tidied(encoded: bytes) -> tuple[bytes, str | None]:
    """The message as it can be stored, and the text of a message id that is none. Raises InvalidMessage."""
    found: list[tuple[int, bytes]] = []
    text: str | None = None
    for descriptor, value in sections.sections_of(encoded):
        if descriptor not in _KNOWN:
            raise InvalidMessage(f"a message has no section 0x{descriptor:x}")
        if descriptor == sections.ANNOTATIONS:
            entries = sections.entries_of(value, 0)
            rest = [entry for entry in entries if sections.text_of(entry[0]) not in BROKERS_OWN]
            if rest:
                found.append((descriptor, sections.map_of(rest)))
        elif descriptor != sections.DELIVERY_ANNOTATIONS:
            found.append((descriptor, value))
        if descriptor == sections.PROPERTIES:
            text = _id_text(value)
    if text is not None:
        note = (sections.DELIVERY_ANNOTATIONS, encode_map({Symbol("x-opt-message-id-text"): text}))
        found.insert(1 if found[0][0] == sections.HEADER else 0, note)
    return b"".join([sections.section(descriptor, value) for descriptor, value in found]), text


def with_partition_key(encoded: bytes, key: str) -> bytes:
    """The message with such a partition key, where it had none."""
    entry = (encode_value(Symbol("x-opt-partition-key")), encode_value(key))
    found = sections.sections_of(encoded)
    for place, (descriptor, value) in enumerate(found):
        if descriptor == sections.ANNOTATIONS:
            entries = [
                own for own in sections.entries_of(value, 0) if sections.text_of(own[0]) != b"x-opt-partition-key"
            ]
            found[place] = (descriptor, sections.map_of([*entries, entry]))
            break
    else:
        before = sum(descriptor in (sections.HEADER, sections.DELIVERY_ANNOTATIONS) for descriptor, _ in found)
        found.insert(before, (sections.ANNOTATIONS, sections.map_of([entry])))
    return b"".join([sections.section(descriptor, value) for descriptor, value in found])


def _id_text(properties: bytes) -> str | None:
    """The text of a message id that is a number, a UUID or bytes; None for any other, and where there is none."""
    count, at, _ = sections.items_of(properties, 0)
    value = decode_value(properties, at)[0] if count else None
    if isinstance(value, bytes) and len(value) * 2 > limits.MESSAGE_ID_CHARACTERS_MAX:
        most = limits.MESSAGE_ID_CHARACTERS_MAX // 2
        raise InvalidMessage(f"the message id has {len(value)} bytes; at most {most} are allowed")
    return id_text(value) if isinstance(value, bytes | int | UUID) and not isinstance(value, bool) else None


def id_text(value: object) -> str:
    """A message id or correlation id of any of AMQP's types as text: bytes in hexadecimal."""
    return value.hex() if isinstance(value, bytes) else str(value)
