"""AMQP 1.0's types (§1.6), as bytes: what the sections of a stored message are made of."""

import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

from partitionedqueue.model import limits
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


class Encoded(bytes):
    """A value that is encoded already, of whatever type."""

    __slots__ = ()


class Described(NamedTuple):
    """A value with a descriptor that says what it means (§1.2), as .NET writes its TimeSpan."""

    descriptor: Any
    value: Any


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


def encode_value(value: object) -> bytes:  # noqa: C901, PLR0911 -- a case for each type
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
        case Encoded():
            return bytes(value)
        case bytes():
            return _sized(0xA0, 0xB0, value)
        case UUID():
            return b"\x98" + value.bytes
        case Described():
            return b"\x00" + encode_value(value.descriptor) + encode_value(value.value)
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


_EXACT: Final = Context(prec=40, Emin=-10_000, Emax=10_000)


def _decimal(content: bytes) -> Decimal:
    """IEEE 754-2008, with a binary integer for the coefficient (§1.6.13 to §1.6.15)."""
    bits = len(content) * 8
    exponent_bits = {32: 8, 64: 10, 128: 14}[bits]
    number = int.from_bytes(content)
    sign, rest = number >> bits - 1, number & (1 << bits - 1) - 1
    if rest >> bits - 5 == 0b1111:
        return Decimal(("-" if sign else "") + ("NaN" if rest >> bits - 6 & 1 else "Infinity"))
    width = bits - 1 - exponent_bits
    if rest >> bits - 3 == 0b11:  # a large coefficient: its three upper bits are 100, and not written
        width -= 2
        coefficient = 0b100 << width | rest & (1 << width) - 1
    else:
        coefficient = rest & (1 << width) - 1
    exponent = rest >> width & (1 << exponent_bits) - 1
    bias = {32: 101, 64: 398, 128: 6176}[bits]
    return Decimal(-coefficient if sign else coefficient).scaleb(exponent - bias, _EXACT)


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
    0x74: (4, _decimal),
    0x80: (8, _unpacker("Q")),
    0x81: (8, _unpacker("q")),
    0x82: (8, _unpacker("d")),
    0x83: (8, lambda content: Timestamp(int.from_bytes(content, signed=True))),
    0x84: (8, _decimal),
    0x94: (16, _decimal),
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
_LISTS: Final = {0xC0: 1, 0xD0: 4}
_MAPS: Final = {0xC1: 1, 0xD1: 4}
_ARRAYS: Final = {0xE0: 1, 0xF0: 4}
_DESCRIBED: Final = 0x00
_DEPTH_MAX: Final = 16
WIDTHS: Final = bytes(0 if code == 0x73 or code not in _FIXED else 1 + _FIXED[code][0] for code in range(256))
"""The bytes of a value, with its format code, by that code; 0 where that alone does not say that it is one."""


def decode_value(data: bytes, at: int) -> tuple[Any, int]:
    """The value at `at`, and where the next one begins. Raises InvalidMessage for bytes that are no AMQP."""
    try:
        return _decode(data, at, 0)
    except (IndexError, TypeError, UnicodeDecodeError, struct.error) as error:  # TypeError: a key that cannot be one
        raise InvalidMessage(f"the AMQP value at byte {at} is cut short or malformed") from error


def _decode(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    code = data[at]
    if code == _DESCRIBED and depth < _DEPTH_MAX:
        descriptor, place = _decode(data, at + 1, depth + 1)
        value, end = _decode(data, place, depth + 1)
        return Described(descriptor, value), end
    return _decode_as(data, at + 1, code, depth)


def _decode_as(data: bytes, at: int, code: int, depth: int) -> tuple[Any, int]:
    """The value at `at`, whose format code stands elsewhere."""
    if code in _FIXED:
        size, parse = _FIXED[code]
        content = data[at : at + size]
        if len(content) < size:
            raise IndexError
        return parse(content), at + size
    if code in _VARIABLE:
        width, parse = _VARIABLE[code]
        start = at + width
        end = start + int.from_bytes(data[at:start])
        if start > len(data) or end > len(data):
            raise IndexError
        return parse(data[start:end]), end
    if depth < _DEPTH_MAX:
        if code in _LISTS:
            return _decode_items(data, at, _LISTS[code], depth)
        if code in _MAPS:
            items, end = _decode_items(data, at, _MAPS[code], depth)
            if len(items) % 2:
                raise IndexError
            return dict(zip(items[::2], items[1::2], strict=True)), end
        if code in _ARRAYS:
            return _decode_array(data, at, _ARRAYS[code], depth)
    raise InvalidMessage(f"an AMQP value at byte {at - 1} has the format code 0x{code:02x}, unknown or nested too deep")


def _extent(data: bytes, at: int, width: int) -> tuple[int, int, int]:
    """How many items a list, map or array has, where they begin, and where they end."""
    start = at + width
    end = start + int.from_bytes(data[at:start])
    count = int.from_bytes(data[start : start + width])
    if start + width > end or end > len(data):
        raise IndexError
    return count, start + width, end


def _decode_items(data: bytes, at: int, width: int, depth: int) -> tuple[list[Any], int]:
    count, place, end = _extent(data, at, width)
    if count > end - place:
        raise IndexError
    items = []
    for _ in range(count):
        item, place = _decode(data, place, depth + 1)
        items.append(item)
    if place != end:
        raise IndexError
    return items, end


def _decode_array(data: bytes, at: int, width: int, depth: int) -> tuple[list[Any], int]:
    """Items of one type (§1.6.24): its format code, and a descriptor, stand once, before all of them."""
    count, place, end = _extent(data, at, width)
    descriptor, described = None, data[place] == _DESCRIBED
    if described:
        descriptor, place = _decode(data, place + 1, depth + 1)
    code = data[place]
    place += 1
    if count > max(end - place, limits.EMPTY_ARRAY_ITEMS_MAX):
        raise IndexError
    items: list[Any] = []
    for _ in range(count):
        item, place = _decode_as(data, place, code, depth + 1)
        items.append(Described(descriptor, item) if described else item)
    if place != end:
        raise IndexError
    return items, end
