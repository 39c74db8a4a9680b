"""The sections of an encoded AMQP message (§3.2), walked by their lengths; values are looked at, not made.

What is checked here can be read by every reader afterwards. IndexError, UnicodeDecodeError and InvalidMessage mean that
the bytes are no AMQP message.
"""

from typing import Final

from partitionedqueue.model.amqp_types import WIDTHS, compound, decode_value
from partitionedqueue.model.errors import InvalidMessage

HEADER: Final = 0x70
DELIVERY_ANNOTATIONS: Final = 0x71
ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION_PROPERTIES: Final = 0x74
DATA: Final = 0x75
SEQUENCE: Final = 0x76
VALUE: Final = 0x77
FOOTER: Final = 0x78

PREFIXES: Final = bytes(
    4 if code >> 4 in (0xB, 0xD, 0xF) else 1 if code >> 4 in (0xA, 0xC, 0xE) else 0 for code in range(256)
)
"""The bytes of a value's own length, by its format code; 0 where it has none."""

_NAMED: Final = {
    b"amqp:header:list": HEADER,
    b"amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    b"amqp:message-annotations:map": ANNOTATIONS,
    b"amqp:properties:list": PROPERTIES,
    b"amqp:application-properties:map": APPLICATION_PROPERTIES,
    b"amqp:data:binary": DATA,
    b"amqp:amqp-sequence:list": SEQUENCE,
    b"amqp:amqp-value:*": VALUE,
    b"amqp:footer:map": FOOTER,
}


def end_of(data: bytes, at: int) -> int:
    """Where the value at `at` ends; what is in it is not looked at."""
    while data[at] == 0:  # described, as what is described may be, too
        at = end_of_descriptor(data, at + 1)
    code = data[at]
    width = PREFIXES[code]
    if width:
        start = at + 1 + width
        end = start + int.from_bytes(data[at + 1 : start])
    elif WIDTHS[code] or code == 0x73:
        end = at + (WIDTHS[code] or 5)
    else:
        raise InvalidMessage(f"the AMQP value at byte {at} has the unknown format code 0x{code:02x}")
    if end > len(data):
        raise IndexError
    return end


def end_of_descriptor(data: bytes, at: int) -> int:
    """Where a descriptor ends: a number or a symbol; others are nobody's."""
    if data[at] not in (0x44, 0x53, 0x80, 0xA3, 0xB3):
        raise InvalidMessage(f"the descriptor at byte {at} of a message is neither a number nor a symbol")
    return end_of(data, at)


def items_of(data: bytes, at: int) -> tuple[int, int, int]:
    """How many items the list or map at `at` has, where they begin, and where they end."""
    code = data[at]
    if code == 0xC0 or code == 0xC1:  # noqa: PLR1714 -- the faster way to say it
        end = at + 2 + data[at + 1]
        if at + 3 <= end <= len(data):
            return data[at + 2], at + 3, end
    if code == 0x45:
        return 0, at + 1, at + 1
    width = PREFIXES[code]
    start = at + 1 + width
    end = start + int.from_bytes(data[at + 1 : start])
    if code >> 4 not in (0xC, 0xD) or start + width > end or end > len(data):
        raise InvalidMessage(f"no AMQP list or map stands at byte {at} of the message")
    return int.from_bytes(data[start : start + width]), start + width, end


def check_value(data: bytes, at: int) -> int:
    """Where the value at `at` ends; it can be read."""
    code = data[at]
    if code == 0xA1 or code == 0xA3:  # noqa: PLR1714 -- the faster way to say it
        start = at + 2
        end = start + data[at + 1]
        data[start:end].decode("utf-8" if code == 0xA1 else "ascii")
        return end
    return at + WIDTHS[code] if WIDTHS[code] else decode_value(data, at)[1]


def check_text_map(data: bytes, at: int) -> None:
    """Checks the map at `at`: application properties (§3.2.5), whose names are text."""
    if data[at] == 0xC1:
        end, count, at = at + 2 + data[at + 1], data[at + 2], at + 3
    elif data[at] == 0xD1:
        count, at, end = items_of(data, at)
    else:
        raise InvalidMessage("the application properties of the message are no map")
    while at < end:
        if data[at] == 0xA1:
            start = at + 2
            at = start + data[at + 1]
            data[start:at].decode()
        elif data[at] == 0xB1:
            at = decode_value(data, at)[1]
        else:
            raise InvalidMessage(f"the name of an application property at byte {at} of the message is no text")
        width = WIDTHS[data[at]]
        if width:
            at += width
        elif data[at] == 0xA1:
            start = at + 2
            at = start + data[at + 1]
            data[start:at].decode()
        else:
            at = decode_value(data, at)[1]
        count -= 2
    if at != end or count:
        raise InvalidMessage("the application properties of the message are cut short or malformed")


def entries_of(data: bytes, at: int) -> list[tuple[bytes, bytes]]:
    """The keys and values, encoded, of the map at `at`, of which both can be read."""
    count, place, end = items_of(data, at)
    entries = []
    for _ in range(count >> 1):
        middle = check_value(data, place)
        stop = check_value(data, middle)
        entries.append((data[place:middle], data[middle:stop]))
        place = stop
    if place != end or count & 1 or data[at] not in (0xC1, 0xD1):
        raise InvalidMessage(f"the AMQP map at byte {at} is cut short or malformed")
    return entries


def text_of(encoded: bytes) -> bytes:
    """The bytes of an encoded text or symbol, b"" for anything else: what a key says."""
    width = PREFIXES[encoded[0]]
    return encoded[1 + width :] if encoded[0] in (0xA1, 0xA3, 0xB1, 0xB3) else b""


def bytes_of(encoded: bytes) -> bytes:
    """What an encoded binary value holds."""
    if encoded[0] not in (0xA0, 0xB0):
        raise InvalidMessage("a data section of the message holds no bytes")
    return encoded[1 + PREFIXES[encoded[0]] :]


def section(descriptor: int, value: bytes) -> bytes:
    """A section with such a value, encoded."""
    return bytes((0x00, 0x53, descriptor)) + value


def list_of(count: int, content: bytes) -> bytes:
    """A list of so many encoded items."""
    if len(content) < 255:
        return bytes((0xC0, len(content) + 1, count)) + content
    return b"\xd0" + (len(content) + 4).to_bytes(4) + count.to_bytes(4) + content


def map_of(entries: list[tuple[bytes, bytes]]) -> bytes:
    """A map of encoded keys and values."""
    return compound(0xC1, 0xD1, [part for entry in entries for part in entry])


def section_at(data: bytes, at: int) -> tuple[int, bytes, int]:
    """The descriptor of the section at `at`, however it is written, its value, and where the next one begins."""
    if data[at]:
        raise InvalidMessage(f"no AMQP section begins at byte {at} of the message")
    value_at = end_of_descriptor(data, at + 1)
    described = data[at + 1 : value_at]
    descriptor = _NAMED.get(text_of(described)) or int.from_bytes(described[1:] if described[0] < 0xA0 else b"")
    end = end_of(data, value_at)
    return descriptor, data[value_at:end], end


def sections_of(data: bytes) -> list[tuple[int, bytes]]:
    """Every section's descriptor and value."""
    sections, at = [], 0
    while at < len(data):
        descriptor, value, at = section_at(data, at)
        sections.append((descriptor, value))
    return sections
