"""Headers, SASL and open: what comes before anything is asked for (AMQP 1.0 §2.2, §2.4.1, §5.3)."""

from typing import Any

import pytest

from harness.amqp_engines import Engines
from partitionedqueue_gateway.amqp.engine import events as happened
from partitionedqueue_gateway.amqp.engine import framing, performatives, violations
from partitionedqueue_gateway.amqp.engine.connection import Connection
from partitionedqueue_gateway.amqp.engine.performatives import Begin, Close, Open
from partitionedqueue_gateway.limits import AMQP_GREETING_FRAME_BYTES_MAX, AMQP_NAME_LENGTH_MAX

_INIT = framing.frame(0, performatives.write(performatives.SaslInitFrame("ANONYMOUS")), framing.SASL_FRAME)


def _frame(performative: Any) -> bytes:
    return framing.frame(0, performatives.write(performative))


def _condition(event: Any) -> str:
    assert event.error is not None
    return str(event.error.condition)


@pytest.mark.parametrize(
    ("told", "condition"),
    [
        (Open("c", max_frame_size=511), violations.INVALID_FIELD),
        (Open("c" * (AMQP_NAME_LENGTH_MAX + 1)), violations.INVALID_FIELD),
        (Open("c", idle_timeout_ms=1), violations.NOT_ALLOWED),
        (Begin(None, 0, 1, 1), violations.NOT_ALLOWED),
    ],
)
def test_a_connection_that_is_opened_wrongly_is_closed(told: Any, condition: str) -> None:
    server = _greeted()
    (ended,) = server.receive_data(_frame(told), 0.0)
    assert _condition(ended) == condition
    opened, closed = server.data_to_send()
    assert opened[10] == performatives.OPEN
    assert closed[10] == performatives.CLOSE


def test_a_client_that_closes_without_open_is_answered() -> None:
    server = _greeted()
    assert server.receive_data(_frame(Close()), 0.0) == [happened.ConnectionEnded(None, by_peer=True)]
    assert len(server.data_to_send()) == 2


def _greeted() -> Connection:
    """A server before open."""
    engines = Engines()
    engines.tell_server(framing.SASL_HEADER + _INIT + framing.AMQP_HEADER)
    engines.server.data_to_send()
    return engines.server


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"AMQP\x00\x00\x09\x01",
        b"AMQP\x02\x01\x00\x00",  # TLS
    ],
)
def test_a_header_of_something_else_is_answered_with_ours(data: bytes) -> None:
    server = Engines().server
    (ended,) = server.receive_data(data, 0.0)
    assert isinstance(ended, happened.ConnectionEnded)
    assert server.data_to_send() == [framing.SASL_HEADER]


def test_amqp_may_begin_without_sasl_where_anybody_may_in() -> None:
    server = Engines().server
    assert server.receive_data(framing.AMQP_HEADER, 0.0) == []
    assert server.data_to_send() == [framing.AMQP_HEADER]
    (opened,) = server.receive_data(_frame(Open("c")), 0.0)
    assert isinstance(opened, happened.Opened)
    server = Engines(server={"mechanisms": ("PLAIN",)}).server
    (ended,) = server.receive_data(framing.AMQP_HEADER, 0.0)
    assert isinstance(ended, happened.ConnectionEnded)
    assert server.data_to_send() == [framing.SASL_HEADER]


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x00\x00\x02\x01\x00\x00",  # 64 KB for a mechanism
        framing.frame(0, b"\x00\x53\x41\x45", framing.SASL_FRAME),
        framing.frame(0, b"\x00\x53\x41\xc0\x06\x01\xa3\x03XYZ", framing.SASL_FRAME),
        framing.frame(0, performatives.write(performatives.SaslOutcomeFrame(0)), framing.SASL_FRAME),
        _frame(Open("too early")),
    ],
)
def test_sasl_that_is_none_ends_the_connection_without_amqp(data: bytes) -> None:
    server = Engines().server
    (ended,) = server.receive_data(framing.SASL_HEADER + data, 0.0)
    assert isinstance(ended, happened.ConnectionEnded)
    assert framing.AMQP_HEADER not in server.data_to_send()


def test_what_is_pipelined_before_a_client_is_let_in_is_bounded() -> None:
    server = Engines().server
    server.receive_data(framing.SASL_HEADER + _INIT, 0.0)
    for _ in range(AMQP_GREETING_FRAME_BYTES_MAX // 1000):
        assert server.receive_data(b"x" * 1000, 0.0) == []
    (ended,) = server.receive_data(b"x" * 1000, 0.0)
    assert _condition(ended) == violations.RESOURCE_LIMIT_EXCEEDED
