"""The AMQP sessions of a connection, by the channels that both ends use for them (§2.5.1)."""

from typing import TYPE_CHECKING, Final

from partitionedqueue_gateway.amqp.engine import performatives, violations
from partitionedqueue_gateway.amqp.engine.amqp_session import AmqpSession
from partitionedqueue_gateway.amqp.engine.decoding import DecodeError
from partitionedqueue_gateway.amqp.engine.events import Event, SessionBegan, SessionEnded
from partitionedqueue_gateway.amqp.engine.frequent_reading import read_flow
from partitionedqueue_gateway.amqp.engine.performatives import AmqpError, Attach, Begin, Detach, End
from partitionedqueue_gateway.amqp.engine.violations import Violation

if TYPE_CHECKING:
    from partitionedqueue_gateway.amqp.engine.connection import Connection

IN_SESSIONS: Final = frozenset(
    (
        performatives.ATTACH,
        performatives.DETACH,
        performatives.FLOW,
        performatives.TRANSFER,
        performatives.DISPOSITION,
    )
)
"""What only an AMQP session understands."""


class Channels:
    """Made by the connection."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self.by_peer: dict[int, AmqpSession] = {}
        """By the peer's channel; those that have ended here stay until the peer says so too."""
        self._by_us: dict[int, AmqpSession] = {}

    @property
    def waiting_bytes(self) -> int:
        """Of messages for which peers have no window."""
        return sum(session.outgoing.waiting_bytes for session in self._by_us.values())

    def begin(self) -> AmqpSession:
        """Ask for an AMQP session."""
        session = self._new(self._free_channel())
        session.announce()
        return session

    def take_begin(self, channel: int, begin: Begin, events: list[Event]) -> None:
        """The peer asks for an AMQP session, or answers that we may have one."""
        channel_max = self._connection.settings.channel_max
        if channel > channel_max:  # AMQP 1.0 §2.7.1
            raise Violation(violations.FRAMING_ERROR, f"the channel {channel} is above {channel_max}")
        if channel in self.by_peer:
            raise Violation(violations.NOT_ALLOWED, f"the channel {channel} has an AMQP session already")
        if begin.remote_channel is None:
            taken = channel in self._by_us or channel > self._connection.peer_channel_max
            session = self._new(self._free_channel() if taken else channel)
            session.take_begin(begin, channel)
            session.announce()
        else:
            asked = self._by_us.get(begin.remote_channel)
            if asked is None or asked.peer_channel is not None:
                raise Violation(violations.NOT_ALLOWED, f"nobody asked for an AMQP session on {begin.remote_channel}")
            session = asked
            session.take_begin(begin, channel)
        self.by_peer[channel] = session
        if not session.ended:
            events.append(SessionBegan(session))

    def take_end(self, channel: int, end: End, events: list[Event]) -> None:
        """The peer ends an AMQP session, or answers that it has ended."""
        session = self.by_peer.pop(channel, None)
        if session is None:
            return
        del self._by_us[session.channel]
        if not session.ended:
            session.flush()
            session.over(end.error, events)
            self._connection.send_frame(session.channel, performatives.write(End()))
            events.append(SessionEnded(session, end.error))

    def take(self, channel: int, code: int, body: bytes, at: int, events: list[Event]) -> None:
        """What belongs into an AMQP session; one that has ended is told things for a while yet (§2.5.2)."""
        session = self.by_peer.get(channel)
        if session is None:
            if code in (performatives.ATTACH, performatives.TRANSFER):
                raise Violation(violations.NOT_ALLOWED, f"the channel {channel} has no AMQP session")
            return
        if session.ended:
            return
        if code == performatives.TRANSFER:
            session.take_transfer(body, at, len(body), events)
        elif code == performatives.DISPOSITION:
            session.take_disposition(body, at, len(body), events)
        elif code == performatives.FLOW:
            session.take_flow(read_flow(body, at, len(body)), events)
        else:
            performative, end = performatives.read(code, body, at)
            if end != len(body):
                raise DecodeError("something stands behind a performative that has no payload")
            if isinstance(performative, Attach):
                session.take_attach(performative, events)
            elif isinstance(performative, Detach):
                session.take_detach(performative, events)

    def violation(self, session: AmqpSession, error: AmqpError, events: list[Event]) -> None:
        """An AMQP session ends for what its peer did."""
        session.flush()
        session.send_performative(End(error))
        session.over(error, events)
        events.append(SessionEnded(session, error))

    def over(self, error: AmqpError | None, events: list[Event]) -> None:
        """The connection is at its end, and so are all of them."""
        for session in self._by_us.values():
            if not session.ended:
                session.over(error, events)
                events.append(SessionEnded(session, error))
        self._by_us.clear()
        self.by_peer.clear()

    def _new(self, channel: int) -> AmqpSession:
        session = self._by_us[channel] = AmqpSession(self._connection, channel)
        return session

    def _free_channel(self) -> int:
        channel = next(channel for channel in range(len(self._by_us) + 1) if channel not in self._by_us)
        highest = self._connection.peer_channel_max
        if channel > highest:
            raise Violation(violations.RESOURCE_LIMIT_EXCEEDED, f"the peer takes no channel above {highest}")
        return channel
