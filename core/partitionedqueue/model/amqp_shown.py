"""A stored message as a receiver gets it: the broker's annotations in front, changes applied, the rest as it came."""

import struct
from typing import Final, NamedTuple

from partitionedqueue.model import amqp_sections as sections
from partitionedqueue.model import limits
from partitionedqueue.model.amqp_types import Symbol, encode_value
from partitionedqueue.model.errors import InvalidMessage
from partitionedqueue.model.stored_message import HAS_CHANGES, HEADER_BYTES, VERSION


class Shown(NamedTuple):
    """What the broker says of a message that it shows.

    `earlier_deliveries` are those in the queue that it is in. `lock_token` is `LockToken.uuid_bytes`, b"" where the
    message is not locked (and `locked_until_ms` 0). `state`: 0 active, 1 deferred, 2 scheduled.
    """

    sequence_number: int
    enqueued_time_ms: int
    earlier_deliveries: int
    locked_until_ms: int = 0
    lock_token: bytes = b""
    state: int = 0
    dead_letter_source: str = ""


def _key(name: str) -> bytes:
    return encode_value(Symbol(name))


# The header's delivery-count and its type stand at its end; then come what a locked message has and others have not.
_SEQUENCE: Final = _key("x-opt-sequence-number") + b"\x81"
_FIRST_SEQUENCE: Final = _key("x-opt-enqueue-sequence-number") + b"\x81"
_ENQUEUED: Final = _key("x-opt-enqueued-time") + b"\x83"
_STATE: Final = _key("x-opt-message-state") + b"\x71"
_PARTITION: Final = _key("x-opt-partition-id") + b"\x61"
_LOCKED_UNTIL: Final = _key("x-opt-locked-until") + b"\x83"
_ANNOTATIONS: Final = b"\x00\x53\x72\xd1"
_TOKEN_VALUE: Final = _key("x-opt-lock-token") + b"\x98"
_TOKEN: Final = b"\x00\x53\x71\xc1" + bytes((1 + len(_TOKEN_VALUE) + 16, 2)) + _TOKEN_VALUE
_ENTRIES: Final = f"{len(_SEQUENCE)}sq{len(_FIRST_SEQUENCE)}sq{len(_ENQUEUED)}sq{len(_STATE)}si{len(_PARTITION)}sh"
_UNLOCKED: Final = struct.Struct(f">I4sII{_ENTRIES}")
_LOCKED: Final = struct.Struct(f">I{len(_TOKEN)}s16s4sII{_ENTRIES}{len(_LOCKED_UNTIL)}sq")
_ENTRIES_BYTES: Final = struct.calcsize(">" + _ENTRIES)
_LOCKED_BYTES: Final = _ENTRIES_BYTES + len(_LOCKED_UNTIL) + 8
_DEAD_LETTER_SOURCE: Final = _key("x-opt-deadletter-source")
_STORED: Final = struct.Struct("<BB26xI16xqI4x")
_PLAIN: Final = b"\x00\x53\x70\xc0\x0a\x05\x40\x40\x40\x40\x70"  # a header that says no more than the delivery-count
_NO_ANNOTATIONS: Final = b"\x00\x53\x72\xd1\x00\x00\x00\x04\x00\x00\x00\x00"  # as Go's SDK says that there are none
_HEADERS_KEPT: Final = 256
_headers: dict[bytes, bytes] = {}  # of those that came lately, what to write up to the delivery-count


def write(stored: bytes, shown: Shown) -> bytes:
    """The AMQP encoding of a stored message for a receiver. Raises InvalidMessage where it is damaged."""
    try:
        return _write(stored, shown)
    except (IndexError, struct.error) as error:
        raise InvalidMessage("a stored message is damaged") from error


def _write(stored: bytes, shown: Shown) -> bytes:
    number, enqueued_ms, deliveries, until_ms, token, state, source = shown
    version, flags, before, first, end = _STORED.unpack_from(stored)
    if version != VERSION:
        raise InvalidMessage("these bytes are no stored message of version 1")
    at, header, count, own = HEADER_BYTES, _PLAIN, 10, b""
    descriptor = stored[66]
    if descriptor < 0x73:  # AMQP has something in front of the properties, too
        if descriptor == 0x70:
            at = sections.end_of(stored, 67)
            section = stored[64:at]
            header = _headers.get(section) or _header(section)
            descriptor = stored[at + 2]
        if descriptor == 0x71:  # the text of a message id: the stored form's own
            at = sections.end_of(stored, at + 3)
            descriptor = stored[at + 2]
        if descriptor == 0x72 and stored.startswith(_NO_ANNOTATIONS, at):
            at += len(_NO_ANNOTATIONS)
        elif descriptor == 0x72:
            more, place, at = sections.items_of(stored, at + 3)
            count, own = count + more, stored[place:at]
    if source:
        count, own = count + 2, own + _DEAD_LETTER_SOURCE + encode_value(source)
    partition = number >> limits.SEQUENCE_BITS
    first = partition << limits.SEQUENCE_BITS | first if first else number
    rest = _changed(stored, at, end) if flags & HAS_CHANGES else stored[at:]
    if token:
        front = _LOCKED.pack(
            before + deliveries, _TOKEN, token, _ANNOTATIONS, _LOCKED_BYTES + len(own) + 4, count + 2,
            _SEQUENCE, number, _FIRST_SEQUENCE, first, _ENQUEUED, enqueued_ms, _STATE, state, _PARTITION, partition,
            _LOCKED_UNTIL, until_ms,
        )  # fmt: skip
    else:
        front = _UNLOCKED.pack(
            before + deliveries, _ANNOTATIONS, _ENTRIES_BYTES + len(own) + 4, count,
            _SEQUENCE, number, _FIRST_SEQUENCE, first, _ENQUEUED, enqueued_ms, _STATE, state, _PARTITION, partition,
        )  # fmt: skip
    return b"".join((header, front, own, rest))


def _header(section: bytes) -> bytes:
    """A sender's header (§3.2.1), up to the delivery-count, which is the broker's."""
    count, place, _ = sections.items_of(section, 3)
    fields = [b"\x40"] * 4
    for field in range(min(count, 4)):
        stop = sections.end_of(section, place)
        fields[field] = section[place:stop]
        place = stop
    content = b"".join(fields) + b"\x70"
    header = b"\x00\x53\x70\xc0" + bytes((1 + len(content) + 4, 5)) + content
    if len(_headers) >= _HEADERS_KEPT:
        _headers.clear()
    _headers[section] = header
    return header


def _changed(stored: bytes, at: int, end: int) -> bytes:
    """The sections from `at` to `end`, with the changes behind them applied to the application properties."""
    properties_at = at
    if at < end and stored[at + 2] == sections.PROPERTIES:
        at = sections.end_of(stored, at + 3)
    body_at, entries = at, []
    if at < end and stored[at + 2] == sections.APPLICATION_PROPERTIES:
        entries = sections.entries_of(stored, at + 3)
        body_at = sections.end_of(stored, at + 3)
    own = {sections.text_of(name): (name, value) for name, value in entries}
    place = end
    while place < len(stored):
        for name, value in sections.entries_of(stored, place):
            if value == b"\x40":
                own.pop(sections.text_of(name), None)
            else:
                own[sections.text_of(name)] = (name, value)
        place = sections.end_of(stored, place)
    section = sections.section(sections.APPLICATION_PROPERTIES, sections.map_of([*own.values()])) if own else b""
    return b"".join((stored[properties_at:at], section, stored[body_at:end]))
