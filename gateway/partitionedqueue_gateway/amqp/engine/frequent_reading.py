"""transfer, disposition and flow (§2.7.4 to §2.7.6), which come with each message: read by hand, the rest by table.

The readers may look beyond a frame's end, into the next one, but never believe what they saw there: they give nothing
unless the fields ended where the frame's list does. Each of them is one function, because calls would be felt.
"""

import struct
from typing import Final, NamedTuple

from partitionedqueue_gateway.amqp.engine.decoding import DecodeError, skip
from partitionedqueue_gateway.amqp.engine.outcomes import ACCEPTED, ACCEPTED_CODE, code_of
from partitionedqueue_gateway.limits import AMQP_TAG_BYTES_MAX

_U32: Final = struct.Struct(">I").unpack_from
_EMPTY: Final = b"\x40\x42"
"""null and false: what the rare fields of a transfer are filled with."""
_EIGHT: Final = range(8)
_made: Final = tuple.__new__
"""A named tuple's own way to be made costs three times as much."""

Transfer = tuple[int, int | None, bytes | None, int, bool, bool, bytes, bool, int]
"""handle, delivery id, delivery tag, message format, settled, more, state, aborted, where the payload begins."""

Disposition = tuple[bool, int, int, bool, int, bytes]
"""by the receiver, first, last, settled, the code of the state (0 for none), its bytes."""


class Flow(NamedTuple):
    """§2.7.4."""

    next_incoming_id: int | None
    incoming_window: int
    next_outgoing_id: int
    outgoing_window: int
    handle: int | None = None
    delivery_count: int | None = None
    link_credit: int | None = None
    available: int | None = None
    drain: bool = False
    echo: bool = False


def read_transfer(data: bytes, at: int, end: int) -> Transfer:  # noqa: C901, PLR0912, PLR0915 -- see above
    """The transfer whose list begins at `at`, in a frame that ends at `end`. Raises DecodeError."""
    delivery_id: int | None = None
    tag: bytes | None = None
    message_format, settled, more, state, aborted = 0, False, False, b"", False
    try:
        if data[at] == 0xC0:
            stop, count = at + 2 + data[at + 1], data[at + 2]
            at += 3
        else:
            at, stop, count = _wide_list(data, at)
        code = data[at]
        if code == 0x43:
            handle = 0
            at += 1
        elif code == 0x52:
            handle = data[at + 1]
            at += 2
        else:
            handle, at = _uint(data, at)
        if count > 1:
            code = data[at]
            if code == 0x70:
                (delivery_id,) = _U32(data, at + 1)
                at += 5
            elif code == 0x52:
                delivery_id = data[at + 1]
                at += 2
            else:
                delivery_id, at = _uint_or_none(data, at)
        if count > 2:
            if data[at] == 0xA0 and data[at + 1] <= AMQP_TAG_BYTES_MAX:
                start = at + 2
                at = start + data[at + 1]
                tag = data[start:at]
            else:
                tag, at = _tag(data, at)
        if count > 3:
            if data[at] == 0x43:
                at += 1
            else:
                message_format, at = _uint_or_zero(data, at)
        if count > 4:
            if data[at] == 0x42:
                at += 1
            else:
                settled, at = _flag(data, at)
        if count > 5:
            if data[at] == 0x42:
                at += 1
            else:
                more, at = _flag(data, at)
        if count > 6:
            if data[at:stop].strip(_EMPTY):
                state, aborted, at = _rare_fields(data, at, count)
            else:
                at = stop
    except (IndexError, struct.error) as error:
        raise DecodeError("a transfer is cut short") from error
    if at != stop or stop > end or not 0 < count <= 11:
        raise DecodeError("a transfer's fields do not end where its list does")
    return handle, delivery_id, tag, message_format, settled, more, state, aborted, stop


def read_disposition(data: bytes, at: int, end: int) -> Disposition:  # noqa: C901, PLR0912 -- see above
    """The disposition whose list begins at `at`, in a frame that ends at `end`. Raises DecodeError."""
    settled, code, state = False, 0, b""
    try:
        if data[at] == 0xC0:
            stop, count = at + 2 + data[at + 1], data[at + 2]
            at += 3
        else:
            at, stop, count = _wide_list(data, at)
        by_receiver, at = _flag(data, at)
        if data[at] == 0x70:
            (first,) = _U32(data, at + 1)
            at += 5
        else:
            first, at = _uint(data, at)
        last = first
        if count > 2:
            if data[at] == 0x40:
                at += 1
            else:
                last, at = _uint(data, at)
        if count > 3:
            if data[at] == 0x42:
                at += 1
            else:
                settled, at = _flag(data, at)
        if count > 4:
            if data[at : at + 4] == ACCEPTED:
                code, state = ACCEPTED_CODE, ACCEPTED
                at += 4
            else:
                code, state, at = _state(data, at)
        if count > 5:
            _, at = _flag(data, at)
    except (IndexError, struct.error) as error:
        raise DecodeError("a disposition is cut short") from error
    if at != stop or stop > end or not 2 <= count <= 6:
        raise DecodeError("a disposition's fields do not end where its list does")
    return by_receiver, first, last, settled, code, state


def read_flow(data: bytes, at: int, end: int) -> Flow:  # noqa: C901, PLR0912 -- see above
    """The flow whose list begins at `at`, in a frame that ends at `end`. Raises DecodeError."""
    numbers: list[int | None] = []
    append = numbers.append
    drain = echo = False
    try:
        if data[at] == 0xC0:
            stop, count = at + 2 + data[at + 1], data[at + 2]
            at += 3
        else:
            at, stop, count = _wide_list(data, at)
        for _ in _EIGHT if count > 7 else range(count):
            code = data[at]
            if code == 0x52:
                append(data[at + 1])
                at += 2
            elif code == 0x70:
                append(_U32(data, at + 1)[0])
                at += 5
            elif code == 0x43:
                append(0)
                at += 1
            else:
                number, at = _uint_or_none(data, at)
                append(number)
        if count > 8:
            drain, at = _flag(data, at)
        if count > 9:
            echo, at = _flag(data, at)
        if count > 10:
            at = skip(data, at)  # properties
    except (IndexError, struct.error) as error:
        raise DecodeError("a flow is cut short") from error
    if at != stop or stop > end or not 4 <= count <= 11 or None in numbers[1:4]:
        raise DecodeError("a flow lacks a field, or its fields do not end where its list does")
    if count < 8:
        numbers += [None] * (8 - count)
    return _made(Flow, (*numbers, drain, echo))


def _wide_list(data: bytes, at: int) -> tuple[int, int, int]:
    if data[at] != 0xD0:
        raise DecodeError(f"a list with fields is expected, not the format code 0x{data[at]:02x}")
    return at + 9, at + 5 + _U32(data, at + 1)[0], _U32(data, at + 5)[0]


def _uint(data: bytes, at: int) -> tuple[int, int]:
    code = data[at]
    if code == 0x52:
        return data[at + 1], at + 2
    if code == 0x43:
        return 0, at + 1
    if code == 0x70:
        return _U32(data, at + 1)[0], at + 5
    raise DecodeError(f"a uint is expected, not the format code 0x{code:02x}")


def _uint_or_none(data: bytes, at: int) -> tuple[int | None, int]:
    return (None, at + 1) if data[at] == 0x40 else _uint(data, at)


def _uint_or_zero(data: bytes, at: int) -> tuple[int, int]:
    return (0, at + 1) if data[at] == 0x40 else _uint(data, at)


def _flag(data: bytes, at: int) -> tuple[bool, int]:
    code = data[at]
    if 0x40 <= code <= 0x42:
        return code == 0x41, at + 1
    if code == 0x56 and data[at + 1] < 2:
        return data[at + 1] == 1, at + 2
    raise DecodeError(f"a boolean is expected, not the format code 0x{code:02x}")


def _tag(data: bytes, at: int) -> tuple[bytes | None, int]:
    if data[at] == 0x40:
        return None, at + 1
    if data[at] == 0xB0:
        size = _U32(data, at + 1)[0]
        if size <= AMQP_TAG_BYTES_MAX:
            return data[at + 5 : at + 5 + size], at + 5 + size
    raise DecodeError(f"a delivery tag is binary, and at most {AMQP_TAG_BYTES_MAX} bytes")


def _state(data: bytes, at: int) -> tuple[int, bytes, int]:
    if data[at] == 0x40:
        return 0, b"", at + 1
    if data[at] != 0x00:
        raise DecodeError("a delivery's state is not described")
    end = skip(data, at)
    state = data[at:end]
    return code_of(state), state, end


def _rare_fields(data: bytes, at: int, count: int) -> tuple[bytes, bool, int]:
    """From rcv-settle-mode on: state, aborted, and where the fields end."""
    state, aborted = b"", False
    at += 1 if data[at] == 0x40 else 2  # a ubyte
    if count > 7:
        _, state, at = _state(data, at)
    if count > 8:
        _, at = _flag(data, at)
    if count > 9:
        aborted, at = _flag(data, at)
    if count > 10:
        _, at = _flag(data, at)
    return state, aborted, at
