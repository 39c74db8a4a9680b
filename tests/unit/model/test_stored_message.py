import contextlib
import json
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitionedqueue.model import limits, stored_message
from partitionedqueue.model.errors import InvalidMessage, MessageTooLarge
from partitionedqueue.model.message import Message, PropertyValue

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


def test_the_published_vectors_of_changed_messages_hold() -> None:
    vectors = json.loads(VECTORS.read_text())["changed"]
    assert vectors
    for vector in vectors:
        stored = bytes.fromhex(vector["stored"])
        message = stored_message.decode(stored)
        assert message.application_properties == vector["application_properties"]
        assert message.time_to_live_ms == vector["time_to_live_ms"]
        assert message.scheduled_enqueue_time_ms == vector["scheduled_enqueue_time_ms"]
        assert message.body.hex() == vector["message"]["body"]
        assert stored_message.deliveries_before(stored) == vector["deliveries_before"]
        assert stored_message.first_sequence_number(stored) == vector["first_sequence_number"]
        changes = b"".join(map(stored_message.encode_changes, vector["changes"]))
        assert stored.endswith(changes)
        assert int.from_bytes(stored[56:60], "little") == len(stored) - len(changes)


def changed(message: Message, *changes: dict[str, PropertyValue]) -> bytes:
    """As a broker changes a stored message: a flag, an offset, and bytes at the end."""
    stored = bytearray(stored_message.encode(message))
    stored[1] |= stored_message.HAS_CHANGES
    stored[56:60] = len(stored).to_bytes(4, "little")
    return bytes(stored) + b"".join(map(stored_message.encode_changes, changes))


names = st.sampled_from(["a", "b", "c", "DeadLetterReason"])
property_maps = st.dictionaries(names, values, max_size=4)


@given(messages(), property_maps, st.lists(property_maps, min_size=1, max_size=4))
def test_later_changes_win_and_a_null_takes_a_property_away(
    message: Message, own: dict[str, PropertyValue], changes: list[dict[str, PropertyValue]]
) -> None:
    message = replace(message, application_properties=own)
    expected = dict(own)
    for change in changes:
        expected |= change
        for name in (name for name, value in change.items() if value is None):
            del expected[name]
    some = [change for change in changes if change] or [{"absent": None}]
    stored = changed(message, *some)
    assert stored_message.decode(stored) == replace(message, application_properties=expected)
    offset = stored_message.HEADER.unpack_from(stored)[15]
    assert stored_message.decode_application_properties(stored, offset) == expected


def test_application_properties_are_read_without_the_rest_of_a_message() -> None:
    bare, own = Message(body=b"x"), Message(body=b"x", application_properties={"a": None, "b": 1})
    for message, properties in ((bare, {}), (own, {"a": None, "b": 1})):
        stored = stored_message.encode(message)
        offset = stored_message.HEADER.unpack_from(stored)[15]
        assert stored_message.decode_application_properties(stored, offset) == properties
        assert (offset == 0) == (message is bare)
    assert stored_message.decode_application_properties(changed(bare, {"c": 2}), 0) == {"c": 2}


def test_no_changes_are_no_bytes() -> None:
    assert stored_message.encode_changes({}) == b""


def test_changes_that_no_message_can_hold_are_refused() -> None:
    most = limits.HEADER_BYTES_MAX - 17  # the map's own 9 bytes, 3 of the name, 5 in front of the text
    assert len(stored_message.encode_changes({"a": "x" * most})) == limits.HEADER_BYTES_MAX
    with pytest.raises(MessageTooLarge, match="changed properties"):
        stored_message.encode_changes({"a": "x" * (most + 1)})
    with pytest.raises(InvalidMessage, match="cannot hold"):
        stored_message.encode_changes({"a": object()})  # type: ignore[dict-item]


@given(messages(), property_maps, st.data())
def test_damaged_changes_never_raise_anything_else(
    message: Message, change: dict[str, PropertyValue], data: st.DataObject
) -> None:
    whole = changed(message, change, {"last": 1})
    begin = int.from_bytes(whole[56:60], "little")
    stored = bytearray(whole)
    place = data.draw(st.integers(begin, len(stored) - 1) | st.integers(56, 59))
    stored[place] ^= data.draw(st.integers(1, 255))
    damaged = bytes(stored[: len(stored) - data.draw(st.integers(0, 2))])
    with contextlib.suppress(InvalidMessage):
        stored_message.decode(damaged)
    offset = stored_message.HEADER.unpack_from(whole)[15]
    with contextlib.suppress(InvalidMessage):
        stored_message.decode_application_properties(damaged, offset)


@pytest.mark.parametrize("at", [0, 63, 66, 10_000])
def test_changes_that_do_not_begin_behind_the_body_are_refused(at: int) -> None:
    stored = bytearray(changed(Message(body=b"hello"), {"a": 1}))
    stored[56:60] = at.to_bytes(4, "little")
    with pytest.raises(InvalidMessage):
        stored_message.decode(bytes(stored))


def test_changes_that_begin_within_the_body_are_refused_even_where_it_reads_like_changes() -> None:
    stored = bytearray(changed(Message(body=stored_message.encode_changes({"b": 2})), {"a": 1}))
    stored[56:60] = stored_message.HEADER.unpack_from(stored)[8].to_bytes(4, "little")
    with pytest.raises(InvalidMessage, match="header is damaged"):
        stored_message.decode(bytes(stored))


def test_changes_with_a_name_that_cannot_be_one_are_refused() -> None:
    stored = changed(Message(body=b"hello")) + b"\xc1\x03\x02\x45\x40"  # a map of an empty list to nothing
    with pytest.raises(InvalidMessage):
        stored_message.decode(stored)
    with pytest.raises(InvalidMessage):
        stored_message.decode_application_properties(stored, 0)


@pytest.mark.parametrize("changes", [b"", b"\x40", stored_message.encode_changes({"a": 1}) + b"\xa1\x01x"])
def test_changes_that_are_no_maps_are_refused(changes: bytes) -> None:
    stored = changed(Message(body=b"hello")) + changes
    with pytest.raises(InvalidMessage):
        stored_message.decode(stored)
    with pytest.raises(InvalidMessage):
        stored_message.decode_application_properties(stored, 0)


def test_a_message_of_its_first_queue_was_neither_delivered_nor_numbered_elsewhere() -> None:
    stored = stored_message.encode(Message(body=b"x", time_to_live_ms=5, scheduled_enqueue_time_ms=6))
    assert (stored_message.deliveries_before(stored), stored_message.first_sequence_number(stored)) == (0, 0)
    moved = stored[:28] + (2**32 - 1).to_bytes(4, "little") + stored[32:48] + (2**48 - 1).to_bytes(8, "little")
    moved += stored[56:]
    assert stored_message.deliveries_before(moved) == 2**32 - 1
    assert stored_message.first_sequence_number(moved) == 2**48 - 1


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
