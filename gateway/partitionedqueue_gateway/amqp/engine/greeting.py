"""What comes before AMQP's own frames: protocol headers and SASL (§2.2, §5.3), as a server and as a client see it."""

from partitionedqueue_gateway.amqp.engine import framing, performatives, violations
from partitionedqueue_gateway.amqp.engine.events import Event, SaslInit
from partitionedqueue_gateway.amqp.engine.framing import AMQP_HEADER, HEADER_BYTES, SASL_FRAME, SASL_HEADER
from partitionedqueue_gateway.amqp.engine.performatives import (
    Performative,
    SaslInitFrame,
    SaslMechanisms,
    SaslOutcomeFrame,
)
from partitionedqueue_gateway.amqp.engine.settings import ConnectionSettings
from partitionedqueue_gateway.amqp.engine.violations import Violation
from partitionedqueue_gateway.limits import AMQP_GREETING_FRAME_BYTES_MAX

_ANONYMOUS = "ANONYMOUS"
"""Whoever may be that need not say so (§5.3 leaves SASL to the server's liking)."""
_WELL = 0
_REFUSED = 1


class Greeting:
    """What both ends do: SASL's header, SASL's frames, AMQP's header."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self.settings = settings
        self.over = False
        """AMQP's frames come now."""
        self.paused = False
        """The application has not said yet whether the client may in."""
        self.takes_strangers = False
        """AMQP may begin without SASL, as JavaScript's client does when it has only a token."""
        self.output: list[bytes] = []
        self._expected = SASL_HEADER
        """The header that comes next; nothing while frames come."""

    def take(self, data: bytes, at: int, events: list[Event]) -> int:
        """Take in what is whole; gives where the rest begins. Raises Violation, DecodeError."""
        while not (self.over or self.paused) and len(data) - at >= HEADER_BYTES:
            if self._expected:
                self._take_header(data[at : at + HEADER_BYTES])
                at += HEADER_BYTES
                continue
            size, offset, kind, _ = framing.head_of(data, at)
            if size > AMQP_GREETING_FRAME_BYTES_MAX or offset < 2 or 4 * offset > size:
                raise framing.size_violation(size, offset, AMQP_GREETING_FRAME_BYTES_MAX)
            if kind != SASL_FRAME:
                raise Violation(violations.FRAMING_ERROR, "a frame of SASL is expected")
            if len(data) - at < size:
                break
            code, start = performatives.code_at(data[at : at + size], 4 * offset)
            self.take_sasl(performatives.read(code, data[at : at + size], start)[0], events)
            at += size
        return at

    def _take_header(self, header: bytes) -> None:
        if header != self._expected and not (header == AMQP_HEADER and self.takes_strangers):
            self.output.append(self._expected)  # AMQP 1.0 §2.2: answer with a header that is supported, and close
            raise Violation(violations.FRAMING_ERROR, f"the header {header!r} came instead of {self._expected!r}")
        if header == SASL_HEADER:
            self._expected = b""
            self.take_sasl_header()
        else:
            self.over = True
            self.take_amqp_header()

    def take_sasl_header(self) -> None:
        """SASL begins."""

    def take_amqp_header(self) -> None:
        """AMQP begins."""

    def take_sasl(self, frame: Performative, events: list[Event]) -> None:
        """A frame of SASL."""
        raise NotImplementedError

    def _send(self, frame: Performative) -> None:
        self.output.append(framing.frame(0, performatives.write(frame), SASL_FRAME))


class ServerGreeting(Greeting):
    """Offers mechanisms, and lets the application say whether a client may in."""

    def __init__(self, settings: ConnectionSettings) -> None:
        super().__init__(settings)
        self.takes_strangers = _ANONYMOUS in settings.mechanisms

    def take_sasl_header(self) -> None:
        """Say what we offer."""
        self.output.append(SASL_HEADER)
        self._send(SaslMechanisms(list(self.settings.mechanisms)))

    def take_sasl(self, frame: Performative, events: list[Event]) -> None:
        """A client has chosen; it may have sent more already."""
        if not isinstance(frame, SaslInitFrame):
            raise Violation(violations.NOT_ALLOWED, "a client's first and only frame of SASL is sasl-init")
        if frame.mechanism not in self.settings.mechanisms:
            self._send(SaslOutcomeFrame(_REFUSED))
            raise Violation(violations.NOT_ALLOWED, f"the mechanism {frame.mechanism} was not offered")
        self.paused = True
        events.append(SaslInit(frame.mechanism, frame.initial_response or b"", frame.hostname))

    def outcome(self, *, ok: bool) -> None:
        """The application's word."""
        self._send(SaslOutcomeFrame(_WELL if ok else _REFUSED))
        self.paused = False
        self._expected = AMQP_HEADER

    def take_amqp_header(self) -> None:
        """Answer it."""
        self.output.append(AMQP_HEADER)


class ClientGreeting(Greeting):
    """Begins, and takes the first of its mechanisms that is offered."""

    def __init__(self, settings: ConnectionSettings) -> None:
        super().__init__(settings)
        self.output.append(SASL_HEADER)
        self.authenticated = False

    def take_sasl(self, frame: Performative, events: list[Event]) -> None:
        """Mechanisms are offered, or the server says how it went."""
        if isinstance(frame, SaslMechanisms):
            chosen = next((name for name in self.settings.mechanisms if name in frame.mechanisms), None)
            if chosen is None:
                raise Violation(violations.NOT_ALLOWED, f"the server offers only {', '.join(frame.mechanisms)}")
            self._send(SaslInitFrame(chosen, self.settings.sasl_response, self.settings.hostname))
        elif isinstance(frame, SaslOutcomeFrame) and frame.code == _WELL:
            self.authenticated = True
            self.output.append(AMQP_HEADER)
            self._expected = AMQP_HEADER
        else:
            raise Violation(violations.NOT_ALLOWED, "the server has not let us in")
