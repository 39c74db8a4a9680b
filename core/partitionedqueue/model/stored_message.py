"""The one stored form of a message: a header of fixed places in front of the AMQP sections as they came.

Specified, with test vectors, in docs/reference/stored-message.md. All numbers are little-endian; all offsets count from
the first byte of the stored form. The enqueued time and the delivery count are the partition's to give, so they are not
in it: the first comes as marks beside the messages (`enqueued_times`), the second with a reply. What receivers and the
broker change is appended (`encode_changes`); nothing in front of it moves.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

from partitionedqueue.model import limits
from partitionedqueue.model.amqp_types import (
    Symbol,
    Timestamp,
    UInt,
    compound,
    decode_value,
    encode_list,
    encode_map,
    encode_value,
)
from partitionedqueue.model.errors import InvalidMessage, MessageTooLarge
from partitionedqueue.model.message import Message, PropertyValue

VERSION: Final = 1
HEADER: Final = struct.Struct("<BBHHHIIIIIIqqqII")
HEADER_BYTES: Final = 64
_TIME_TO_LIVE: Final = struct.Struct("<q")

HAS_SESSION_ID: Final = 1
HAS_PARTITION_KEY: Final = 2
HAS_MESSAGE_ID: Final = 4
HAS_TIME_TO_LIVE: Final = 8
IS_SCHEDULED: Final = 16
BODY_IS_SECTIONS: Final = 32  # the body is not one data section: the offset and length are those of all body sections
HAS_CHANGES: Final = 64  # changes stand behind the AMQP sections, from the offset in the header's place 56 on

# AMQP 1.0 §3.2: descriptors of the sections of a message.
_HEADER, _ANNOTATIONS, _PROPERTIES, _APPLICATION_PROPERTIES, _DATA = 0x70, 0x72, 0x73, 0x74, 0x75
_DELIVERY_ANNOTATIONS, _FOOTER = 0x71, 0x78
_UINT_MAX = 2**32 - 1
_DELIVERIES_BEFORE = struct.Struct("<28xI")
_FIRST_GIVEN = struct.Struct("<48xq")
_CHANGES_OFFSET = struct.Struct("<56xI")

_PARTITION_KEY = Symbol("x-opt-partition-key")
_SCHEDULED_TIME = Symbol("x-opt-scheduled-enqueue-time")
# AMQP 1.0 §3.2.4, the fields of the properties section; Service Bus' names for some of them differ.
_PROPERTY_FIELDS = (
    "message_id", None, "to", "subject", "reply_to", "correlation_id", "content_type", None, None, None,
    "session_id", None, "reply_to_session_id",
)  # fmt: skip
_IN_THE_HEADER = (None, "message_id", "session_id")


def _section(descriptor: int, content: bytes) -> bytes:
    return bytes((0x00, 0x53, descriptor)) + content


class _Places:
    """Where the id and the keys come to stand, found while the sections are written."""

    def __init__(self) -> None:
        self.message_id = (0, 0)
        self.session_id = (0, 0)
        self.partition_key = (0, 0)


def _annotations(message: Message, places: _Places) -> bytes:
    entries: list[bytes] = []
    if message.scheduled_enqueue_time_ms is not None:
        entries += [encode_value(_SCHEDULED_TIME), encode_value(Timestamp(message.scheduled_enqueue_time_ms))]
    if message.partition_key is not None:
        entries += [encode_value(_PARTITION_KEY), encode_value(message.partition_key)]
    if not entries:
        return b""
    encoded = _section(_ANNOTATIONS, compound(0xC1, 0xD1, entries))
    if message.partition_key is not None:  # it stands last, so its content ends the section
        content_bytes = len(message.partition_key.encode())
        places.partition_key = (len(encoded) - content_bytes, content_bytes)
    return encoded


def _properties(message: Message, places: _Places) -> bytes:
    values = [None if name is None else getattr(message, name) for name in _PROPERTY_FIELDS]
    while values and values[-1] is None:
        values.pop()
    if not values:
        return b""
    items = [encode_value(value) for value in values]
    encoded = _section(_PROPERTIES, compound(0xC0, 0xD0, items))
    at = len(encoded) - sum(map(len, items))
    for name, item, value in zip(_PROPERTY_FIELDS, items, values, strict=False):
        if name in ("message_id", "session_id") and value is not None:
            size = len(value.encode())
            setattr(places, name, (at + len(item) - size, size))
        at += len(item)
    return encoded


def encode(message: Message, *, bytes_most: int = limits.MESSAGE_BYTES_MAX) -> bytes:
    """The stored form of a message. Raises MessageTooLarge, and InvalidMessage for a property AMQP cannot hold."""
    places = _Places()
    sections: list[bytes] = []
    size = HEADER_BYTES
    if message.time_to_live_ms is not None:
        ttl = UInt(min(message.time_to_live_ms, _UINT_MAX))
        sections.append(_section(_HEADER, encode_list([None, None, ttl])))
        size += len(sections[-1])
    moved = []
    for part, names in ((_annotations, ("partition_key",)), (_properties, ("message_id", "session_id"))):
        encoded = part(message, places)
        moved += [(name, size) for name in names if getattr(places, name)[1] or getattr(message, name) is not None]
        sections.append(encoded)
        size += len(encoded)
    for name, base in moved:
        offset, length = getattr(places, name)
        setattr(places, name, (base + offset, length))
    application_properties_offset = 0
    if message.application_properties:
        application_properties_offset = size
        sections.append(_section(_APPLICATION_PROPERTIES, encode_map(message.application_properties)))
        size += len(sections[-1])
    if size - HEADER_BYTES > limits.HEADER_BYTES_MAX:
        raise MessageTooLarge(
            f"the properties of a message take {size - HEADER_BYTES:,} bytes; "
            f"at most {limits.HEADER_BYTES_MAX:,} are allowed"
        )
    data = encode_value(message.body)
    sections.append(_section(_DATA, data))
    body_offset = size + 3 + len(data) - len(message.body)
    size = body_offset + len(message.body)
    if size > bytes_most:
        raise MessageTooLarge(
            f"a message of {size:,} bytes with its properties is over the limit "
            f"of {bytes_most:,} ({bytes_most // 1024:,} KB)"
        )
    flags = (
        (HAS_SESSION_ID if message.session_id is not None else 0)
        | (HAS_PARTITION_KEY if message.partition_key is not None else 0)
        | (HAS_MESSAGE_ID if message.message_id is not None else 0)
        | (HAS_TIME_TO_LIVE if message.time_to_live_ms is not None else 0)
        | (IS_SCHEDULED if message.scheduled_enqueue_time_ms is not None else 0)
    )
    header = HEADER.pack(
        VERSION, flags,
        places.message_id[1], places.session_id[1], places.partition_key[1],
        places.message_id[0], places.session_id[0], places.partition_key[0],
        body_offset, len(message.body),
        0, message.time_to_live_ms or 0, message.scheduled_enqueue_time_ms or 0, 0,
        HEADER_BYTES, application_properties_offset,
    )  # fmt: skip
    return b"".join((header, *sections))


def are_scheduled(several: Sequence[bytes]) -> bool:
    """Whether any of some stored forms wants to be enqueued at a time."""
    return any([one[1] & IS_SCHEDULED for one in several])  # noqa: C419 -- a list is the faster way for a few hundred


def times_to_live(several: Sequence[bytes]) -> bytes:
    """The times to live of stored forms, u48 in ms each (0: none), b"" where none has one."""
    if not any([len(one) >= HEADER_BYTES and one[1] & HAS_TIME_TO_LIVE for one in several]):  # noqa: C419 -- as above
        return b""
    longest = 2**48 - 1
    return b"".join(
        (min(_TIME_TO_LIVE.unpack_from(one, 32)[0], longest) if one[1] & HAS_TIME_TO_LIVE else 0).to_bytes(6, "little")
        for one in several
    )


def decode(stored: bytes) -> Message:
    """The message of a stored form. Raises InvalidMessage where it is damaged or of a later version.

    A body that is not one data section (BODY_IS_SECTIONS) comes back as those sections, encoded.
    """
    if len(stored) < HEADER_BYTES or stored[0] != VERSION:
        raise InvalidMessage("these bytes are no stored message of version 1")
    fields = HEADER.unpack_from(stored)
    flags, body_offset, body_bytes, ttl, scheduled = fields[1], fields[8], fields[9], fields[11], fields[12]
    end = _sections_end(stored)
    if not HEADER_BYTES <= body_offset <= body_offset + body_bytes <= end:
        raise InvalidMessage("a stored message is cut short, or its header is damaged")
    try:
        properties = _decode_sections(stored, HEADER_BYTES, body_offset)
        if end < len(stored):
            _apply_changes(properties.setdefault("application_properties", {}), stored, end)
        return Message(
            body=stored[body_offset : body_offset + body_bytes],
            message_id=_text_at(stored, fields[5], fields[2]) if flags & HAS_MESSAGE_ID else None,
            session_id=_text_at(stored, fields[6], fields[3]) if flags & HAS_SESSION_ID else None,
            partition_key=_text_at(stored, fields[7], fields[4]) if flags & HAS_PARTITION_KEY else None,
            time_to_live_ms=ttl if flags & HAS_TIME_TO_LIVE else None,
            scheduled_enqueue_time_ms=scheduled if flags & IS_SCHEDULED else None,
            **properties,
        )
    except (IndexError, TypeError, ValueError) as error:
        raise InvalidMessage("the sections of a stored message are damaged") from error


def _text_at(stored: bytes, offset: int, length: int) -> str:
    if offset + length > len(stored):
        raise InvalidMessage("a stored message is cut short, or its header is damaged")
    return stored[offset : offset + length].decode()


def _sections_end(stored: bytes) -> int:
    """Where the AMQP sections end: with the stored form, or where the changes begin."""
    (at,) = _CHANGES_OFFSET.unpack_from(stored)
    if not stored[1] & HAS_CHANGES:
        if at != HEADER_BYTES:
            raise InvalidMessage(f"the AMQP sections of a stored message begin at byte {at}, not {HEADER_BYTES}")
        return len(stored)
    if not HEADER_BYTES <= at < len(stored):
        raise InvalidMessage(f"the changes of a stored message begin at byte {at}, outside of it")
    return int(at)


def _decode_sections(stored: bytes, at: int, end: int) -> dict[str, Any]:
    """What is in the sections between `at` and the body and not in the header, by the names of Message."""
    properties: dict[str, Any] = {}
    while at < end:
        if stored[at : at + 2] != b"\x00\x53":
            raise InvalidMessage(f"no AMQP section begins at byte {at} of a stored message")
        descriptor = stored[at + 2]
        if descriptor in (_DATA, 0x76, 0x77, _FOOTER):
            break
        if descriptor == _APPLICATION_PROPERTIES:
            properties["application_properties"], at = _map(stored, at + 3)
            continue
        value, at = decode_value(stored, at + 3)
        if descriptor == _PROPERTIES:
            for name, item in zip(_PROPERTY_FIELDS, value, strict=False):
                if name not in _IN_THE_HEADER and item is not None:
                    properties[name] = item.hex() if isinstance(item, bytes) else str(item)
    return properties


def decode_application_properties(stored: bytes, offset: int) -> Mapping[str, PropertyValue]:
    """The application properties of a stored form, with its changes applied.

    `offset` is the header's: where their section begins, 0 where there is none. Raises InvalidMessage for damage.
    """
    try:
        properties = _map(stored, offset + 3)[0] if offset else {}
        if stored[1] & HAS_CHANGES:
            _apply_changes(properties, stored, _sections_end(stored))
    except TypeError as error:  # a key that cannot be one
        raise InvalidMessage("the application properties of a stored message are damaged") from error
    return properties


def _map(stored: bytes, at: int) -> tuple[dict[str, PropertyValue], int]:
    """The map of application properties at `at`, and where it ends."""
    value, end = decode_value(stored, at)
    if not isinstance(value, dict):
        raise InvalidMessage(f"the application properties of a stored message are no map at byte {at}")
    return value, end


def _apply_changes(properties: dict[str, PropertyValue], stored: bytes, at: int) -> None:
    """Later changes win; a null takes a property away."""
    while at < len(stored):
        changes, at = _map(stored, at)
        for name, value in changes.items():
            if value is None:
                properties.pop(name, None)
            else:
                properties[name] = value


def encode_changes(changes: Mapping[str, PropertyValue]) -> bytes:
    """Application properties to change in a stored message, None to take one away; nothing for no changes.

    Raises MessageTooLarge, and InvalidMessage for a value that AMQP cannot hold.
    """
    if not changes:
        return b""
    encoded = encode_map(changes)
    if len(encoded) > limits.HEADER_BYTES_MAX:
        raise MessageTooLarge(
            f"the changed properties take {len(encoded):,} bytes; at most {limits.HEADER_BYTES_MAX:,} are allowed"
        )
    return encoded


def deliveries_before(stored: bytes) -> int:
    """How often a message had been delivered before it came to the queue that it is in."""
    return int(_DELIVERIES_BEFORE.unpack_from(stored)[0])


def first_sequence_number(stored: bytes) -> int:
    """The sequence number that a message was given in the queue it was first sent to (Azure: EnqueuedSequenceNumber).

    0 where that is the queue that it is in.
    """
    return int(_FIRST_GIVEN.unpack_from(stored)[0])


def enqueued_times(first: int, count: int, marks: bytes) -> list[int]:
    """The enqueued times, in ms since 1970, of messages first..first+count-1 of one segment.

    `marks` are 8 bytes each: u16 index in the segment, u48 time; a mark is valid up to the next one's index.
    """
    if not marks or len(marks) % 8:
        raise InvalidMessage("enqueued-time marks come in eights of bytes, and there is at least one")
    parsed = [(n & 0xFFFF, n >> 16) for (n,) in struct.iter_unpack("<Q", marks)]
    base = (first - 1) % limits.SEGMENT_MESSAGES
    times, current = [], 0
    for index in range(base, base + count):
        while current + 1 < len(parsed) and parsed[current + 1][0] <= index:
            current += 1
        times.append(parsed[current][1])
    return times
