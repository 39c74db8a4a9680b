"""AMQP over WebSockets, which firewalls let pass as HTTP: `/$servicebus/websocket`, subprotocol AMQPWSB10."""

import asyncio
from collections.abc import Sequence
from typing import Final

from aiohttp import WSMsgType, web

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.front_door.conversation import Conversation
from partitionedqueue_gateway.front_door.conversations import Conversations

PATHS: Final = ("/$servicebus/websocket", "/$servicebus/websocket/")
SUBPROTOCOL: Final = "AMQPWSB10"


class WebSockets:
    """Turns requests for a WebSocket into conversations."""

    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations

    def routes(self) -> list[web.RouteDef]:
        """What is answered here."""
        return [web.get(path, self.talk) for path in PATHS]

    async def talk(self, request: web.Request) -> web.StreamResponse:
        """One conversation, from its first byte to its last."""
        offered = request.headers.get("Sec-WebSocket-Protocol", "")
        if SUBPROTOCOL not in {one.strip() for one in offered.split(",")}:
            return web.Response(status=400, text=f"ask for a WebSocket with subprotocol {SUBPROTOCOL}\n")
        if self._conversations.full:
            return web.Response(status=503, text="there are too many connections here\n", headers={"Retry-After": "1"})
        socket = web.WebSocketResponse(
            protocols=(SUBPROTOCOL,), max_msg_size=limits.WEBSOCKET_MESSAGE_BYTES_MAX, compress=False
        )
        await socket.prepare(request)
        wire = _WebSocketWire(request, socket)
        await wire.carry(self._conversations)
        return socket


class _WebSocketWire:
    """One WebSocket. What is written waits for one task that sends, as sending takes its time there."""

    def __init__(self, request: web.Request, socket: web.WebSocketResponse) -> None:
        self._request = request
        self._socket = socket
        self._waiting = bytearray()
        self._written, self._readable = asyncio.Event(), asyncio.Event()
        self._readable.set()
        self._closing = self._paused = False
        self._conversation: Conversation | None = None

    @property
    def peer(self) -> str:
        """Its address and port, as far as is known."""
        transport = self._request.transport
        name = transport.get_extra_info("peername") if transport is not None else None
        return f"{name[0]}:{name[1]} (WebSocket)" if name else "somebody (WebSocket)"

    @property
    def encrypted(self) -> bool:
        """Whether it came in over TLS."""
        return self._request.secure

    def write(self, buffers: Sequence[bytes]) -> None:
        """Send."""
        for one in buffers:
            self._waiting += one
        self._written.set()
        if self._conversation is not None and not self._paused and len(self._waiting) > limits.WRITE_BUFFER_BYTES_MAX:
            self._paused = True
            self._conversation.pause_writing()

    def pause_reading(self) -> None:
        """Let the peer wait: aiohttp stops reading by itself when nobody takes what it has."""
        self._readable.clear()

    def resume_reading(self) -> None:
        """Go on."""
        self._readable.set()

    def close(self) -> None:
        """Send what was written, and close."""
        self._closing = True
        self._written.set()

    def abort(self) -> None:
        """Close at once."""
        if self._request.transport is not None:
            self._request.transport.abort()

    async def carry(self, conversations: Conversations) -> None:
        """Between the peer and a new conversation until one of them ends it."""
        conversation = self._conversation = conversations.begin(self)
        both = [asyncio.create_task(self._receive(conversation)), asyncio.create_task(self._send(conversation))]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._conversation = None
            conversations.end(self)
            for task in both:
                task.cancel()
            results = await asyncio.gather(*both, return_exceptions=True)
            self.abort()
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, (OSError, TimeoutError)):
                raise result

    async def _receive(self, conversation: Conversation) -> None:
        while True:
            await self._readable.wait()
            message = await self._socket.receive()
            if message.type is not WSMsgType.BINARY:
                return
            if message.data:
                conversation.data_received(message.data)

    async def _send(self, conversation: Conversation) -> None:
        while not self._closing or self._waiting:
            await self._written.wait()
            self._written.clear()
            while self._waiting:
                piece = bytes(self._waiting[: limits.WEBSOCKET_PIECE_BYTES])
                del self._waiting[: limits.WEBSOCKET_PIECE_BYTES]
                async with asyncio.timeout(limits.STALLED_S_MAX):
                    await self._socket.send_bytes(piece)
                if self._paused and len(self._waiting) <= limits.WRITE_BUFFER_BYTES_MAX // 4:
                    self._paused = False
                    conversation.resume_writing()
        async with asyncio.timeout(limits.FLUSH_S_MAX):
            await self._socket.close()
