"""The bell of one broker: tells those who wait when asking again is worthwhile, so that nobody polls.

The broker publishes on a queue's channel (`QueueKeys.wake`) when something has become ready, or will sooner than was
known. That reaches only whoever listens at that moment. So: listen first, then ask; and ask again whenever the
connection was lost or is back, because something may have been missed.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias

import hiredis

from partitionedqueue.broker.logins import NO_LOGIN, Credentials, Login
from partitionedqueue.model import limits
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.placement import BrokerAddress

Rung: TypeAlias = Callable[[bytes | None], None]
"""Gets what was published, a session id or b""; None where something may have been missed: ask."""

_PING: Final = hiredis.pack_command(("PING",))


class _Connection(asyncio.Protocol):
    """One subscriber connection (RESP2), which only reads but for SUBSCRIBE, UNSUBSCRIBE and PING."""

    def __init__(self, said: Callable[[list[Any]], None]) -> None:
        self._said = said
        self._reader = hiredis.Reader()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._pinging: asyncio.TimerHandle | None = None
        self._heard = True
        self.refused = False
        self.lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if transport.get_extra_info("sockname") == transport.get_extra_info("peername"):
            self.drop()  # joined to itself, as TCP does where nobody listens
            return
        self._pinging = self._loop.call_later(limits.BELL_PING_S, self._ping)

    def data_received(self, data: bytes) -> None:
        self._heard = True
        try:
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not False:
                if isinstance(reply, hiredis.ReplyError):
                    self.refused = True  # not let in, or no connection to spare: tried again later
                    self.drop()
                    return
                if isinstance(reply, list):
                    self._said(reply)
        except hiredis.ProtocolError:
            self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        self.drop()

    def drop(self) -> None:
        """Give the connection up."""
        if self.lost.is_set():
            return
        self.lost.set()
        if self._pinging is not None:
            self._pinging.cancel()
        if self._transport is not None:
            self._transport.abort()

    def write(self, *words: str) -> None:
        if self._transport is not None and not self.lost.is_set():
            self._transport.write(hiredis.pack_command(words))  # type: ignore[arg-type]  # its stub knows tuples of one

    def _ping(self) -> None:
        """A broker that has not answered one ping by the next is gone: a receiver would wait for it for ever."""
        if not self._heard or self._transport is None:
            self.drop()
            return
        self._heard = False
        self._transport.write(_PING)
        self._pinging = self._loop.call_later(limits.BELL_PING_S, self._ping)


class _Channel:
    """A channel and those who listen to it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.listeners: set[Listening] = set()
        self.heard = asyncio.Event()
        self.unused: asyncio.TimerHandle | None = None

    def ring(self, payload: bytes | None) -> None:
        for listening in tuple(self.listeners):
            listening.rung(payload)


class Listening:
    """One who listens to a channel, until `end`."""

    def __init__(self, bell: "Bell", channel: _Channel, rung: Rung) -> None:
        self.rung = rung
        self._bell = bell
        self._channel = channel
        channel.listeners.add(self)

    @property
    def in_effect(self) -> bool:
        """Whether what is published now will be heard."""
        return self._channel.heard.is_set()

    def end(self) -> None:
        """Listen no more. Harmless when done twice."""
        self._channel.listeners.discard(self)
        self._bell.left(self._channel)


class Bell:
    """Listens to one broker, over one connection of its own, for any number of listeners and channels.

    The connection is there while there are channels; one that nobody listens to is kept for `limits.BELL_LINGER_S`.
    One that is lost is made anew, ever more slowly up to `limits.RECONNECT_DELAY_S_MAX`; when it is lost and when it is
    back, everybody is rung. For one event loop.
    """

    def __init__(
        self,
        address: BrokerAddress,
        *,
        timeout_s: float = limits.CALL_TIMEOUT_S_DEFAULT,
        login: Login = NO_LOGIN,
    ) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._login = login
        self._refused: Credentials | None = None  # by the last connection
        self._channels: dict[str, _Channel] = {}
        self._connection: _Connection | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._delay_s = limits.RECONNECT_DELAY_S_MIN
        self._closed = False

    def listen(self, channel: str, rung: Rung) -> Listening:
        """Have `rung` called for whatever is published on a channel, and when that comes into effect."""
        found = self._channels.get(channel)
        if found is None:
            found = self._channels[channel] = _Channel(channel)
            if self._connection is not None:
                self._connection.write("SUBSCRIBE", channel)
        elif found.unused is not None:
            found.unused.cancel()
            found.unused = None
        if self._keeping is None and not self._closed:
            self._keeping = asyncio.create_task(self._keep())
        return Listening(self, found, rung)

    def left(self, channel: _Channel) -> None:
        """A listener has left a channel: give it up in a while, if nobody comes back."""
        if channel.listeners or channel.unused is not None or self._closed:
            return
        channel.unused = asyncio.get_running_loop().call_later(limits.BELL_LINGER_S, self._give_up, channel)

    async def close(self) -> None:
        """Close for good; nobody is rung any more."""
        self._closed = True
        for channel in self._channels.values():
            if channel.unused is not None:
                channel.unused.cancel()
            channel.heard.clear()
        self._channels.clear()
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
            await asyncio.sleep(0)  # the socket closes one turn later

    def _give_up(self, channel: _Channel) -> None:
        del self._channels[channel.name]
        if self._connection is not None:
            self._connection.write("UNSUBSCRIBE", channel.name)
        if not self._channels and self._keeping is not None:
            self._keeping.cancel()
            self._keeping = None

    async def _keep(self) -> None:
        """Keep a connection, until cancelled."""
        while True:
            connection, credentials = await self._connect()
            if connection is not None:
                try:
                    if credentials is not None:
                        connection.write("AUTH", *credentials)
                    if self._channels:
                        connection.write("SUBSCRIBE", *self._channels)
                    self._connection = connection
                    await connection.lost.wait()
                finally:
                    self._connection = None
                    connection.drop()
                    self._refused = credentials if connection.refused else None
                    self._missed(tuple(self._channels.values()))
            await asyncio.sleep(self._delay_s)
            self._delay_s = min(self._delay_s * 2, limits.RECONNECT_DELAY_S_MAX)

    async def _connect(self) -> tuple[_Connection | None, Credentials | None]:
        try:
            async with asyncio.timeout(self._timeout_s):
                credentials = await self._login(self._refused)
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(self._said), self.address.host, self.address.port
                )
        except (OSError, UnicodeError, PartitionedQueueError):
            return None, None
        return connection, credentials

    def _said(self, reply: list[Any]) -> None:
        channel = self._channels.get(reply[1].decode()) if len(reply) == 3 and reply[1] is not None else None
        if channel is None:
            return
        if reply[0] == b"message":
            channel.ring(reply[2])
        elif reply[0] == b"subscribe":
            self._delay_s = limits.RECONNECT_DELAY_S_MIN
            channel.heard.set()
            channel.ring(None)

    @staticmethod
    def _missed(channels: Collection[_Channel]) -> None:
        for channel in channels:
            if channel.heard.is_set():
                channel.heard.clear()
                channel.ring(None)
