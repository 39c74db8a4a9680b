"""AMQP 1.0's types as Python values (§1.6), so that what was read is written again with the same type.

=============  =========================      =============  =========================
AMQP           Python                         AMQP           Python
=============  =========================      =============  =========================
null           None                           timestamp      Timestamp, ms since 1970
boolean        bool                           uuid           uuid.UUID
long           int                            binary         bytes
ubyte … ulong  UByte UShort UInt ULong        string         str
byte … int     Byte Short Int                 symbol         Symbol
double, float  float, Float                   list, map      list, dict
decimal*       Decimal (its bytes)            array          Array
char           Char                           described      Described
=============  =========================      =============  =========================
"""

from dataclasses import dataclass, field
from typing import Any, Final

from partitionedqueue.model.amqp_types import Described, Symbol, Timestamp, UInt

__all__ = [
    "Array",
    "Byte",
    "Char",
    "Decimal",
    "Described",
    "Float",
    "Int",
    "Short",
    "Symbol",
    "Timestamp",
    "UByte",
    "UInt",
    "ULong",
    "UShort",
    "Value",
]

Value = Any
"""Any of the Python values above: what AMQP can say is not known before it is read."""


class UByte(int):
    """8 bits, unsigned (§1.6.3)."""

    __slots__ = ()


class UShort(int):
    """16 bits, unsigned (§1.6.4)."""

    __slots__ = ()


class ULong(int):
    """64 bits, unsigned (§1.6.6)."""

    __slots__ = ()


class Byte(int):
    """8 bits (§1.6.7)."""

    __slots__ = ()


class Short(int):
    """16 bits (§1.6.8)."""

    __slots__ = ()


class Int(int):
    """32 bits (§1.6.9)."""

    __slots__ = ()


class Float(float):
    """IEEE 754's binary32 (§1.6.11)."""

    __slots__ = ()


class Char(str):
    """One Unicode character (§1.6.16)."""

    __slots__ = ()


class Decimal(bytes):
    """IEEE 754's decimal32, 64 or 128 (§1.6.13 to §1.6.15): its 4, 8 or 16 bytes, which nobody here computes with."""

    __slots__ = ()


UUID_CODE: Final = 0x98


@dataclass(frozen=True, slots=True)
class Array:
    """Values of one type (§1.6.24). `code` is the format code that all are written with, as 0x81 for long.

    The usual ones have names: Array.of_longs(…), of_timestamps(…), of_uuids(…), of_strings(…), of_symbols(…).
    """

    code: int
    items: list[Value] = field(default_factory=list)
    descriptor: Value = None

    @classmethod
    def of_longs(cls, items: list[int]) -> "Array":
        """An array of long."""
        return cls(0x81, items)

    @classmethod
    def of_timestamps(cls, items: list[int]) -> "Array":
        """An array of timestamp, from milliseconds since 1970."""
        return cls(0x83, items)

    @classmethod
    def of_uuids(cls, items: list[Value]) -> "Array":
        """An array of uuid."""
        return cls(UUID_CODE, items)

    @classmethod
    def of_strings(cls, items: list[str]) -> "Array":
        """An array of string."""
        return cls(0xB1, items)

    @classmethod
    def of_symbols(cls, items: list[str]) -> "Array":
        """An array of symbol."""
        return cls(0xB3, items)
