"""Values as proton-vectors.json writes them: [type, content]."""

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
)

_CODES: Final = {"long": 0x81, "timestamp": 0x83, "uuid": 0x98, "string": 0xB1, "symbol": 0xB3, "ubyte": 0x50}
"""Of an array's items."""


def python_value(node: list[Any]) -> Any:
    """The value that the gateway's codec has for it."""
    kind, content = node
    match kind:
        case "list":
            return [python_value(item) for item in content]
        case "map":
            return {python_value(key): python_value(item) for key, item in content}
        case "described":
            return Described(*map(python_value, content))
        case "array":
            inner, items = content
            return Array(_CODES[inner], [python_value(item) for item in items])
    return _SCALARS[kind](content)


_SCALARS: Final[dict[str, Callable[[Any], Any]]] = {
    "null": lambda _: None,
    "bool": bool,
    "ubyte": UByte,
    "ushort": UShort,
    "uint": UInt,
    "ulong": ULong,
    "byte": Byte,
    "short": Short,
    "int": Int,
    "long": int,
    "timestamp": Timestamp,
    "float": Float,
    "double": float,
    "char": Char,
    "decimal32": lambda number: Decimal(number.to_bytes(4)),
    "decimal64": lambda number: Decimal(number.to_bytes(8)),
    "decimal128": lambda text: Decimal(bytes.fromhex(text)),
    "uuid": UUID,
    "binary": bytes.fromhex,
    "string": str,
    "symbol": Symbol,
}
