import contextlib
import json
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitionedqueue.model import limits, stored_message
from partitionedqueue.model.errors import InvalidMessage, MessageTooLarge
from partitionedqueue.model.message import Message

VECTORS = Path(__file__).parents[3] / "docs/reference/stored-message-vectors.json"
ids = st.none() | st.text(max_size=128)
values = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=300)
    | st.binary(max_size=300)
    | st.uuids()
)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    session_id = draw(ids)
    return Message(
        body=draw(st.binary(max_size=600)),
        message_id=draw(ids),
        session_id=session_id,
        partition_key=session_id if draw(st.booleans()) else draw(ids) if session_id is None else None,
        content_type=draw(ids),
        subject=draw(ids),
        correlation_id=draw(ids),
        to=draw(ids),
        reply_to=draw(ids),
        reply_to_session_id=draw(ids),
        time_to_live_ms=draw(st.none() | st.integers(1, 2**63 - 1)),
        scheduled_enqueue_time_ms=draw(st.none() | st.integers(1, 2**63 - 1)),
        application_properties=draw(st.dictionaries(st.text(max_size=20), values, max_size=6)),
    )


@given(messages())
def test_what_is_stored_comes_back(message: Message) -> None:
    assert stored_message.decode(stored_message.encode(message)) == message


@given(messages())
def test_the_header_points_at_the_id_the_keys_and_the_body(message: Message) -> None:
    stored = stored_message.encode(message)
    header = stored_message.HEADER.unpack_from(stored)
    for place, expected in ((2, message.message_id), (3, message.session_id), (4, message.partition_key)):
        length, offset = header[place], header[place + 3]
        assert stored[offset : offset + length] == (expected or "").encode()
    assert stored[header[8] : header[8] + header[9]] == message.body


def test_the_published_vectors_hold() -> None:
    vectors = json.loads(VECTORS.read_text())["vectors"]
    assert vectors
    for vector in vectors:
        fields = dict(vector["message"])
        message = Message(body=bytes.fromhex(fields.pop("body")), **fields)
        assert stored_message.encode(message).hex() == vector["stored"]


def test_a_message_over_256_kb_is_refused() -> None:
    with pytest.raises(MessageTooLarge, match="256 KB"):
        stored_message.encode(Message(body=bytes(limits.MESSAGE_BYTES_MAX)))


def test_properties_over_64_kb_are_refused() -> None:
    with pytest.raises(MessageTooLarge, match="properties"):
        stored_message.encode(Message(body=b"", application_properties={"a": "x" * 70_000}))


def test_a_property_that_amqp_cannot_hold_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="cannot hold"):
        stored_message.encode(Message(body=b"", application_properties={"a": object()}))  # type: ignore[dict-item]


@given(st.binary(max_size=200))
def test_bytes_that_are_no_stored_message_are_refused_in_words(data: bytes) -> None:
    with pytest.raises(InvalidMessage):
        stored_message.decode(b"\x02" + data)


@given(messages(), st.data())
def test_a_damaged_stored_message_never_raises_anything_else(message: Message, data: st.DataObject) -> None:
    stored = bytearray(stored_message.encode(message))
    place = data.draw(st.integers(stored_message.HEADER_BYTES, len(stored) - 1))
    stored[place] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(InvalidMessage):
        stored_message.decode(bytes(stored))


def test_enqueued_times_follow_the_marks() -> None:
    marks = b"".join((index | ms << 16).to_bytes(8, "little") for index, ms in ((0, 100), (3, 105), (4, 200)))
    assert stored_message.enqueued_times(1, 6, marks) == [100, 100, 100, 105, 200, 200]
    assert stored_message.enqueued_times(260, 2, marks) == [105, 200]


def test_a_uuid_property_survives() -> None:
    message = Message(body=b"", application_properties={"id": UUID(int=5)})
    assert stored_message.decode(stored_message.encode(message)).application_properties["id"] == UUID(int=5)


@given(messages(), st.integers(1, 40))
def test_a_stored_message_that_is_cut_short_is_refused(message: Message, missing: int) -> None:
    with pytest.raises(InvalidMessage):
        stored_message.decode(stored_message.encode(message)[: -min(missing, len(message.body) + 1)])


def test_text_as_a_body_and_half_characters_are_refused() -> None:
    with pytest.raises(InvalidMessage, match="a body is bytes, not str"):
        Message(body="text")  # type: ignore[arg-type]
    with pytest.raises(InvalidMessage, match="surrogate"):
        Message(body=b"", partition_key="\ud800")
    with pytest.raises(InvalidMessage, match="cannot be written"):
        stored_message.encode(Message(body=b"", subject="\ud800"))
