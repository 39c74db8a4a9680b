from uuid import UUID

import pytest

from partitionedqueue_gateway.amqp import requests
from partitionedqueue_gateway.amqp.engine import decoding, sections
from partitionedqueue_gateway.amqp.engine.encoding import encode
from partitionedqueue_gateway.amqp.engine.values import Int, Symbol, UInt, ULong, Value
from partitionedqueue_gateway.amqp.failures import InvalidRequest
from partitionedqueue_gateway.amqp.requests import Answer

IDS: list[Value] = ["1", "a" * 300, ULong(7), ULong(0), UUID(int=5), b"\x00\x01", None]


def request(message_id: Value, *, reply_to: str | None = "q/$management", body: Value = None) -> bytes:
    properties = sections.encode(sections.PROPERTIES, [message_id, None, None, None, reply_to])
    application = sections.encode(sections.APPLICATION_PROPERTIES, {"operation": "com.microsoft:peek-message", "n": 1})
    return properties + application + sections.encode(sections.VALUE, body)


@pytest.mark.parametrize("message_id", IDS)
def test_an_answer_has_the_requests_id_with_the_type_that_it_came_with(message_id: Value) -> None:
    asked = requests.read(request(message_id, body={"a": 1}))
    written = requests.write(Answer({"statusCode": Int(200)}, {"b": [1]}), asked)
    found = dict(sections.split(written))
    assert [*sections.slices(found[sections.PROPERTIES])][5] == encode(message_id)
    assert decoding.decode(found[sections.VALUE]) == {"b": [1]}


def test_a_status_code_is_an_int_and_a_symbol_stays_one() -> None:
    written = requests.write(
        Answer({"statusCode": Int(200), "errorCondition": Symbol("amqp:not-found")}), requests.read(request("1"))
    )
    properties = decoding.decode(dict(sections.split(written))[sections.APPLICATION_PROPERTIES])
    assert type(properties["statusCode"]) is Int
    assert type(properties["errorCondition"]) is Symbol


def test_an_answer_begins_with_a_header_for_java() -> None:
    assert sections.split(requests.write(Answer({}), requests.read(request("1"))))[0].code == sections.HEADER


def test_what_a_request_says_is_read() -> None:
    asked = requests.read(request("1", body={"message-count": UInt(3)}))
    assert asked.operation == "com.microsoft:peek-message"
    assert asked.reply_to == "q/$management"
    assert asked.body == {"message-count": 3}
    assert asked.text("n") is None


def test_a_request_without_properties_has_no_reply_address() -> None:
    asked = requests.read(sections.encode(sections.VALUE, "token"))
    assert (asked.reply_to, asked.operation, asked.body) == (None, "", "token")
    assert requests.write(Answer({}), asked)


@pytest.mark.parametrize("payload", [b"\x00", b"\x00\x53\x73\xc0\xff", b"\x41", b"\x00\x53\x74\xa1\x01a"])
def test_what_is_no_request_is_refused(payload: bytes) -> None:
    with pytest.raises(InvalidRequest, match="request"):
        requests.read(payload)
