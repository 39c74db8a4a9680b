"""Frames (§2.3) and protocol headers (§2.2), as bytes."""

import struct
from typing import Final

from partitionedqueue_gateway.amqp.engine import violations
from partitionedqueue_gateway.amqp.engine.violations import Violation

HEADER_BYTES: Final = 8
AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"
AMQP_FRAME: Final = 0
SASL_FRAME: Final = 1
KEEP_ALIVE: Final = b"\x00\x00\x00\x08\x02\x00\x00\x00"

_FRAME_HEAD: Final = struct.Struct(">IBBH")
head_of: Final = _FRAME_HEAD.unpack_from
"""(data, at) -> the frame's size, where its body begins in words of 4 bytes, its type, its channel."""


def frame(channel: int, body: bytes, kind: int = AMQP_FRAME) -> bytes:
    """A whole frame."""
    return _FRAME_HEAD.pack(HEADER_BYTES + len(body), 2, kind, channel) + body


def size_violation(size: int, offset: int, largest: int) -> Violation:
    """Why no frame can say that of itself."""
    if size > largest:
        return Violation(violations.FRAMING_ERROR, f"a frame of {size} bytes is larger than {largest}")
    return Violation(
        violations.FRAMING_ERROR, f"a frame of {size} bytes cannot have a body {4 * offset} bytes from its start"
    )


class InputBuffer:
    """What has come of a frame that is not all there yet; joined once, however many pieces it comes in."""

    def __init__(self) -> None:
        self.pieces = bytearray()
        self._need = 0

    def take(self, data: bytes) -> bytes:
        """What was kept and what comes now; nothing while that is less than was said to be needed."""
        self.pieces += data
        if len(self.pieces) < self._need:
            return b""
        data = bytes(self.pieces)
        self.pieces.clear()
        return data

    def keep(self, rest: bytes, need: int) -> None:
        """Keep the beginning of something that will have `need` bytes."""
        self.pieces += rest
        self._need = need
