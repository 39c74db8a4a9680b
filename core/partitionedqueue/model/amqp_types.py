"""AMQP 1.0's primitive types (§1.6), as bytes: what the sections of a stored message are made of."""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from partitionedqueue.model.errors import InvalidMessage


class Symbol(str):
    """An AMQP symbol (§1.6.21): ASCII, a name of the protocol rather than text of a person's."""

    __slots__ = ()


class Timestamp(int):
    """Milliseconds since 1970 (§1.6.17)."""

    __slots__ = ()


class UInt(int):
    """A 32-bit unsigned integer (§1.6.5)."""

    __slots__ = ()


NULL: Final = b"\x40"
_INT32, _INT64 = 2**31, 2**63


def _sized(short: int, long: int, content: bytes) -> bytes:
    if len(content) < 256:
        return bytes((short, len(content))) + content
    return bytes((long,)) + len(content).to_bytes(4) + content


def _encode_text(value: str) -> bytes:
    try:
        if isinstance(value, Symbol):
            return _sized(0xA3, 0xB3, value.encode("ascii"))
        return _sized(0xA1, 0xB1, value.encode())
    except UnicodeEncodeError as error:
        raise InvalidMessage(f"{value!r} cannot be written as text: {error.reason}") from error


def encode_value(value: object) -> bytes:  # noqa: PLR0911 -- a case for each type
    """Encode one value; an int becomes a long, whatever its size, as Service Bus' own clients expect.

    Raises InvalidMessage for a value that AMQP has no simple type for.
    """
    if isinstance(value, str):
        return _encode_text(value)
    match value:
        case None:
            return NULL
        case bool():
            return b"\x41" if value else b"\x42"
        case UInt():
            return b"\x43" if value == 0 else b"\x70" + int(value).to_bytes(4)
        case Timestamp():
            return b"\x83" + int(value).to_bytes(8, signed=True)
        case int() if -_INT64 <= value < _INT64:
            return (
                b"\x55" + value.to_bytes(1, signed=True) if -128 <= value < 128 else b"\x81" + struct.pack(">q", value)
            )
        case float():
            return b"\x82" + struct.pack(">d", value)
        case bytes():
            return _sized(0xA0, 0xB0, value)
        case UUID():
            return b"\x98" + value.bytes
    raise InvalidMessage(f"a property cannot hold {value!r}; give text, a number, true or false, bytes or a UUID")


def compound(short: int, long: int, items: Sequence[bytes]) -> bytes:
    """A list (0xc0, 0xd0) or map (0xc1, 0xd1) of encoded items (§1.6.22, §1.6.23)."""
    content = b"".join(items)
    if len(content) < 255 and len(items) < 256:
        return bytes((short, len(content) + 1, len(items))) + content
    return bytes((long,)) + (len(content) + 4).to_bytes(4) + len(items).to_bytes(4) + content


def encode_map(entries: Mapping[str, object]) -> bytes:
    """A map; keys keep their type (str or Symbol)."""
    return compound(0xC1, 0xD1, [encode_value(part) for entry in entries.items() for part in entry])


def encode_list(values: Sequence[object]) -> bytes:
    """A list; trailing nulls are left out, as §1.4 allows."""
    last = len(values)
    while last and values[last - 1] is None:
        last -= 1
    return b"\x45" if not last else compound(0xC0, 0xD0, [encode_value(v) for v in values[:last]])


def _unpacker(code: str) -> Callable[[bytes], Any]:
    layout = struct.Struct(">" + code)
    return lambda content: layout.unpack(content)[0]


_FIXED: Final[Mapping[int, tuple[int, Callable[[bytes], Any]]]] = {
    0x40: (0, lambda _: None),
    0x41: (0, lambda _: True),
    0x42: (0, lambda _: False),
    0x43: (0, lambda _: 0),
    0x44: (0, lambda _: 0),
    0x45: (0, lambda _: []),
    0x50: (1, _unpacker("B")),
    0x51: (1, _unpacker("b")),
    0x52: (1, _unpacker("B")),
    0x53: (1, _unpacker("B")),
    0x54: (1, _unpacker("b")),
    0x55: (1, _unpacker("b")),
    0x56: (1, lambda content: content != b"\x00"),
    0x60: (2, _unpacker("H")),
    0x61: (2, _unpacker("h")),
    0x70: (4, _unpacker("I")),
    0x71: (4, _unpacker("i")),
    0x72: (4, _unpacker("f")),
    0x73: (4, lambda content: content.decode("utf-32-be")),
    0x80: (8, _unpacker("Q")),
    0x81: (8, _unpacker("q")),
    0x82: (8, _unpacker("d")),
    0x83: (8, lambda content: Timestamp(int.from_bytes(content, signed=True))),
    0x98: (16, lambda content: UUID(bytes=bytes(content))),
}
_VARIABLE: Final[Mapping[int, tuple[int, Callable[[bytes], Any]]]] = {
    0xA0: (1, bytes),
    0xB0: (4, bytes),
    0xA1: (1, lambda content: content.decode()),
    0xB1: (4, lambda content: content.decode()),
    0xA3: (1, lambda content: Symbol(content.decode("ascii"))),
    0xB3: (4, lambda content: Symbol(content.decode("ascii"))),
}
_COMPOUND: Final = {0xC0: 1, 0xD0: 4, 0xC1: 1, 0xD1: 4}
_DEPTH_MAX: Final = 16


def decode_value(data: bytes, at: int, depth: int = 0) -> tuple[Any, int]:
    """The value at `at`, and where the next one begins. Raises InvalidMessage for bytes that are no AMQP."""
    try:
        code = data[at]
        if code in _FIXED:
            size, parse = _FIXED[code]
            content = data[at + 1 : at + 1 + size]
            if len(content) < size:
                raise IndexError
            return parse(content), at + 1 + size
        if code in _VARIABLE:
            width, parse = _VARIABLE[code]
            start = at + 1 + width
            end = start + int.from_bytes(data[at + 1 : start])
            if end > len(data):
                raise IndexError
            return parse(data[start:end]), end
        if code in _COMPOUND and depth < _DEPTH_MAX:
            return _decode_compound(data, at, depth)
    except (IndexError, UnicodeDecodeError, struct.error) as error:
        raise InvalidMessage(f"the AMQP value at byte {at} is cut short or malformed") from error
    raise InvalidMessage(f"the AMQP value at byte {at} has the unknown format code 0x{code:02x}")


def _decode_compound(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    width = _COMPOUND[data[at]]
    start = at + 1 + width
    end = start + int.from_bytes(data[at + 1 : start])
    count = int.from_bytes(data[start : start + width])
    if end > len(data) or count > end - start:
        raise IndexError
    items, place = [], start + width
    for _ in range(count):
        item, place = decode_value(data, place, depth + 1)
        items.append(item)
    if place != end:
        raise IndexError
    if data[at] in (0xC1, 0xD1):
        if count % 2:
            raise IndexError
        return dict(zip(items[::2], items[1::2], strict=True)), end
    return items, end
