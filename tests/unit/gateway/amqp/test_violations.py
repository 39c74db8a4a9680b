"""What a peer must not do: it hears a condition, and nobody else is troubled."""

from collections.abc import Callable
from typing import Any

import pytest

from harness.amqp_engines import Engines
from partitionedqueue_gateway.amqp.engine import events as happened
from partitionedqueue_gateway.amqp.engine import framing, outcomes, performatives, terminus, violations
from partitionedqueue_gateway.amqp.engine.connection import Connection
from partitionedqueue_gateway.amqp.engine.frequent_reading import Flow
from partitionedqueue_gateway.amqp.engine.frequent_writing import disposition, flow, further_transfer, transfer, uint
from partitionedqueue_gateway.amqp.engine.performatives import Attach, Begin, Detach, End, Open
from partitionedqueue_gateway.limits import (
    AMQP_LINKS_MAX,
    AMQP_NAME_LENGTH_MAX,
    AMQP_OVERDRAFT_MAX,
    AMQP_PARTIAL_BYTES_MAX,
)

_HANDLE = uint(0)
_INIT = framing.frame(0, performatives.write(performatives.SaslInitFrame("ANONYMOUS")), framing.SASL_FRAME)


def _frame(performative: Any, channel: int = 0) -> bytes:
    return framing.frame(channel, performatives.write(performative))


def _raw(body: str, channel: int = 0) -> bytes:
    return framing.frame(channel, bytes.fromhex(body))


def _transfer(
    delivery_id: int, payload: bytes = b"x", *, more: bool = False, handle: bytes = _HANDLE, tag: bytes = b"tag"
) -> bytes:
    return transfer(0, handle, delivery_id, tag, uint(0), False, more, len(payload)) + payload


def _condition(event: Any) -> str:
    assert event.error is not None
    return str(event.error.condition)


@pytest.fixture
def engines() -> Engines:
    engines = Engines()
    engines.sending_client(credit=10)
    return engines


def _closed_by(engines: Engines, data: bytes) -> str:
    """What the connection ends with at the server, when the client sends this; the client hears the same."""
    events = engines.tell_server(data)
    ended = events[-1]
    assert isinstance(ended, happened.ConnectionEnded)
    assert not ended.by_peer
    assert engines.server.ended
    engines.turn()
    assert _condition(engines.the(happened.ConnectionEnded)) == _condition(ended)
    assert engines.server.unsettled_bytes == engines.server.partial_bytes == 0
    return _condition(ended)


def _ended_by(engines: Engines, data: bytes) -> str:
    """What the AMQP session ends with; another one of the same connection can be begun."""
    events = engines.tell_server(data)
    ended = events[-1]
    assert isinstance(ended, happened.SessionEnded)
    assert [type(event) for event in events[:-1]].count(happened.Detached) == 1
    engines.turn()
    assert _condition(engines.the(happened.SessionEnded)) == _condition(ended)
    assert not engines.server.ended
    ours, _ = engines.sending_client(name="another")
    ours.send(b"y", b"tag")
    assert engines.turn().the(happened.MessageReceived).payload == b"y"
    return _condition(ended)


def _detached_by(engines: Engines, data: bytes) -> str:
    """What the link ends with; the AMQP session goes on."""
    ended = engines.tell_server(data)[-1]
    assert isinstance(ended, happened.Detached)
    engines.turn()
    assert _condition(engines.the(happened.Detached)) == _condition(ended)
    assert not engines.server.ended
    assert not ended.link.session.ended
    assert engines.server.link_count == 0
    return _condition(ended)


@pytest.mark.parametrize(
    ("data", "condition"),
    [
        (b"\xff\xff\xff\xff\x02\x00\x00\x00", violations.FRAMING_ERROR),  # a frame of 4 GB
        (b"\x00\x00\x00\x07\x02\x00\x00\x00", violations.FRAMING_ERROR),  # smaller than its head
        (b"\x00\x00\x00\x08\x01\x00\x00\x00", violations.FRAMING_ERROR),  # a body within the head
        (b"\x00\x00\x00\x08\x03\x00\x00\x00", violations.FRAMING_ERROR),  # a body behind the end
        (b"\x00\x00\x00\x09\x02\x01\x00\x00\x40", violations.FRAMING_ERROR),  # SASL, too late
        (_raw("40"), violations.DECODE_ERROR),  # nothing described
        (_raw("00"), violations.DECODE_ERROR),
        (_raw("0053"), violations.DECODE_ERROR),
        (_raw("005399c00100"), violations.DECODE_ERROR),  # a performative that nobody knows
        (_raw("00a30161c00100"), violations.DECODE_ERROR),
        (_raw("005314"), violations.DECODE_ERROR),  # a transfer without a list
        (_raw("00531445"), violations.DECODE_ERROR),
        (_raw("005314c00100"), violations.DECODE_ERROR),  # without a handle
        (_raw("005314c003024300"), violations.DECODE_ERROR),
        (_raw("005314c004034340a0"), violations.DECODE_ERROR),
        (_raw("005314c0280343" + "5201" + "a021" + "00" * 33), violations.DECODE_ERROR),  # a tag of 33 bytes
        (_raw("005314c0ff0343" + "5201" + "a02000"), violations.DECODE_ERROR),  # a list that goes beyond its frame
        (_raw("005314c0020243"), violations.DECODE_ERROR),  # two fields said, one there
        (_raw("005314c00e0c43" + "40" * 12), violations.DECODE_ERROR),  # twelve fields
        (_raw("005315c0020141"), violations.DECODE_ERROR),  # a disposition of nothing
        (_raw("005315c0040341a100"), violations.DECODE_ERROR),
        (_raw("005313c00404" + "43" * 3), violations.DECODE_ERROR),  # a flow that lacks a window
        (_raw("005313c0050443404343"), violations.DECODE_ERROR),
        (_raw("005312c00101"), violations.DECODE_ERROR),
        (_raw("005312c0060343a1016141"), violations.DECODE_ERROR),  # fields in the wrong order
        (_raw("005312c007 03a10161 43 41 40"), violations.DECODE_ERROR),  # something behind attach
        (_raw("005311c00504404343430043", 1), violations.DECODE_ERROR),
        (_frame(Open("again")), violations.NOT_ALLOWED),
        (_frame(Begin(None, 0, 1, 1)), violations.NOT_ALLOWED),  # on a channel that has one
        (_frame(Begin(77, 0, 1, 1), 1), violations.NOT_ALLOWED),  # nobody asked for 77
        (_frame(Begin(None, 0, 1, 1), 5000), violations.FRAMING_ERROR),  # AMQP 1.0 §2.7.1
        (_frame(Attach("x", 256, False)), violations.FRAMING_ERROR),  # AMQP 1.0 §2.7.2
        (_frame(Attach("x", 0, False), 3), violations.NOT_ALLOWED),  # where no AMQP session is
        (transfer(3, _HANDLE, 0, b"t", uint(0), False, False, 0), violations.NOT_ALLOWED),
        (framing.frame(0, performatives.write(performatives.SaslOutcomeFrame(0))), violations.NOT_ALLOWED),
    ],
)
def test_a_broken_frame_closes_the_connection(engines: Engines, data: bytes, condition: str) -> None:
    assert _closed_by(engines, data) == condition


def test_each_broken_frame_is_refused_when_it_stands_before_another_one_too(engines: Engines) -> None:
    """What stands behind a frame must not be read as a part of it."""
    assert _closed_by(engines, _raw("005314c0040343a020") + _transfer(0)) == violations.DECODE_ERROR


@pytest.mark.parametrize(
    ("data", "condition"),
    [
        (_transfer(0, handle=uint(7)), violations.UNATTACHED_HANDLE),
        (flow(0, Flow(0, 1, 0, 1, 7, 0, 1)), violations.UNATTACHED_HANDLE),
        (_frame(Detach(7, closed=True)), violations.UNATTACHED_HANDLE),
        (_frame(Attach("again", 0, False)), violations.HANDLE_IN_USE),
        (_frame(Attach("n" * (AMQP_NAME_LENGTH_MAX + 1), 1, False)), violations.INVALID_FIELD),
        (disposition(0, True, 5, 3, True, outcomes.ACCEPTED), violations.INVALID_FIELD),
    ],
)
def test_a_broken_rule_of_the_session_ends_it(engines: Engines, data: bytes, condition: str) -> None:
    assert _ended_by(engines, data) == condition


def test_a_delivery_id_that_is_not_settled_yet_is_not_used_again(engines: Engines) -> None:
    engines.tell_server(_transfer(0))
    assert _ended_by(engines, _transfer(0)) == violations.NOT_ALLOWED


def test_more_transfers_than_the_window_is_wide_end_the_session() -> None:
    engines = Engines(server={"incoming_window": 5})
    engines.sending_client(credit=1000)
    assert len(engines.tell_server(b"".join(map(_transfer, range(5))))) == 5
    assert _ended_by(engines, _transfer(5)) == violations.WINDOW_VIOLATION


def test_transfers_with_a_flow_between_go_on_forever() -> None:
    engines = Engines(server={"incoming_window": 5})
    _, theirs = engines.sending_client(credit=1000)
    for start in range(0, 100, 5):
        assert len(engines.tell_server(b"".join(map(_transfer, range(start, start + 5))))) == 5
        assert engines.server.data_to_send()
    assert theirs.attached


def test_more_messages_than_credit_detach_the_link(engines: Engines) -> None:
    borne = engines.tell_server(b"".join(map(_transfer, range(10 + AMQP_OVERDRAFT_MAX))))
    assert len(borne) == 10 + AMQP_OVERDRAFT_MAX
    assert _detached_by(engines, _transfer(5_000)) == violations.TRANSFER_LIMIT_EXCEEDED


@pytest.mark.parametrize(
    ("data", "condition"),
    [
        (further_transfer(0, _HANDLE, 0, False, False, 1) + b"x", violations.INVALID_FIELD),  # no tag
        (further_transfer(0, _HANDLE, 0, False, True, 1) + b"x", violations.INVALID_FIELD),
        (_transfer(0, more=True) + _transfer(1), violations.NOT_ALLOWED),  # one within the other
    ],
)
def test_a_broken_rule_of_a_link_detaches_it(data: bytes, condition: str) -> None:
    engines = Engines()
    engines.sending_client()
    assert _detached_by(engines, data) == condition
    assert engines.server.partial_bytes == 0


@pytest.mark.parametrize("sizes", [(2001,), (2000, 1), (1, 2000, 9000, 9000)])
def test_a_message_that_is_too_large_is_rejected_and_the_link_lives(sizes: tuple[int, ...]) -> None:
    engines = Engines()
    ours, theirs = engines.sending_client(credit=10)
    theirs.size_max = 2000
    delivery_id = ours.session.outgoing.send(ours, b"", b"tag", uint(0), False, "large")
    engines.client.output.clear()  # instead of it come
    for number, size in enumerate(sizes):
        more = number < len(sizes) - 1
        if number:
            head = further_transfer(0, _HANDLE, delivery_id, False, more, size)
        else:
            head = transfer(0, _HANDLE, delivery_id, b"tag", uint(0), False, more, size)
        assert engines.tell_server(head + b"x" * size) == []
        assert engines.server.partial_bytes <= 2000
    told = engines.turn().the(happened.Dispositions)
    assert told.settled
    assert told.deliveries == [(ours, delivery_id, "large")]
    assert outcomes.read(told.state) == outcomes.Rejected(
        performatives.AmqpError(
            violations.MESSAGE_SIZE_EXCEEDED, "The received message exceeds the limit of 2000 bytes."
        )
    )
    assert engines.server.partial_bytes == engines.server.unsettled_bytes == 0
    ours.send(b"x" * 2000, b"tag", settled=True)
    ours.send(b"x" * 2001, b"tag", settled=True)
    ours.send(b"small", b"tag")
    assert [len(event.payload) for event in engines.turn().all(happened.MessageReceived)] == [2000, 5]
    assert theirs.delivery_count == 4


def test_a_message_over_a_link_that_goes_the_other_way_detaches_it() -> None:
    engines = Engines()
    engines.receiving_client()
    assert _detached_by(engines, _transfer(0)) == violations.NOT_ALLOWED


def test_what_comes_for_a_link_that_was_detached_is_dropped(engines: Engines) -> None:
    wrong = _transfer(0, more=True) + _transfer(1)
    assert _detached_by(engines, wrong + _transfer(2) + _transfer(2)) == violations.NOT_ALLOWED


def test_aborted_messages_leave_nothing(engines: Engines) -> None:
    fields = bytes.fromhex("43 43 40 40 42 42 40 40 42 41")  # handle 0, delivery 0, …, aborted
    aborted = framing.frame(0, bytes.fromhex("005314c0") + bytes((len(fields) + 1, 10)) + fields)
    assert engines.tell_server(_transfer(0, b"x" * 100, more=True) + aborted) == []
    assert engines.server.partial_bytes == 0
    (event,) = engines.tell_server(aborted + _transfer(1, b"whole"))
    assert isinstance(event, happened.MessageReceived)
    assert event.payload == b"whole"


def test_messages_that_only_begin_are_bounded_over_all_links() -> None:
    engines = Engines()
    session = engines.client.begin()
    count = 2 + AMQP_PARTIAL_BYTES_MAX // 1_000_000
    for number in range(count):
        session.sender(f"{number}", target=terminus.target("queue"))
    for event in engines.turn().all(happened.AttachRequested):
        event.link.attach(source=None, target=event.link.target)
    data = b"".join(
        _transfer(0, b"x" * 250_000, more=True, handle=uint(number))
        + b"".join(further_transfer(0, uint(number), 0, False, True, 250_000) + b"x" * 250_000 for _ in range(3))
        for number in range(count)
    )
    assert _closed_by(engines, data) == violations.RESOURCE_LIMIT_EXCEEDED


def test_links_are_bounded_over_all_sessions() -> None:
    engines = Engines()
    engines.sending_client()
    engines.server.link_count = AMQP_LINKS_MAX
    events = engines.tell_server(_frame(Attach("one too many", 1, False)))
    assert _condition(events[-1]) == violations.RESOURCE_LIMIT_EXCEEDED


@pytest.mark.parametrize(
    "data",
    [
        _frame(Detach(0, closed=True)),
        _frame(End()),
        flow(0, Flow(0, 1, 0, 1)),
        disposition(0, True, 0, 0, True, outcomes.ACCEPTED),
        framing.KEEP_ALIVE,
    ],
)
def test_what_comes_late_for_an_ended_session_is_ignored(engines: Engines, data: bytes) -> None:
    engines.tell_server(_frame(End()))
    engines.server.data_to_send()
    assert engines.tell_server(data) == []
    assert engines.server.data_to_send() == []


@pytest.mark.parametrize("data", [_frame(Detach(0, closed=True)), flow(0, Flow(0, 1, 0, 1, 0, 0, 1))])
def test_what_comes_late_for_a_detached_link_is_ignored(engines: Engines, data: bytes) -> None:
    engines.tell_server(_frame(Detach(0, closed=True)))
    engines.server.data_to_send()
    assert engines.tell_server(data) == []
    assert engines.server.data_to_send() == []


def test_a_session_that_was_ended_hears_nothing_more(engines: Engines) -> None:
    engines.tell_server(_transfer(0, handle=uint(7)))
    late = _transfer(1) + _frame(Attach("late", 1, False)) + _frame(Detach(0)) + flow(0, Flow(0, 1, 0, 1))
    assert engines.tell_server(late) == []
    assert engines.tell_server(_frame(End())) == []
    (began,) = engines.tell_server(_frame(Begin(None, 0, 1, 1)))
    assert isinstance(began, happened.SessionBegan)


@pytest.mark.parametrize("tell", [lambda c: c.data_to_send(), lambda c: c.connection_lost()])
def test_an_ended_connection_is_quiet(engines: Engines, tell: Callable[[Connection], object]) -> None:
    _closed_by(engines, _raw("40"))
    assert tell(engines.server) == []
    assert engines.server.tick(1e9) == (None, [])
