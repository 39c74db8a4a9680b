"""Messages as AMQP 1.0 encodes them, into the stored form: sections stay the bytes that came.

`read` finds what routing, duplicate detection and the broker ask for, checks what readers will look at, and copies all.
What cannot be stored as it came (a descriptor written the long way, a message id that is no text, annotations that are
the broker's to give) is tidied first, which is slower.
"""

import re
import struct
from collections.abc import Callable
from typing import Final

from partitionedqueue.model import amqp_sections as sections
from partitionedqueue.model import limits
from partitionedqueue.model.amqp_front import (
    BYTES,
    NO_PROPERTIES,
    PROPERTIES_MOST,
    TEXTS,
    Front,
    Properties,
    Untidy,
    look_at_body,
    look_at_front,
    look_at_properties,
    times_to_live,
)
from partitionedqueue.model.amqp_shown import Shown, write
from partitionedqueue.model.amqp_tidying import tidied, with_partition_key
from partitionedqueue.model.amqp_types import encode_value
from partitionedqueue.model.errors import InvalidMessage, MessageTooLarge
from partitionedqueue.model.message import check_keys
from partitionedqueue.model.storable import Storable
from partitionedqueue.model.stored_message import (
    BODY_IS_SECTIONS,
    HAS_MESSAGE_ID,
    HAS_SESSION_ID,
    HEADER,
    HEADER_BYTES,
    VERSION,
)

# What most messages begin with: no annotations or none in them, and properties of which the message id is the first.
_PLAIN: Final = re.compile(
    rb"(?:\x00\x53\x72(?:\xd1\x00\x00\x00\x04\x00\x00\x00\x00|\xc1\x01\x00))?"
    rb"\x00\x53\x73(?:\xd0\x00\x00\x00.\x00\x00\x00.|\xc0..)\xa1.",
    re.DOTALL,
).match
_PLAIN_BYTES_MIN: Final = 12

__all__ = ["BATCH_FORMAT", "Shown", "batch", "read", "read_batch", "write"]

BATCH_FORMAT: Final = 0x80013700
"""The message-format of a transfer whose data sections are messages; other transfers have 0."""

_PLAIN_HEADER: Final = struct.Struct("<BBH4xI8xII28xII")  # no session, no key, no time to live, no schedule
_PREFIXES: Final = sections.PREFIXES
_NULL: Final = 0x40
_new: Final = tuple.__new__  # what making a named tuple by its name does, in half the time
_ID_MOST: Final = limits.MESSAGE_ID_CHARACTERS_MAX
_length_at: Final = struct.Struct(">I").unpack_from


def read(encoded: bytes, *, new_message_id: Callable[[], str], bytes_most: int = limits.MESSAGE_BYTES_MAX) -> Storable:
    """The stored form of an encoded message (format 0); one without a message id is given one.

    `bytes_most` bounds what came; what is stored is some bytes more. Raises InvalidMessage, MessageTooLarge,
    PartitionKeyConflict.
    """
    if len(encoded) > bytes_most:
        raise MessageTooLarge(f"a message of {len(encoded):,} bytes is over the limit of {bytes_most:,}")
    try:
        try:
            return _read_plain(encoded) or _read(encoded, new_message_id, None)
        except Untidy:
            tidy, id_text = tidied(encoded)
            return _read(tidy, new_message_id, id_text)
    except (IndexError, UnicodeDecodeError, struct.error) as error:
        raise InvalidMessage("the encoded message is cut short or malformed") from error


def read_batch(
    encoded: bytes, *, new_message_id: Callable[[], str], bytes_most: int = limits.MESSAGE_BYTES_MAX
) -> list[Storable]:
    """The stored forms of a batch's messages (BATCH_FORMAT); one without a key has the partition key of the envelope.

    Raises as `read`.
    """
    key, messages = _opened(encoded)
    found: list[Storable] = []
    for message in messages:
        try:
            plain = _read_plain(message) if len(message) <= bytes_most else None
        except (IndexError, UnicodeDecodeError, struct.error):
            plain = None
        found.append(plain or read(message, new_message_id=new_message_id, bytes_most=bytes_most))
    if key is None:
        return found
    for place, one in enumerate(found):
        if one.session_id is None and one.partition_key is None:
            keyed = with_partition_key(messages[place], key)
            found[place] = read(keyed, new_message_id=new_message_id, bytes_most=len(keyed))
    return found


def batch(encoded: bytes) -> list[bytes]:
    """The encoded messages in a batch. Raises InvalidMessage."""
    return _opened(encoded)[1]


def _opened(encoded: bytes) -> tuple[str | None, list[bytes]]:
    """The partition key of a batch's envelope, and the encoded messages in it. HOT."""
    key: str | None = None
    messages: list[bytes] = []
    size, at = len(encoded), 0
    try:
        while at < size:
            if encoded.startswith(b"\x00\x53\x75\xb0", at):  # as everybody writes a message of 256 bytes and more
                at += 8
                end = at + _length_at(encoded, at - 4)[0]
                messages.append(encoded[at:end])
                at = end
                continue
            descriptor, value, at = sections.section_at(encoded, at)
            if descriptor == sections.DATA:
                messages.append(sections.bytes_of(value))
            elif descriptor == sections.ANNOTATIONS:
                key = _partition_key_in(value)
            elif descriptor in (sections.VALUE, sections.SEQUENCE):
                raise InvalidMessage("the messages of a batch are its data sections; this one has another body")
        if at > size:
            raise IndexError
    except (IndexError, UnicodeDecodeError, struct.error) as error:
        raise InvalidMessage("the encoded batch is cut short or malformed") from error
    if not 0 < len(messages) <= limits.BATCHED_MESSAGES_MAX:
        raise InvalidMessage(f"a batch has 1 to {limits.BATCHED_MESSAGES_MAX:,} messages, not {len(messages):,}")
    return key, messages


def _partition_key_in(annotations: bytes) -> str | None:
    key = None
    for name, annotation in sections.entries_of(annotations, 0):
        if sections.text_of(name) == b"x-opt-partition-key" and annotation[0] != _NULL:
            key = sections.text_of(annotation).decode()
    return key


def _read_plain(encoded: bytes) -> Storable | None:
    """As `_read`, of a message that is nothing but its id and a body of bytes, as most are; None for any other. HOT.

    Raises IndexError, UnicodeDecodeError, struct.error for one that is cut short or malformed.
    """
    at, descriptor = 0, encoded[2] if len(encoded) > _PLAIN_BYTES_MIN else sections.DATA
    if descriptor == sections.HEADER:
        at = 5 + encoded[4]
        if times_to_live.get(encoded[:at]) != 0:  # one that has been seen, is right, and says nothing that counts
            return None
    elif descriptor == sections.DATA:
        return None
    begun = _PLAIN(encoded, at)
    if begun is None:
        return None
    id_at = begun.end()
    id_bytes = encoded[id_at - 1]
    id_end = id_at + id_bytes
    # The list's count stands three bytes in front of the id, its size one or four in front of that.
    end = id_at - 3 + encoded[id_at - 4] if encoded[id_at - 5] == 0xC0 else id_at - 6 + encoded[id_at - 7]
    nulls = encoded[id_at - 3] - 1
    if end - id_end != nulls or (nulls and (not 0 < nulls < PROPERTIES_MOST or encoded[id_end:end].strip(b"\x40"))):
        return None
    if encoded.startswith(b"\x00\x53\x75\xb0", end):
        body_at = end + 8
        body_bytes = _length_at(encoded, end + 4)[0]
    elif encoded.startswith(b"\x00\x53\x75\xa0", end):
        body_at = end + 5
        body_bytes = encoded[end + 4]
    else:
        return None
    message_id = encoded[id_at:id_end].decode()
    if body_at + body_bytes != len(encoded) or len(message_id) > _ID_MOST:
        return None
    header = _PLAIN_HEADER.pack(
        VERSION, HAS_MESSAGE_ID, id_bytes, id_at + HEADER_BYTES, body_at + HEADER_BYTES, body_bytes, HEADER_BYTES, 0
    )
    return _new(Storable, (header + encoded, message_id, None, None))


def _read(  # noqa: C901, PLR0912, PLR0915 -- the hot path, where a call costs as much as all that a section needs
    encoded: bytes, new_message_id: Callable[[], str], id_text: str | None
) -> Storable:
    """`id_text` is that of a message id which is no text; `tidied` has put it into the delivery annotations."""
    size, at, last, application_at = len(encoded), 0, 0x6F, -1
    front, properties = None, NO_PROPERTIES
    body_at, body_bytes, body_flag = size, 0, BODY_IS_SECTIONS  # as of a message without a body
    while at < size:
        if encoded[at] or encoded[at + 1] != 0x53:
            raise Untidy
        descriptor, code = encoded[at + 2], encoded[at + 3]
        width = _PREFIXES[code]
        if width == 1:
            end = at + 5 + encoded[at + 4]
        elif width:
            end = at + 8 + _length_at(encoded, at + 4)[0]
        else:
            end = sections.end_of(encoded, at + 3)
        if descriptor > 0x74:
            if descriptor == 0x75 and end == size and code in BYTES:
                body_at, body_flag = at + 4 + width, 0
                body_bytes = end - body_at
            else:
                body_at, body_bytes, body_flag = look_at_body(encoded, at)
            break
        if end > size or descriptor <= last:
            raise InvalidMessage(f"section 0x{descriptor:02x} at byte {at} of the message is cut short or out of order")
        if descriptor == 0x74:
            application_at = at
            sections.check_text_map(encoded, at + 3)
        elif descriptor == 0x73:
            properties = look_at_properties(encoded, at, id_text)
        else:
            front = front or Front()
            look_at_front(front, encoded, at, end, id_text)
        at, last = end, descriptor
    if at > limits.HEADER_BYTES_MAX:
        most = limits.HEADER_BYTES_MAX
        raise MessageTooLarge(f"the properties of a message take {at:,} bytes; at most {most:,} are allowed")
    moved = HEADER_BYTES
    _, _, _, id_at, id_end, session_at, session_end = properties
    message_id: str | None
    if id_at:
        id_bytes = id_end - id_at
        message_id = encoded[id_at:id_end].decode()
    elif id_text is not None and front:
        id_at, id_bytes, message_id = front.id_text_end - len(id_text), len(id_text), id_text
    else:
        message_id = None  # as far as routing and duplicate detection go
        at = at if application_at < 0 else application_at
        encoded, id_at, id_bytes = _with_id(encoded, properties, at, new_message_id())
        moved += len(encoded) - size
    application_at = application_at + moved if application_at >= 0 else 0
    if front is None and not session_at and (message_id is None or len(message_id) <= _ID_MOST):
        header = _PLAIN_HEADER.pack(
            VERSION, HAS_MESSAGE_ID | body_flag, id_bytes, id_at + HEADER_BYTES,
            body_at + moved, body_bytes, HEADER_BYTES, application_at,
        )  # fmt: skip
        return _new(Storable, (header + encoded, message_id, None, None))
    session_id = None
    if session_at:
        session_at, session_end = session_at + moved - HEADER_BYTES, session_end + moved - HEADER_BYTES
        session_id = encoded[session_at:session_end].decode()
    front = front or Front()
    check_keys(message_id, session_id, front.partition_key)
    header = HEADER.pack(
        VERSION, HAS_MESSAGE_ID | body_flag | front.flags | (HAS_SESSION_ID if session_at else 0),
        id_bytes, session_end - session_at, front.partition_key_bytes,
        id_at + HEADER_BYTES, session_at and session_at + HEADER_BYTES,
        front.partition_key_at and front.partition_key_at + HEADER_BYTES,
        body_at + moved, body_bytes, 0, front.ttl_ms, front.scheduled_ms, 0, HEADER_BYTES, application_at,
    )  # fmt: skip
    return Storable(header + encoded, message_id, session_id, front.partition_key)


def _with_id(encoded: bytes, properties: Properties, at: int, message_id: str) -> tuple[bytes, int, int]:
    """The encoded message with a message id; where the id's text is, and its bytes. `at` is where properties belong."""
    if not properties[1] and message_id.isascii() and len(message_id) < 252:
        id_bytes = len(message_id)
        new = b"\x00\x53\x73\xc0%c\x01\xa1%c%b" % (id_bytes + 3, id_bytes, message_id.encode())
        return b"".join((encoded[:at], new, encoded[at:])) if at else new + encoded, at + 8, id_bytes
    item = encode_value(message_id)
    start, end, count, _, id_end, _, _ = properties if properties[1] else (at, at, 0, 0, at, 0, 0)
    content = item + encoded[id_end:end]
    section = sections.section(sections.PROPERTIES, sections.list_of(max(count, 1), content))
    id_bytes = len(item) - TEXTS[item[0]]
    id_at = start + len(section) - len(content) + len(item) - id_bytes
    return b"".join((encoded[:start], section, encoded[end:])), id_at, id_bytes
