"""The door: takes connections, finds out what each of them speaks, and hands it to who understands that.

The first byte is looked at while it stays in the kernel's buffer, so that TLS finds all that it needs; inside TLS the
first bytes are kept until it is known who gets them.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.front_door.certificate import Certificate
from partitionedqueue_gateway.front_door.conversations import Conversations
from partitionedqueue_gateway.front_door.first_byte import Talk, talk_of
from partitionedqueue_gateway.front_door.pipe import Pipe
from partitionedqueue_gateway.front_door.sockets import Entrance, prepare

_log = logging.getLogger(__name__)
_EXHAUSTED: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
NewProtocol: TypeAlias = Callable[[], asyncio.Protocol]
_Protocols: TypeAlias = Mapping[Talk | None, NewProtocol]


class _Serving(NamedTuple):
    """What is spoken at one entrance, and whether in TLS alone."""

    tls_only: bool
    protocols: _Protocols


class FrontDoor:
    """Serves entrances until it is closed. `certificate` None: TLS is not spoken."""

    def __init__(self, conversations: Conversations, certificate: Certificate | None) -> None:
        self._conversations = conversations
        self._certificate = certificate
        self._listening: dict[socket.socket, _Serving] = {}
        self._greetings: dict[asyncio.Task[None], None] = {}  # in the order in which they came

    def open(self, entrance: Entrance, listening: socket.socket, http: NewProtocol) -> None:
        """Take connections from now on; the socket is the door's."""
        listening.listen(limits.CONNECTIONS_MAX)
        amqp = partial(Pipe, self._conversations)
        self._listening[listening] = _Serving(entrance.tls_only, {Talk.AMQP: amqp, Talk.HTTP: http})
        asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    async def close(self) -> None:
        """Take none any more, and send those away that have not said yet what they want."""
        for listening in [*self._listening]:
            asyncio.get_running_loop().remove_reader(listening)
            del self._listening[listening]
            listening.close()
        greetings = [*self._greetings]
        for greeting in greetings:
            greeting.cancel()
        await asyncio.gather(*greetings, return_exceptions=True)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(limits.ACCEPTED_AT_ONCE_MAX):
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                _log.error("no connection can be taken for %g s: %s", limits.ACCEPT_AGAIN_S, error)
                self._accept_later(listening)
                return
            connection.setblocking(False)
            prepare(connection)
            self._greet(connection, self._listening[listening])

    def _accept_later(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening)

        def again() -> None:
            if listening in self._listening:
                loop.add_reader(listening, self._accept, listening)

        loop.call_later(limits.ACCEPT_AGAIN_S, again)

    def _greet(self, connection: socket.socket, serving: _Serving) -> None:
        if len(self._greetings) >= limits.GREETINGS_MAX:
            oldest = next(iter(self._greetings))
            del self._greetings[oldest]
            oldest.cancel()
        greeting = asyncio.create_task(self._greeting(connection, serving))
        self._greetings[greeting] = None
        greeting.add_done_callback(lambda done: self._greetings.pop(done, None))

    async def _greeting(self, connection: socket.socket, serving: _Serving) -> None:
        """Until it is known who serves a connection. What goes wrong here concerns this one alone."""
        handed_over = False
        try:
            async with asyncio.timeout(limits.GREETING_S_MAX):
                talk = talk_of(await _peek(connection))
                if talk is Talk.TLS and self._certificate is not None:
                    handed_over = True
                    await _greet_inside_tls(connection, self._certificate.context, serving.protocols)
                elif talk in serving.protocols and not serving.tls_only:
                    handed_over = True
                    await asyncio.get_running_loop().connect_accepted_socket(serving.protocols[talk], connection)
        except (OSError, TimeoutError):  # it went, was silent, or does not agree with us on how to speak TLS
            prepare(connection)
        finally:
            if not handed_over:
                connection.close()


async def _greet_inside_tls(connection: socket.socket, context: ssl.SSLContext, protocols: _Protocols) -> None:
    loop = asyncio.get_running_loop()
    transport, inside = await loop.connect_accepted_socket(
        lambda: _Inside(loop.create_future(), protocols),
        connection,
        ssl=context,
        ssl_handshake_timeout=limits.GREETING_S_MAX,
        ssl_shutdown_timeout=limits.FLUSH_S_MAX,
    )
    try:
        await inside.decided
    except BaseException:
        transport.abort()
        raise


class _Inside(asyncio.Protocol):
    """Holds a connection inside TLS until its first bytes say whose it is."""

    def __init__(self, decided: asyncio.Future[None], protocols: _Protocols) -> None:
        self.decided = decided
        self._protocols = protocols
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        talk = talk_of(data)
        if talk not in self._protocols:
            self._transport.abort()
            return
        protocol = self._protocols[talk]()
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        protocol.data_received(data)
        if not self.decided.done():
            self.decided.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.decided.done():
            self.decided.set_result(None)


async def _peek(connection: socket.socket) -> bytes:
    """The first byte, which stays where it is; empty: the peer has gone."""
    loop = asyncio.get_running_loop()
    there = asyncio.Event()
    loop.add_reader(connection, there.set)
    try:
        await there.wait()
    finally:
        loop.remove_reader(connection)
    return connection.recv(1, socket.MSG_PEEK)
