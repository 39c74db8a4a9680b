"""What one end of an AMQP connection offers and takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from partitionedqueue_gateway import limits


class Role(Enum):
    """Which end of the connection this is."""

    SERVER = "server"
    CLIENT = "client"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """Told to the peer, and held against it."""

    container_id: str
    hostname: str | None = None
    """Of the server, said by a client."""
    mechanisms: tuple[str, ...] = ("ANONYMOUS", "EXTERNAL", "MSSBCBS")
    """SASL: what a server offers; what a client takes, the first that is offered."""
    sasl_response: bytes = b""
    """A client's initial response."""
    max_frame_size: int = limits.AMQP_FRAME_BYTES_MAX
    channel_max: int = limits.AMQP_CHANNEL_MAX
    handle_max: int = limits.AMQP_HANDLE_MAX
    incoming_window: int = limits.AMQP_WINDOW_FRAMES
    idle_timeout_ms: int = limits.AMQP_IDLE_MS
    properties: Mapping[str, Any] = field(default_factory=dict)
