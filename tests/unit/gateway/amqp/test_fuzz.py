"""Peers that say anything at all: the engine ends them orderly, or bears them, and never raises or grows."""

import random
import sys
from typing import Any

from hypothesis import HealthCheck, example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from harness.amqp_engines import Engines
from partitionedqueue_gateway.amqp.engine import events as happened
from partitionedqueue_gateway.amqp.engine import framing, outcomes, performatives, terminus
from partitionedqueue_gateway.amqp.engine.connection import Connection, ConnectionSettings
from partitionedqueue_gateway.amqp.engine.decoding import decode_at
from partitionedqueue_gateway.amqp.engine.events import Event
from partitionedqueue_gateway.amqp.engine.frequent_reading import Flow
from partitionedqueue_gateway.amqp.engine.frequent_writing import disposition, flow, further_transfer, transfer, uint
from partitionedqueue_gateway.amqp.engine.link import ReceivingLink, SendingLink
from partitionedqueue_gateway.amqp.engine.performatives import AmqpError, Attach, Begin, Close, Detach, End
from partitionedqueue_gateway.limits import AMQP_PARTIAL_BYTES_MAX

_SLOW = [HealthCheck.too_slow]
"""On machines that do much else."""
_ERROR = AmqpError("amqp:internal-error", "chance would have it")


class Application:
    """Lets everybody in, answers most, and does what chance says; holds the engine to what it promises."""

    def __init__(self, seed: int) -> None:
        settings = ConnectionSettings(container_id="server", max_frame_size=4096, incoming_window=50)
        self.server = Connection(settings, 0.0)
        self.chance = random.Random(seed)
        self.links: set[Any] = set()
        self.gone: set[Any] = set()
        self.ended = 0
        self.said = bytearray()

    def hear(self, data: bytes) -> None:
        assert not (data and self.ended and not self.server.ended)
        self._look(self.server.receive_data(data, 0.0))
        for buffer in self.server.data_to_send():
            self.said += buffer
        assert 0 <= self.server.partial_bytes <= AMQP_PARTIAL_BYTES_MAX
        assert self.server.unsettled_bytes >= 0
        assert 0 <= self.server.link_count <= len(self.links)

    def _look(self, events: list[Event]) -> None:
        for event in events:
            assert not self.ended, f"{event} came after the end"
            if isinstance(event, happened.SaslInit):
                self._look(self.server.sasl_outcome(ok=True))
            elif isinstance(event, happened.ConnectionEnded):
                self.ended += 1
            else:
                self._look_at_link(event)

    def _look_at_link(self, event: Event) -> None:
        match event:
            case happened.AttachRequested(link):
                self.links.add(link)
                self._answer(link)
            case happened.Detached(link, _):
                assert link not in self.gone
                assert link.ended
                self.gone.add(link)
            case happened.MessageReceived():
                assert event.link in self.links
                if not event.settled and self.chance.random() < 0.8:
                    event.link.settle(event.delivery_id, outcomes.ACCEPTED)
            case happened.CreditChanged(link):
                self._send(link)
            case happened.Dispositions(deliveries, _, state, False):
                for link, delivery_id, _ in deliveries:
                    link.settle(delivery_id, state)

    def _answer(self, link: Any) -> None:
        if self.chance.random() < 0.1 and not link.ended:
            link.refuse(_ERROR)
            self.gone.add(link)
        elif self.chance.random() < 0.95:
            link.attach(source=link.source, target=link.target)
            if isinstance(link, ReceivingLink):
                link.keep_granted(20)

    def _send(self, link: SendingLink) -> None:
        while link.sendable and self.chance.random() < 0.9:
            link.send(b"x" * self.chance.choice((0, 10, 5000)), b"tag", settled=self.chance.random() < 0.3, context=1)
        if link.draining:
            link.drained()
        if self.chance.random() < 0.05 and not link.ended:
            link.detach(_ERROR)
            self.gone.add(link)

    def over(self) -> None:
        """The socket is lost: all that was attached is told of, and all that was said were frames."""
        self._look(self.server.connection_lost())
        assert self.ended == 1
        assert self.links == self.gone
        assert self.server.partial_bytes == self.server.unsettled_bytes == 0
        _read_all(bytes(self.said))


def _read_all(said: bytes) -> None:
    """Headers and frames, and nothing else."""
    at = 0
    while at < len(said):
        if said[at : at + 4] == b"AMQP":
            at += 8
            continue
        size, offset, _, _ = framing.head_of(said, at)
        assert 8 <= size <= len(said) - at
        if size > 8:
            code, start = performatives.code_at(said, at + 4 * offset)
            assert performatives.OPEN <= code <= performatives.SASL_OUTCOME
            decode_at(said[: at + size], start)
        at += size


def _captured() -> bytes:
    """What a client says in a conversation that has everything in it."""
    engines = Engines(server={"max_frame_size": 512})
    sender, at_sender = engines.sending_client(properties={"com.microsoft:timeout": 1000})
    receiver, at_receiver = engines.receiving_client(snd_settle_mode=0, rcv_settle_mode=1)
    for size in (0, 10, 1500):
        sender.send(b"x" * size, b"tag", message_format=0x80013700)
        at_receiver.send(b"y" * size, b"t" * 16)
    for event in engines.turn().all(happened.MessageReceived):
        event.link.settle(event.delivery_id, outcomes.ACCEPTED, settled=event.link is at_sender)
    for told in engines.turn().all(happened.Dispositions):
        for link, delivery_id, _ in told.deliveries:
            link.settle(delivery_id, told.state)
    receiver.settle(2, outcomes.rejected(AmqpError("com.microsoft:dead-letter", info={"DeadLetterReason": "r"})))
    receiver.grant(5, drain=True)
    engines.turn()
    receiver.detach()
    engines.turn()
    sender.session.end()
    engines.turn()
    engines.client.close()
    engines.turn()
    return bytes(engines.sent)


CAPTURED = _captured()


@st.composite
def _mutated(draw: st.DrawFn) -> bytes:
    """The conversation with bytes changed, left out, put in and repeated."""
    data = bytearray(CAPTURED)
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(data) - 1))
        match draw(st.integers(0, 4)):
            case 0:
                data[at] = draw(st.integers(0, 255))
            case 1:
                data[at] ^= 1 << draw(st.integers(0, 7))
            case 2:
                del data[at : at + draw(st.integers(1, 20))]
            case 3:
                data[at:at] = draw(st.binary(max_size=20))
            case _:
                data[at:at] = data[at : at + draw(st.integers(1, 200))]
        data = data or bytearray(b"A")
    return bytes(data)


def _tell(application: Application, data: bytes, seed: int) -> None:
    chance, at = random.Random(seed), 0
    while at < len(data) and not application.server.ended:
        size = chance.choice((1, 2, 7, 50, 500, 5000))
        application.hear(data[at : at + size])
        at += size


@given(_mutated(), st.integers(0, 1000))
@examples(max_examples=400, deadline=None, suppress_health_check=_SLOW)
@example(CAPTURED, 0)
def test_a_conversation_that_was_tampered_with_ends_orderly(data: bytes, seed: int) -> None:
    application = Application(seed)
    _tell(application, data, seed)
    application.over()


_SMALL = st.integers(0, 4) | st.sampled_from([255, 256, 2**31, 2**32 - 1])
_NAMES = st.sampled_from(["one", "two"])
_TERMINI = st.none() | st.just(terminus.source("queue")) | st.just(terminus.target("queue"))
_ODD_STATES = [b"\x00\x53\x23\xc0\x03\x02\x43\x44", b"\x00\xa3\x01x\x45", b"\x00\x44\x40"]
_STATES = st.sampled_from([b"", outcomes.ACCEPTED, outcomes.RELEASED, *_ODD_STATES])


def _frames() -> st.SearchStrategy[bytes]:
    """Frames that are well-formed and say anything."""
    rare = st.one_of(
        st.tuples(st.none() | st.integers(0, 4), _SMALL, _SMALL, _SMALL, _SMALL).map(lambda told: Begin(*told)),
        st.tuples(_NAMES, _SMALL, st.booleans(), st.integers(0, 2), st.none(), _TERMINI, _TERMINI).map(
            lambda told: Attach(*told)
        ),
        st.tuples(_SMALL, st.booleans()).map(lambda told: Detach(*told)),
        st.sampled_from([End(), End(_ERROR)]),
    )
    channels = st.integers(0, 2)
    payloads = st.sampled_from([b"", b"x" * 100, b"x" * 3000])
    some = st.none() | _SMALL
    windows = (some, _SMALL, _SMALL, _SMALL)
    flows = st.tuples(*windows, some, some, some, some, st.booleans(), st.booleans()).map(lambda told: Flow(*told))
    return st.one_of(
        st.builds(lambda channel, told: framing.frame(channel, performatives.write(told)), channels, rare),
        st.builds(
            lambda channel, handle, delivery_id, settled, more, payload: (
                transfer(channel, uint(handle), delivery_id, b"tag", uint(0), settled, more, len(payload)) + payload
            ),
            *(channels, _SMALL, _SMALL, st.booleans(), st.booleans(), payloads),
        ),
        st.builds(
            lambda channel, handle, delivery_id, more: (
                further_transfer(channel, uint(handle), delivery_id, False, more, 3) + b"abc"
            ),
            *(channels, _SMALL, _SMALL, st.booleans()),
        ),
        st.builds(disposition, channels, st.booleans(), _SMALL, _SMALL, st.booleans(), _STATES),
        st.builds(flow, channels, flows),
        st.just(framing.KEEP_ALIVE),
    )


_GREETING = CAPTURED[: CAPTURED.index(b"\x00\x53\x11") - 8]


@given(st.lists(_frames(), max_size=40), st.integers(0, 1000))
@examples(max_examples=400, deadline=None, suppress_health_check=_SLOW)
def test_frames_in_any_order_end_orderly_or_are_borne(frames: list[bytes], seed: int) -> None:
    application = Application(seed)
    _tell(application, _GREETING, seed)
    for channel in range(2):
        application.hear(framing.frame(channel, performatives.write(Begin(None, 0, 10, 10))))
        application.hear(framing.frame(channel, performatives.write(Attach("send", 0, False))))
        application.hear(framing.frame(channel, performatives.write(Attach("receive", 1, True))))
    for frame in frames:
        if not application.server.ended:
            application.hear(frame)
    if not application.server.ended:
        application.hear(framing.frame(0, performatives.write(Close())))
    application.over()


@given(st.binary(max_size=300), st.integers(0, 100))
@examples(max_examples=200, deadline=None, suppress_health_check=_SLOW)
def test_any_bytes_at_any_time_end_orderly(data: bytes, seed: int) -> None:
    for before in (b"", _GREETING):
        application = Application(seed)
        _tell(application, before + data, seed)
        application.over()


@given(st.binary(max_size=60), st.sampled_from([b"\x14", b"\x15", b"\x13", b"\x12", b"\x10", b"\x11", b"\x16"]))
@examples(max_examples=500, deadline=None, suppress_health_check=_SLOW)
def test_any_body_of_a_frame_ends_orderly(body: bytes, code: bytes) -> None:
    application = Application(0)
    _tell(application, _GREETING, 0)
    application.hear(framing.frame(0, performatives.write(Begin(None, 0, 10, 10))))
    application.hear(framing.frame(0, performatives.write(Attach("send", 0, False))))
    application.hear(framing.frame(0, b"\x00\x53" + code + body) + framing.KEEP_ALIVE)
    application.over()


def test_a_peer_that_never_ends_a_frame_costs_no_more_than_a_frame() -> None:
    application = Application(0)
    _tell(application, _GREETING, 0)
    frame = framing.frame(0, b"\x00" * 4000)
    for byte in frame[:-1]:
        application.hear(bytes((byte,)))
    assert sys.getsizeof(application.server._input.pieces) < 2 * 4096
    application.over()
