"""From values to AMQP 1.0's encodings (§1.6), the shortest that the type has."""

import struct
from collections.abc import Callable, Mapping, Sequence
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


class EncodeError(ValueError):
    """A value that AMQP has no type for, or that its type cannot hold: a fault of ours, not of a peer."""


def encode(value: Value) -> bytes:
    """Encode one value (see `values` for what becomes what; a plain int is a long). Raises EncodeError."""
    try:
        for kind in type(value).__mro__:
            if kind in _ENCODERS:
                return _ENCODERS[kind](value)
    except (struct.error, UnicodeEncodeError, OverflowError, KeyError, AttributeError, TypeError) as error:
        raise EncodeError(f"{value!r} does not fit its AMQP type") from error
    raise EncodeError(f"AMQP has no type for {value!r}")


def performative(code: int, fields: Sequence[Value]) -> bytes:
    """A described list of the protocol's own, without the trailing fields that say nothing (§1.4)."""
    last = len(fields)
    while last and fields[last - 1] is None:
        last -= 1
    return bytes((0x00, 0x53, code)) + _list(fields[:last])


def _unsigned(zero: int, small: int, wide: int, layout: str) -> Callable[[Any], bytes]:
    form = struct.Struct(layout)

    def write(value: int) -> bytes:
        if 0 <= value < 256:
            return bytes((small, value)) if value else bytes((zero,))
        return form.pack(wide, value)

    return write


def _signed(small: int, wide: int, layout: str) -> Callable[[Any], bytes]:
    form, byte = struct.Struct(layout), struct.Struct(">Bb")
    return lambda value: byte.pack(small, value) if -128 <= value < 128 else form.pack(wide, value)


def _fixed(code: int, layout: str) -> Callable[[Any], bytes]:
    form = struct.Struct(layout)
    return lambda value: form.pack(code, value)


def _sized(narrow: int, content: bytes) -> bytes:
    """Variable-width content; the wide code is the narrow one's plus 0x10."""
    if len(content) < 256:
        return bytes((narrow, len(content))) + content
    return struct.pack(">BI", narrow + 0x10, len(content)) + content


def _compound(narrow: int, count: int, content: bytes) -> bytes:
    if len(content) < 255 and count < 256:
        return bytes((narrow, len(content) + 1, count)) + content
    return struct.pack(">BII", narrow + 0x10, len(content) + 4, count) + content


def _list(items: Sequence[Value]) -> bytes:
    return _compound(0xC0, len(items), b"".join(map(encode, items))) if items else b"\x45"


def _map(entries: Mapping[Value, Value]) -> bytes:
    return _compound(0xC1, 2 * len(entries), b"".join(encode(part) for entry in entries.items() for part in entry))


def _decimal(value: bytes) -> bytes:
    return bytes(({4: 0x74, 8: 0x84, 16: 0x94}[len(value)],)) + value


def _described(value: Described) -> bytes:
    return b"\x00" + encode(value.descriptor) + encode(value.value)


def _array(array: Array) -> bytes:
    described = b"" if array.descriptor is None else b"\x00" + encode(array.descriptor)
    write = _ITEMS[array.code]
    content = described + bytes((array.code,)) + b"".join(map(write, array.items))
    return _compound(0xE0, len(array.items), content)


def _item(layout: str) -> Callable[[Any], bytes]:
    return struct.Struct(layout).pack


def _item_of(narrow: bool, content: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    size = struct.Struct(">B" if narrow else ">I")

    def write(value: Value) -> bytes:
        inside = content(value)
        return size.pack(len(inside)) + inside

    return write


def _content(items: Sequence[Value], layout: str) -> bytes:
    return struct.pack(layout, len(items)) + b"".join(map(encode, items))


def _flat(entries: Mapping[Value, Value]) -> list[Value]:
    return [part for entry in entries.items() for part in entry]


def _array_content(array: Array, layout: str) -> bytes:
    described = b"" if array.descriptor is None else b"\x00" + encode(array.descriptor)
    items = b"".join(map(_ITEMS[array.code], array.items))
    return struct.pack(layout, len(array.items)) + described + bytes((array.code,)) + items


def _ascii(value: str) -> bytes:
    return value.encode("ascii")


_ENCODERS: Final[dict[type, Callable[[Any], bytes]]] = {
    type(None): lambda _: b"\x40",
    bool: lambda value: b"\x41" if value else b"\x42",
    UByte: _fixed(0x50, ">BB"),
    UShort: _fixed(0x60, ">BH"),
    UInt: _unsigned(0x43, 0x52, 0x70, ">BI"),
    ULong: _unsigned(0x44, 0x53, 0x80, ">BQ"),
    Byte: _fixed(0x51, ">Bb"),
    Short: _fixed(0x61, ">Bh"),
    Int: _signed(0x54, 0x71, ">Bi"),
    int: _signed(0x55, 0x81, ">Bq"),
    Timestamp: _fixed(0x83, ">Bq"),
    Float: _fixed(0x72, ">Bf"),
    float: _fixed(0x82, ">Bd"),
    Char: lambda value: b"\x73" + struct.pack(">I", ord(value)),
    Decimal: _decimal,
    UUID: lambda value: b"\x98" + value.bytes,
    bytes: lambda value: _sized(0xA0, value),
    bytearray: lambda value: _sized(0xA0, bytes(value)),
    memoryview: lambda value: _sized(0xA0, bytes(value)),
    Symbol: lambda value: _sized(0xA3, value.encode("ascii")),
    str: lambda value: _sized(0xA1, value.encode()),
    Described: _described,
    list: _list,
    tuple: _list,
    dict: _map,
    Array: _array,
}
_ITEMS: Final[dict[int, Callable[[Any], bytes]]] = {
    0x40: lambda _: b"",
    0x41: lambda _: b"",
    0x42: lambda _: b"",
    0x43: lambda _: b"",
    0x44: lambda _: b"",
    0x45: lambda _: b"",
    0x50: _item(">B"),
    0x51: _item(">b"),
    0x52: _item(">B"),
    0x53: _item(">B"),
    0x54: _item(">b"),
    0x55: _item(">b"),
    0x56: _item(">?"),
    0x60: _item(">H"),
    0x61: _item(">h"),
    0x70: _item(">I"),
    0x71: _item(">i"),
    0x72: _item(">f"),
    0x73: lambda value: value.encode("utf-32-be"),
    0x74: bytes,
    0x80: _item(">Q"),
    0x81: _item(">q"),
    0x82: _item(">d"),
    0x83: _item(">q"),
    0x84: bytes,
    0x94: bytes,
    0x98: lambda value: value.bytes,
    0xA0: _item_of(True, bytes),
    0xA1: _item_of(True, str.encode),
    0xA3: _item_of(True, _ascii),
    0xB0: _item_of(False, bytes),
    0xB1: _item_of(False, str.encode),
    0xB3: _item_of(False, _ascii),
    0xC0: _item_of(True, lambda items: _content(items, ">B")),
    0xC1: _item_of(True, lambda entries: _content(_flat(entries), ">B")),
    0xD0: _item_of(False, lambda items: _content(items, ">I")),
    0xD1: _item_of(False, lambda entries: _content(_flat(entries), ">I")),
    0xE0: _item_of(True, lambda array: _array_content(array, ">B")),
    0xF0: _item_of(False, lambda array: _array_content(array, ">I")),
}
"""How an item of an array is written behind the array's one format code."""
