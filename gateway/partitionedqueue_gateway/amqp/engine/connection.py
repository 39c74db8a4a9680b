"""One AMQP 1.0 connection without a socket: bytes in, events out, buffers to send (§2.4)."""

from typing import Final

from partitionedqueue_gateway.amqp.engine import channels, framing, performatives, violations
from partitionedqueue_gateway.amqp.engine.amqp_session import AmqpSession
from partitionedqueue_gateway.amqp.engine.channels import Channels
from partitionedqueue_gateway.amqp.engine.decoding import DecodeError
from partitionedqueue_gateway.amqp.engine.events import ConnectionEnded, Event, Opened
from partitionedqueue_gateway.amqp.engine.framing import HEADER_BYTES, KEEP_ALIVE, InputBuffer
from partitionedqueue_gateway.amqp.engine.frequent_reading import read_flow
from partitionedqueue_gateway.amqp.engine.greeting import ClientGreeting, ServerGreeting
from partitionedqueue_gateway.amqp.engine.performatives import AmqpError, Begin, Close, End, Open
from partitionedqueue_gateway.amqp.engine.settings import ConnectionSettings, Role
from partitionedqueue_gateway.amqp.engine.timers import Due, Timers
from partitionedqueue_gateway.amqp.engine.violations import LinkViolation, SessionViolation, Violation
from partitionedqueue_gateway.limits import (
    AMQP_GREETING_FRAME_BYTES_MAX,
    AMQP_KEEP_ALIVE_S_MIN,
    AMQP_NAME_LENGTH_MAX,
)

__all__ = ["Connection", "ConnectionSettings", "Role"]

_FRAME_BYTES_MIN: Final = 512
"""What each peer takes at least (§2.8.20)."""
_TRANSFER: Final = b"\x00\x53\x14"
_DISPOSITION: Final = b"\x00\x53\x15"
_FLOW: Final = b"\x00\x53\x13"
_CLOSE: Final = b"\x00\x53\x18"


class Connection:
    """The engine. Nothing that a peer sends raises: it ends in a close frame with a condition, and ConnectionEnded."""

    def __init__(self, settings: ConnectionSettings, now_s: float, *, role: Role = Role.SERVER) -> None:
        """`now_s`: of any clock that only goes forward; the same clock for receive_data and tick."""
        self.settings = settings
        self.output: list[bytes] = []
        self.busy: list[AmqpSession] = []
        """Have something to write when data_to_send is called."""
        self.peer_frame_max = _FRAME_BYTES_MIN
        self.peer_channel_max = 0xFFFF
        self.unsettled_bytes = 0
        """Of messages received and not yet settled: stop reading the socket above a bound of yours."""
        self.partial_bytes = 0
        """Of messages that have begun and not ended."""
        self.link_count = 0
        self.ended = False
        self._greeted = False
        self._opened = False
        self._open_sent = False
        self._closing = False
        self._frame_max = AMQP_GREETING_FRAME_BYTES_MAX
        self._input = InputBuffer()
        self._channels = Channels(self)
        self._timers = Timers(now_s, settings.idle_timeout_ms)
        self._greeting = ServerGreeting(settings) if role is Role.SERVER else ClientGreeting(settings)
        self._later: list[bytes] = []
        """What a client says before SASL is over."""

    @property
    def output_bytes(self) -> int:
        """Not yet taken by data_to_send, with what waits for the peer's windows."""
        return sum(map(len, self.output)) + self._channels.waiting_bytes

    def data_to_send(self) -> list[bytes]:
        """Buffers for the socket, in order. Joins dispositions, so call it once a turn, not after each event."""
        if not self._greeted:
            self._send_greeting()
        if self.busy:
            busy, self.busy = self.busy, []
            for session in busy:
                session.flush()
        taken, self.output = self.output, []
        return taken

    def receive_data(self, data: bytes, now_s: float) -> list[Event]:
        """Take in what a peer sent, cut anywhere."""
        self._timers.heard_s = now_s
        if self._input.pieces:
            data = self._input.take(data)
        events: list[Event] = []
        if self.ended or not data:
            return events
        at = 0
        try:
            if not self._greeted:
                at = self._greet(data, events)
            if self._greeted:
                at = self._read_frames(data, at, events)
            if at < len(data) and not self.ended:
                self._keep(data, at)
        except Violation as violation:
            self._fail(violation.error, events)
        except DecodeError as error:
            self._fail(AmqpError(violations.DECODE_ERROR, str(error)), events)
        return events

    def tick(self, now_s: float) -> tuple[float | None, list[Event]]:
        """Keep-alives, silent peers, greetings and closes that last too long: when to call it again, and events."""
        events: list[Event] = []
        for due in [] if self.ended else self._timers.due(now_s):
            if due is Due.KEEP_ALIVE:
                self.output.append(KEEP_ALIVE)
            elif due is Due.NOT_CLOSED:
                self._end(ConnectionEnded(None, by_peer=False), events)
            elif due is Due.NOT_OPENED:
                self._fail(AmqpError(violations.CONNECTION_FORCED, "the connection was not opened in time"), events)
            else:
                silence = "nothing was heard of the peer for twice the idle-time-out"
                self._fail(AmqpError(violations.RESOURCE_LIMIT_EXCEEDED, silence), events)
        return None if self.ended else self._timers.next_s, events

    def connection_lost(self) -> list[Event]:
        """The socket is gone: Detached for each link, SessionEnded for each AMQP session, ConnectionEnded."""
        events: list[Event] = []
        if not self.ended:
            self._channels.over(None, events)
            self._end(ConnectionEnded(None, by_peer=True), events)
        return events

    def sasl_outcome(self, *, ok: bool) -> list[Event]:
        """A server's answer to SaslInit. Gives the events of what the client had sent behind it."""
        events: list[Event] = []
        greeting = self._greeting
        if self.ended or not isinstance(greeting, ServerGreeting) or not greeting.paused:
            return events
        greeting.outcome(ok=ok)
        if ok:
            return self.receive_data(b"", self._timers.heard_s)
        self._fail(AmqpError(violations.UNAUTHORIZED_ACCESS, "SASL was refused"), events)
        return events

    def begin(self) -> AmqpSession:
        """Begin an AMQP session (a client's; may be called before Opened)."""
        return self._channels.begin()

    def close(self, error: AmqpError | None = None) -> None:
        """Send close; ConnectionEnded comes with the peer's own, or from tick. Links get no Detached any more."""
        if self.ended or self._closing:
            return
        self._flush()
        self._channels.over(error, [])
        self._send_close(error)
        self._closing = True
        self._timers.closing()

    def send_frame(self, channel: int, body: bytes) -> None:
        """For AMQP sessions."""
        (self.output if self._open_sent else self._later).append(framing.frame(channel, body))

    # Input.

    def _keep(self, data: bytes, at: int) -> None:
        """What is not a whole frame yet, or has come before a client was let in."""
        rest = len(data) - at
        if self._greeting.paused and rest > AMQP_GREETING_FRAME_BYTES_MAX:
            raise Violation(violations.RESOURCE_LIMIT_EXCEEDED, "too much was sent before SASL was over")
        known = self._greeting.over and rest >= HEADER_BYTES
        self._input.keep(data[at:], framing.head_of(data, at)[0] if known else 0)

    def _greet(self, data: bytes, events: list[Event]) -> int:
        at = self._greeting.take(data, 0, events)
        self._send_greeting()
        self._greeted = self._greeting.over
        return at

    def _send_greeting(self) -> None:
        greeting = self._greeting
        self.output += greeting.output
        greeting.output.clear()
        if isinstance(greeting, ClientGreeting) and greeting.authenticated and not self._open_sent:
            self._send_open()
            self.output += self._later
            self._later.clear()

    def _read_frames(self, data: bytes, at: int, events: list[Event]) -> int:  # noqa: C901 -- hot
        """All frames that are whole; gives where the rest begins. HOT."""
        total, sessions, head_of = len(data), self._channels.by_peer, framing.head_of
        while total - at >= HEADER_BYTES and not self.ended:
            size, offset, kind, channel = head_of(data, at)
            if size > self._frame_max or offset < 2 or 4 * offset > size:
                raise framing.size_violation(size, offset, self._frame_max)
            end = at + size
            if end > total:
                break
            start = at + 4 * offset
            at = end
            if kind != framing.AMQP_FRAME:
                raise Violation(violations.FRAMING_ERROR, f"a frame has the unknown type {kind}")
            body = data[start : start + 3]
            if start == end or (self._closing and body != _CLOSE):
                continue
            try:
                session = sessions.get(channel)
                if session is None or session.ended:
                    self._take_frame(channel, data[start:end], events)
                elif body == _TRANSFER:
                    session.take_transfer(data, start + 3, end, events)
                elif body == _DISPOSITION:
                    session.take_disposition(data, start + 3, end, events)
                elif body == _FLOW:
                    session.take_flow(read_flow(data, start + 3, end), events)
                else:
                    self._take_frame(channel, data[start:end], events)
            except LinkViolation as violation:
                violation.link.session.link_violation(violation.link, violation.error, events)
            except SessionViolation as violation:
                self._channels.violation(violation.session, violation.error, events)
        return at

    def _take_frame(self, channel: int, body: bytes, events: list[Event]) -> None:
        """A frame that is rare, or comes in a rare form, or for an AMQP session that is not there."""
        code, at = performatives.code_at(body, 0)
        if not self._opened and code not in (performatives.OPEN, performatives.CLOSE):
            raise Violation(violations.NOT_ALLOWED, "the first frame is open")
        if code in channels.IN_SESSIONS:
            self._channels.take(channel, code, body, at, events)
            return
        performative, end = performatives.read(code, body, at)
        if end != len(body):
            raise DecodeError("something stands behind a performative that has no payload")
        if isinstance(performative, Open):
            self._take_open(performative, events)
        elif isinstance(performative, Begin):
            self._channels.take_begin(channel, performative, events)
        elif isinstance(performative, End):
            self._channels.take_end(channel, performative, events)
        elif isinstance(performative, Close):
            self._take_close(performative, events)
        else:
            raise Violation(violations.NOT_ALLOWED, "a frame of SASL came after SASL")

    def _take_open(self, told: Open, events: list[Event]) -> None:
        if self._opened:
            raise Violation(violations.NOT_ALLOWED, "the connection is open already")
        if told.max_frame_size < _FRAME_BYTES_MIN:
            raise Violation(violations.INVALID_FIELD, f"open's max-frame-size is below {_FRAME_BYTES_MIN}")
        if len(told.container_id) > AMQP_NAME_LENGTH_MAX:
            raise Violation(violations.INVALID_FIELD, f"open's container-id is longer than {AMQP_NAME_LENGTH_MAX}")
        keep_alive_s = (told.idle_timeout_ms or 0) / 2000  # AMQP 1.0 §2.4.5: half of what the peer waits
        if 0 < keep_alive_s < AMQP_KEEP_ALIVE_S_MIN:
            raise Violation(
                violations.NOT_ALLOWED, f"open's idle-time-out is below {2 * AMQP_KEEP_ALIVE_S_MIN} seconds"
            )
        self._opened = True
        self._frame_max = self.settings.max_frame_size
        self.peer_frame_max, self.peer_channel_max = told.max_frame_size, told.channel_max
        self._timers.opened(keep_alive_s)
        self._send_open()
        events.append(Opened(told.container_id, told.hostname, told.properties or {}))

    def _take_close(self, told: Close, events: list[Event]) -> None:
        if not self._closing:
            self._flush()
            self._channels.over(told.error, events)
            self._send_close(None)
        self._end(ConnectionEnded(told.error, by_peer=True), events)

    # Output.

    def _flush(self) -> None:
        busy, self.busy = self.busy, []
        for session in busy:
            session.flush()

    def _send_open(self) -> None:
        if not self._open_sent:
            self._open_sent = True
            told = self.settings
            self.send_frame(
                0,
                performatives.write(
                    Open(
                        told.container_id,
                        told.hostname,
                        told.max_frame_size,
                        told.channel_max,
                        told.idle_timeout_ms or None,
                        properties=told.properties or None,
                    )
                ),
            )

    def _send_close(self, error: AmqpError | None) -> None:
        if self._greeting.over:
            self._send_open()
            self.send_frame(0, performatives.write(Close(error)))

    def _fail(self, error: AmqpError, events: list[Event]) -> None:
        """The peer broke the protocol, or was silent: say so and be gone."""
        self._send_greeting()
        if not self._closing:
            self._flush()
            self._channels.over(error, events)
            self._send_close(error)
        self._end(ConnectionEnded(error, by_peer=False), events)

    def _end(self, event: ConnectionEnded, events: list[Event]) -> None:
        self.ended = True
        events.append(event)
