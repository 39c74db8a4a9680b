"""The frames' bodies that are rare enough to be read and written by table (§2.7, §5.3.3)."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from partitionedqueue_gateway.amqp.engine import encoding
from partitionedqueue_gateway.amqp.engine.decoding import DecodeError, decode_at
from partitionedqueue_gateway.amqp.engine.values import Array, Described, Symbol, UByte, UInt, ULong, UShort, Value

OPEN: Final = 0x10
BEGIN: Final = 0x11
ATTACH: Final = 0x12
FLOW: Final = 0x13
TRANSFER: Final = 0x14
DISPOSITION: Final = 0x15
DETACH: Final = 0x16
END: Final = 0x17
CLOSE: Final = 0x18
ERROR: Final = 0x1D
SASL_MECHANISMS: Final = 0x40
SASL_INIT: Final = 0x41
SASL_OUTCOME: Final = 0x44

UINT_MAX: Final = 0xFFFFFFFF


class AmqpError(NamedTuple):
    """Why something was refused or ended (§2.8.14)."""

    condition: str
    description: str | None = None
    info: Mapping[Any, Any] | None = None


class Open(NamedTuple):
    """§2.7.1."""

    container_id: str
    hostname: str | None = None
    max_frame_size: int = UINT_MAX
    channel_max: int = 0xFFFF
    idle_timeout_ms: int | None = None
    outgoing_locales: Value = None
    incoming_locales: Value = None
    offered_capabilities: Value = None
    desired_capabilities: Value = None
    properties: Mapping[Any, Any] | None = None


class Begin(NamedTuple):
    """§2.7.2."""

    remote_channel: int | None
    next_outgoing_id: int
    incoming_window: int
    outgoing_window: int
    handle_max: int = UINT_MAX
    offered_capabilities: Value = None
    desired_capabilities: Value = None
    properties: Mapping[Any, Any] | None = None


class Attach(NamedTuple):
    """§2.7.3; `is_receiver` is role."""

    name: str
    handle: int
    is_receiver: bool
    snd_settle_mode: int | None = None
    rcv_settle_mode: int | None = None
    source: Described | None = None
    target: Described | None = None
    unsettled: Mapping[Any, Any] | None = None
    incomplete_unsettled: bool | None = None
    initial_delivery_count: int | None = None
    max_message_size: int | None = None
    offered_capabilities: Value = None
    desired_capabilities: Value = None
    properties: Mapping[Any, Any] | None = None


class Detach(NamedTuple):
    """§2.7.7."""

    handle: int
    closed: bool = False
    error: AmqpError | None = None


class End(NamedTuple):
    """§2.7.8."""

    error: AmqpError | None = None


class Close(NamedTuple):
    """§2.7.9."""

    error: AmqpError | None = None


class SaslMechanisms(NamedTuple):
    """§5.3.3.1; a list, also where the frame has a single symbol."""

    mechanisms: list[str]


class SaslInitFrame(NamedTuple):
    """§5.3.3.2."""

    mechanism: str
    initial_response: bytes | None = None
    hostname: str | None = None


class SaslOutcomeFrame(NamedTuple):
    """§5.3.3.5: 0 is well."""

    code: int
    additional_data: bytes | None = None


Performative = Open | Begin | Attach | Detach | End | Close | SaslMechanisms | SaslInitFrame | SaslOutcomeFrame


class _Many(list[str]):
    """The kind of a field that is a symbol or an array of them."""


_CAPABILITIES: Final = (_Many, _Many)
_SHAPES: Final[Mapping[int, tuple[Any, int, tuple[type, ...]]]] = {
    # The class, how many fields must be there, and the kind of each.
    OPEN: (Open, 1, (str, str, UInt, UShort, UInt, _Many, _Many, *_CAPABILITIES, dict)),
    BEGIN: (Begin, 4, (UShort, UInt, UInt, UInt, UInt, *_CAPABILITIES, dict)),
    ATTACH: (
        Attach,
        3,
        (str, UInt, bool, UByte, UByte, Described, Described, dict, bool, UInt, ULong, *_CAPABILITIES, dict),
    ),
    DETACH: (Detach, 1, (UInt, bool, AmqpError)),
    END: (End, 0, (AmqpError,)),
    CLOSE: (Close, 0, (AmqpError,)),
    SASL_MECHANISMS: (SaslMechanisms, 1, (_Many,)),
    SASL_INIT: (SaslInitFrame, 1, (Symbol, bytes, str)),
    SASL_OUTCOME: (SaslOutcomeFrame, 1, (UByte, bytes)),
}
_OPTIONAL_FIRST: Final = BEGIN
"""Whose remote-channel is the one optional field before required ones."""
_CODES: Final = {shape[0]: code for code, shape in _SHAPES.items()}
_SIZES: Final = {UByte: 1 << 8, UShort: 1 << 16, UInt: 1 << 32, ULong: 1 << 64}
_NAMES: Final = {
    f"amqp:{name}:list": code
    for name, code in {
        "open": OPEN,
        "begin": BEGIN,
        "attach": ATTACH,
        "flow": FLOW,
        "transfer": TRANSFER,
        "disposition": DISPOSITION,
        "detach": DETACH,
        "end": END,
        "close": CLOSE,
        "sasl-mechanisms": SASL_MECHANISMS,
        "sasl-init": SASL_INIT,
        "sasl-outcome": SASL_OUTCOME,
    }.items()
}


def code_at(data: bytes, at: int) -> tuple[int, int]:
    """Which performative begins at `at`, and where its list does. Raises DecodeError."""
    if data[at : at + 2] == b"\x00\x53" and len(data) > at + 2:
        return data[at + 2], at + 3
    if data[at : at + 1] != b"\x00":
        raise DecodeError("a frame's body is no described list")
    descriptor, at = decode_at(data, at + 1)
    return descriptor_code(descriptor, _NAMES), at


def descriptor_code(descriptor: Value, names: Mapping[str, int]) -> int:
    """The number of a descriptor that came as a number or by name; -1 for none that is known."""
    if isinstance(descriptor, ULong):
        return int(descriptor)
    return names.get(descriptor, -1) if isinstance(descriptor, Symbol) else -1


def read(code: int, data: bytes, at: int) -> tuple[Performative, int]:
    """A performative from its list at `at`, and where its payload begins. Raises DecodeError."""
    fields, end = decode_at(data, at)
    if code not in _SHAPES:
        raise DecodeError(f"a frame has the unknown performative 0x{code:x}")
    make, required, kinds = _SHAPES[code]
    if not isinstance(fields, list) or len(fields) > len(kinds):
        raise DecodeError(f"{make.__name__.lower()} is no list of at most {len(kinds)} fields")
    read_fields = {}
    for name, kind, value in zip(make._fields, kinds, fields, strict=False):
        if value is not None:
            read_fields[name] = _field(f"{make.__name__.lower()}'s {name}", kind, value)
    if code == _OPTIONAL_FIRST:
        read_fields.setdefault("remote_channel", None)
    lacking = [name for name in make._fields[:required] if name not in read_fields]
    if lacking:
        raise DecodeError(f"{make.__name__.lower()} lacks {lacking[0]}")
    return make(**read_fields), end


def _field(what: str, kind: type, value: Value) -> Value:
    """Numbers may be narrower or wider than AMQP says, as long as they fit, and symbols may be strings."""
    if kind in _SIZES:
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _SIZES[kind]:
            return int(value)
    elif kind is _Many:
        items = value.items if isinstance(value, Array) else [value]
        if all(isinstance(item, str) for item in items):
            return list(items)
    elif kind is AmqpError:
        return read_error(value)
    elif isinstance(value, str if kind is Symbol else kind):
        return value
    raise DecodeError(f"{what} cannot be {type(value).__name__}")


def read_error(value: Value) -> AmqpError:
    """An error as it stands in other performatives and in rejected (§2.8.14). Raises DecodeError."""
    if isinstance(value, Described) and descriptor_code(value.descriptor, {"amqp:error:list": ERROR}) == ERROR:
        fields = [*value.value, None, None, None] if isinstance(value.value, list) else []
        match fields:
            case [str(condition), (str() | None) as description, (dict() | None) as info, *_]:
                return AmqpError(condition, description, info)
    raise DecodeError("an error is no list of condition, description and info")


def error_value(error: AmqpError) -> Described:
    """An error to be encoded; keys of its info that are plain text become symbols."""
    info = None if error.info is None else {Symbol(key): value for key, value in error.info.items()}
    return Described(ULong(ERROR), [Symbol(error.condition), error.description, info])


def write(performative: Performative) -> bytes:
    """A frame's body."""
    code = _CODES[type(performative)]
    kinds = _SHAPES[code][2]
    fields = [_wire(kind, value) for kind, value in zip(kinds, performative, strict=True)]
    return encoding.performative(code, fields)


def _wire(kind: type, value: Value) -> Value:
    if value is None:
        return None
    if kind is AmqpError:
        return error_value(value)
    if kind is _Many:
        return Array.of_symbols([value] if isinstance(value, str) else list(value))
    if kind is dict:
        return {Symbol(key) if type(key) is str else key: inner for key, inner in value.items()}
    return kind(value) if kind in _SIZES or kind is Symbol else value
