"""AMQP over a TCP connection or inside TLS: asyncio's transport on one side, a conversation on the other."""

import asyncio
from collections.abc import Sequence

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.front_door.conversation import Conversation
from partitionedqueue_gateway.front_door.conversations import Conversations


class Pipe(asyncio.Protocol):
    """The wire of one conversation."""

    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations
        self._transport: asyncio.Transport
        self._conversation: Conversation | None = None
        self._impatience: asyncio.TimerHandle | None = None
        self._closing = False

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The conversation begins, unless there are too many."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=limits.WRITE_BUFFER_BYTES_MAX, low=limits.WRITE_BUFFER_BYTES_MAX // 4)
        if self._conversations.full:
            transport.abort()
        else:
            self._conversation = self._conversations.begin(self)

    def data_received(self, data: bytes) -> None:
        """The peer has said something."""
        if self._conversation is not None and not self._closing:
            self._conversation.data_received(data)

    def pause_writing(self) -> None:
        """The peer reads too slowly."""
        if self._conversation is not None and not self._closing:
            self._lose_patience_after(limits.STALLED_S_MAX)
            self._conversation.pause_writing()

    def resume_writing(self) -> None:
        """It has caught up."""
        if self._conversation is not None and not self._closing:
            self._be_patient()
            self._conversation.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._be_patient()
        if self._conversation is not None:
            self._conversation = None
            self._conversations.end(self)

    # What the conversation calls.

    @property
    def peer(self) -> str:
        """Its address and port."""
        name = self._transport.get_extra_info("peername")
        return f"{name[0]}:{name[1]}" if name else "somebody"

    @property
    def encrypted(self) -> bool:
        """Whether it came in over TLS."""
        return self._transport.get_extra_info("ssl_object") is not None

    def write(self, buffers: Sequence[bytes]) -> None:
        """Send."""
        self._transport.writelines(buffers)

    def pause_reading(self) -> None:
        """Let the peer wait."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on."""
        self._transport.resume_reading()

    def close(self) -> None:
        """Send what was written, and close."""
        if not self._closing:
            self._closing = True
            self._transport.close()
            self._lose_patience_after(limits.FLUSH_S_MAX)

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def _lose_patience_after(self, seconds: float) -> None:
        self._be_patient()
        self._impatience = asyncio.get_running_loop().call_later(seconds, self._transport.abort)

    def _be_patient(self) -> None:
        if self._impatience is not None:
            self._impatience.cancel()
            self._impatience = None
