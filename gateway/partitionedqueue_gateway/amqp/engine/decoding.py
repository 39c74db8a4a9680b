"""From AMQP 1.0's encodings to values (§1.6). What is handed in is the bound: nothing is read beyond its end."""

import struct
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from partitionedqueue_gateway.amqp.engine.values import (
    Array,
    Byte,
    Char,
    Decimal,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    Value,
)
from partitionedqueue_gateway.limits import AMQP_EMPTY_ITEMS_MAX, AMQP_NESTING_MAX

Reader = Callable[[bytes, int, int], tuple[Value, int]]
"""(data, where the value begins behind its format code, how deep it is nested) -> the value, and where it ends."""

DESCRIBED: Final = 0x00
_U32: Final = struct.Struct(">I").unpack_from
_EMPTY_CODES: Final = frozenset(range(0x40, 0x46))


class DecodeError(ValueError):
    """These bytes are no AMQP, or beyond a bound."""


def decode(data: bytes) -> Value:
    """The one value that `data` is. Raises DecodeError."""
    value, end = decode_at(data, 0)
    if end != len(data):
        raise DecodeError(f"{len(data) - end} bytes stand behind an AMQP value")
    return value


def decode_at(data: bytes, at: int) -> tuple[Value, int]:
    """The value at `at`, and where the next one begins. Raises DecodeError."""
    try:
        return _READERS[data[at]](data, at + 1, 0)
    except DecodeError:
        raise
    # ValueError: text that is none; TypeError: a key that Python cannot look up; neither is AMQP.
    except (IndexError, struct.error, ValueError, TypeError) as error:
        raise DecodeError(f"the AMQP value at byte {at} is cut short or malformed") from error


def skip(data: bytes, at: int) -> int:
    """Where the value at `at` ends, found by its length, without looking inside. Raises DecodeError."""
    try:
        for _ in range(2 * AMQP_NESTING_MAX):
            code = data[at]
            if code != DESCRIBED:
                end = _end_of(data, at + 1, code)
                if end > len(data):
                    raise DecodeError(f"the AMQP value at byte {at} is cut short")
                return end
            at = skip(data, at + 1) if data[at + 1] != DESCRIBED else _no_descriptor(at)
    except (IndexError, struct.error) as error:
        raise DecodeError(f"the AMQP value at byte {at} is cut short") from error
    raise DecodeError(f"the AMQP value at byte {at} is nested too deep")


def _end_of(data: bytes, at: int, code: int) -> int:
    """By the upper half of the format code (§1.2)."""
    if _READERS[code] is _unknown:
        _unknown(data, at, 0)
    category = code >> 4
    if category < 0xA:
        return at + (0, 1, 2, 4, 8, 16)[category - 4]
    return at + 1 + data[at] if category % 2 == 0 else at + 4 + int(_U32(data, at)[0])


def _no_descriptor(at: int) -> int:
    raise DecodeError(f"the AMQP value at byte {at} is described by something that is described itself")


def _unknown(data: bytes, at: int, _depth: int) -> tuple[Value, int]:
    raise DecodeError(f"the AMQP value at byte {at - 1} has the unknown format code 0x{data[at - 1]:02x}")


def _constant(make: Callable[[], Value]) -> Reader:
    return lambda _data, at, _depth: (make(), at)


def _fixed(layout: str, make: Callable[[Any], Value]) -> Reader:
    form = struct.Struct(">" + layout)
    unpack, size = form.unpack_from, form.size
    return lambda data, at, _depth: (make(unpack(data, at)[0]), at + size)


def _boolean(value: int) -> bool:
    if value > 1:
        raise DecodeError(f"a boolean is 0 or 1, not {value}")
    return value == 1


def _variable(make: Callable[[bytes], Value], *, wide: bool) -> Reader:
    def read(data: bytes, at: int, _depth: int) -> tuple[Value, int]:
        size, at = (_U32(data, at)[0], at + 4) if wide else (data[at], at + 1)
        end = at + size
        if end > len(data):
            raise IndexError
        return make(data[at:end]), end

    return read


def _extent(data: bytes, at: int, *, wide: bool) -> tuple[int, int, int]:
    """How many items a list, map or array has, where they begin, and where they end."""
    if wide:
        count, begin, end = _U32(data, at + 4)[0], at + 8, at + 4 + _U32(data, at)[0]
    else:
        count, begin, end = data[at + 1], at + 2, at + 1 + data[at]
    if not begin <= end <= len(data):
        raise IndexError
    return count, begin, end


def _deeper(at: int, depth: int) -> int:
    if depth >= AMQP_NESTING_MAX:
        raise DecodeError(f"the AMQP value at byte {at - 1} is nested deeper than {AMQP_NESTING_MAX}")
    return depth + 1


def _list(*, wide: bool) -> Reader:
    def read(data: bytes, at: int, depth: int) -> tuple[Value, int]:
        depth = _deeper(at, depth)
        count, place, end = _extent(data, at, wide=wide)
        if count > end - place:
            raise DecodeError(f"the AMQP list at byte {at - 1} has no room for {count} items")
        items = []
        for _ in range(count):
            item, place = _READERS[data[place]](data, place + 1, depth)
            items.append(item)
        if place != end:
            raise DecodeError(f"the AMQP list at byte {at - 1} does not end with its last item")
        return items, end

    return read


def _map(*, wide: bool) -> Reader:
    read_list = _list(wide=wide)

    def read(data: bytes, at: int, depth: int) -> tuple[Value, int]:
        items, end = read_list(data, at, depth)
        entries = dict(zip(items[::2], items[1::2], strict=False))
        if 2 * len(entries) != len(items):
            raise DecodeError(f"the AMQP map at byte {at - 1} has a key twice, or one without a value")
        return entries, end

    return read


def _array(*, wide: bool) -> Reader:
    def read(data: bytes, at: int, depth: int) -> tuple[Value, int]:
        depth = _deeper(at, depth)
        count, place, end = _extent(data, at, wide=wide)
        descriptor = None
        if data[place] == DESCRIBED:
            descriptor, place = _READERS[data[place + 1]](data, place + 2, depth)
        code = data[place]
        place += 1
        if code == DESCRIBED or count > (AMQP_EMPTY_ITEMS_MAX if code in _EMPTY_CODES else end - place):
            raise DecodeError(f"the AMQP array at byte {at - 1} has no room for {count} items")
        read_item, items = _READERS[code], []
        for _ in range(count):
            item, place = read_item(data, place, depth)
            items.append(item)
        if place != end:
            raise DecodeError(f"the AMQP array at byte {at - 1} does not end with its last item")
        return Array(code, items, descriptor), end

    return read


def _described(data: bytes, at: int, depth: int) -> tuple[Value, int]:
    depth = _deeper(at, depth)
    if data[at] == DESCRIBED:
        _no_descriptor(at - 1)
    descriptor, at = _READERS[data[at]](data, at + 1, depth)
    value, at = _READERS[data[at]](data, at + 1, depth)
    return Described(descriptor, value), at


def _symbol(data: bytes) -> Symbol:
    return Symbol(data.decode("ascii"))


def _char(data: bytes) -> Char:
    return Char(data.decode("utf-32-be"))


_KNOWN: Final[dict[int, Reader]] = {
    DESCRIBED: _described,
    0x40: _constant(lambda: None),
    0x41: _constant(lambda: True),
    0x42: _constant(lambda: False),
    0x43: _constant(UInt),
    0x44: _constant(ULong),
    0x45: _constant(list),
    0x50: _fixed("B", UByte),
    0x51: _fixed("b", Byte),
    0x52: _fixed("B", UInt),
    0x53: _fixed("B", ULong),
    0x54: _fixed("b", Int),
    0x55: _fixed("b", int),
    0x56: _fixed("B", _boolean),
    0x60: _fixed("H", UShort),
    0x61: _fixed("h", Short),
    0x70: _fixed("I", UInt),
    0x71: _fixed("i", Int),
    0x72: _fixed("f", Float),
    0x73: _fixed("4s", _char),
    0x74: _fixed("4s", Decimal),
    0x80: _fixed("Q", ULong),
    0x81: _fixed("q", int),
    0x82: _fixed("d", float),
    0x83: _fixed("q", Timestamp),
    0x84: _fixed("8s", Decimal),
    0x94: _fixed("16s", Decimal),
    0x98: _fixed("16s", lambda data: UUID(bytes=data)),
    0xA0: _variable(bytes, wide=False),
    0xA1: _variable(bytes.decode, wide=False),
    0xA3: _variable(_symbol, wide=False),
    0xB0: _variable(bytes, wide=True),
    0xB1: _variable(bytes.decode, wide=True),
    0xB3: _variable(_symbol, wide=True),
    0xC0: _list(wide=False),
    0xC1: _map(wide=False),
    0xD0: _list(wide=True),
    0xD1: _map(wide=True),
    0xE0: _array(wide=False),
    0xF0: _array(wide=True),
}
_READERS: Final = tuple(_KNOWN.get(code, _unknown) for code in range(256))
