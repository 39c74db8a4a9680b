"""transfer, disposition and flow (§2.7.4 to §2.7.6), which go with each message: whole frames, written by hand."""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from partitionedqueue_gateway.amqp.engine.frequent_reading import Flow

_HEAD: Final = "IHHIBB"
"""The frame's size, data offset and type, channel; 00 53 code c0; the list's size and count."""
_LIST: Final = struct.Struct(">" + _HEAD).pack
_ONE: Final = struct.Struct(">" + _HEAD + "HIH").pack
_RANGE: Final = struct.Struct(">" + _HEAD + "HIBIB").pack
_WIDE_LIST: Final = struct.Struct(">IHHIII").pack
_PACK_U32: Final = struct.Struct(">BI").pack

_OUTSIDE: Final = 13
"""Of a frame, what its list's size does not count: its head, descriptor, format code and that size."""
_OUTSIDE_WIDE: Final = 16
_AMQP: Final = 0x0200
_TRANSFER: Final = 0x005314C0
_DISPOSITION: Final = 0x005315C0
_FLOW: Final = 0x005313C0
_WIDER: Final = 0x10
"""From 0xc0, a list with sizes of one byte, to 0xd0."""
HEAD_BYTES_MAX: Final = 128
"""A transfer's frame without its payload takes no more."""


def uint(value: int) -> bytes:
    """A uint, encoded."""
    if value < 256:
        return bytes((0x52, value)) if value else b"\x43"
    return _PACK_U32(0x70, value)


@lru_cache(maxsize=256)  # handles take 1, 2 or 5 bytes, tags up to 32, formats 1, 2 or 5
def _layout(handle_size: int, tag_size: int, format_size: int) -> Callable[..., bytes]:
    return struct.Struct(f">{_HEAD}{handle_size}sBIBB{tag_size}s{format_size}sBB").pack


def transfer(  # noqa: PLR0917 -- a frame's fields, in its order
    channel: int,
    handle: bytes,
    delivery_id: int,
    tag: bytes,
    message_format: bytes,
    settled: bool,
    more: bool,
    size: int,
) -> bytes:
    """The first frame of a delivery up to its payload of `size` bytes; handle and format are encoded. HOT."""
    handle_size, tag_size, format_size = len(handle), len(tag), len(message_format)
    listed = handle_size + tag_size + format_size + 10
    return _layout(handle_size, tag_size, format_size)(
        _OUTSIDE + listed + size,
        _AMQP,
        channel,
        _TRANSFER,
        listed,
        6,
        handle,
        0x70,
        delivery_id,
        0xA0,
        tag_size,
        tag,
        message_format,
        0x41 if settled else 0x42,
        0x41 if more else 0x42,
    )


def further_transfer(  # noqa: PLR0917 -- a frame's fields, in its order
    channel: int, handle: bytes, delivery_id: int, settled: bool, more: bool, size: int
) -> bytes:
    """A further frame of a delivery up to its payload of `size` bytes."""
    flags = bytes((0x41 if settled else 0x42, 0x41 if more else 0x42))
    body = handle + _PACK_U32(0x70, delivery_id) + b"\x40\x40" + flags
    listed = len(body) + 1
    return _LIST(_OUTSIDE + listed + size, _AMQP, channel, _TRANSFER, listed, 6) + body


def disposition(  # noqa: PLR0917 -- a frame's fields, in its order
    channel: int, by_receiver: bool, first: int, last: int, settled: bool, state: bytes
) -> bytes:
    """What becomes of deliveries from first to last. HOT."""
    role_and_uint = 0x4170 if by_receiver else 0x4270
    flag = 0x41 if settled else 0x42
    state = state or b"\x40"
    if first == last:
        listed = 9 + len(state)
        if listed < 256:
            null = 0x4000 | flag
            return _ONE(_OUTSIDE + listed, _AMQP, channel, _DISPOSITION, listed, 5, role_and_uint, first, null) + state
    listed = 13 + len(state)
    if listed < 256:
        head = _RANGE(
            _OUTSIDE + listed, _AMQP, channel, _DISPOSITION, listed, 5, role_and_uint, first, 0x70, last, flag
        )
        return head + state
    body = struct.pack(">HIBIB", role_and_uint, first, 0x70, last, flag) + state
    listed = 4 + len(body)
    return _WIDE_LIST(_OUTSIDE_WIDE + listed, _AMQP, channel, _DISPOSITION + _WIDER, listed, 5) + body


def flow(channel: int, told: Flow) -> bytes:
    """Windows, and a link's credit."""
    numbers: tuple[Any, ...] = told[:8]
    parts = [b"\x40" if number is None else uint(number) for number in numbers]
    parts.append(b"\x41" if told.drain else b"\x42")
    parts.append(b"\x41" if told.echo else b"\x42")
    body = b"".join(parts)
    return _LIST(_OUTSIDE + 1 + len(body), _AMQP, channel, _FLOW, 1 + len(body), 10) + body
