"""Columns out of stored messages, without a broker: what AMQP clients may send, and what is damaged."""

import uuid
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from partitionedqueue.model import amqp_message
from partitionedqueue.model.amqp_types import Symbol, UInt, encode_list, encode_value
from partitionedqueue.model.identifiers import sequence_number
from partitionedqueue.model.message import Message
from partitionedqueue.model.stored_message import encode, encode_changes
from partitionedqueue_spark.chunk import Chunk
from partitionedqueue_spark.malformed import rows_of
from partitionedqueue_spark.partition import PartitionUnreadable
from partitionedqueue_spark.rows import Shape
from partitionedqueue_spark.schema import COLUMNS, SCHEMA, arrow_schema_of

TEXTS = ("to", "subject", "reply_to", "correlation_id", "content_type", "reply_to_session_id")


def rows(stored: list[bytes], *, on_malformed: str = "fail", **shape: Any) -> list[dict[str, Any]]:
    count = len(stored)
    ones = np.ones(count, dtype=np.int64)
    chunk = Chunk(np.arange(1, count + 1), ones, ones, stored)
    batches = list(rows_of(3, chunk, Shape(**shape), on_malformed))
    for batch in batches:
        batch.validate(full=True)
    return [row for batch in batches for row in batch.to_pylist()]


def section(descriptor: int, value: bytes) -> bytes:
    return bytes((0, 0x53, descriptor)) + value


def stored_of(properties: list[object], *before: bytes) -> bytes:
    """What is stored of a message as an AMQP client encoded it."""
    encoded = b"".join(before) + section(0x73, encode_list(properties)) + section(0x75, encode_value(b"body"))
    return amqp_message.read(encoded, new_message_id=lambda: "given").stored


def test_the_schema_is_that_of_spark_and_of_arrow_alike() -> None:
    assert tuple(SCHEMA.fieldNames()) == COLUMNS == tuple(arrow_schema_of(COLUMNS).names)


def test_properties_of_one_message_are_not_taken_for_anothers() -> None:
    texts: dict[str, Any] = {name: f"{name} é" for name in TEXTS}
    one_each: list[dict[str, Any]] = [{name: "y" * 300} for name in TEXTS]
    messages = [
        Message(body=b"none"),
        Message(body=b"all", message_id="m" * 120, application_properties={"a": 1}, partition_key="k", **texts),
        *(Message(body=b"x", time_to_live_ms=5, message_id="m", **one) for one in one_each),
        Message(body=b"last", **texts),
    ]
    found = rows([encode(message) for message in messages])
    for name in TEXTS:
        assert [row[name] for row in found] == [getattr(message, name) for message in messages], name
    assert [row["body"] for row in found] == [message.body for message in messages]


def test_times_and_numbers_stand_in_the_header() -> None:
    scheduled = encode(Message(body=b"x", scheduled_enqueue_time_ms=1_700_000_000_123, time_to_live_ms=60_000))
    dead = bytearray(encode(Message(body=b"y")))
    dead[28:32], dead[48:56] = (4).to_bytes(4, "little"), (77).to_bytes(8, "little")
    first, second = rows([scheduled, bytes(dead)])
    assert first["scheduled_enqueue_time"].timestamp() == pytest.approx(1_700_000_000.123)
    assert (first["time_to_live_ms"], first["enqueued_sequence_number"], first["delivery_count"]) == (60_000, None, 1)
    assert (second["scheduled_enqueue_time"], second["time_to_live_ms"]) == (None, None)
    assert (second["enqueued_sequence_number"], second["delivery_count"]) == (sequence_number(3, 77), 5)


def test_a_dead_letter_says_why_and_of_which_queue() -> None:
    changes = encode_changes({"DeadLetterReason": "no", "DeadLetterErrorDescription": "not at all"})
    plain = bytearray(encode(Message(body=b"x")))
    plain[1] |= 64
    plain[56:60] = len(plain).to_bytes(4, "little")
    (dead, other) = rows([bytes(plain) + changes, encode(Message(body=b"y"))], dead_letter_source="flights")
    assert (dead["dead_letter_reason"], dead["dead_letter_error_description"]) == ("no", "not at all")
    assert (other["dead_letter_reason"], other["dead_letter_source"]) == (None, "flights")
    assert dead["application_properties"] == [
        ("DeadLetterReason", "no"),
        ("DeadLetterErrorDescription", "not at all"),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (UInt(7), "7"),
        (b"\x00\xff", "00ff"),
        ("text", "text"),
        ("é" * 200, "é" * 200),
        (None, None),
    ],
)
def test_a_correlation_id_of_any_type_is_text(value: object, text: str | None) -> None:
    properties = ["id", b"user", "to", Symbol("subject"), None, value, Symbol("application/json")]
    header = section(0x70, encode_list([True, None, UInt(90)]))
    annotations = section(0x72, b"\xc1\x01\x00")
    (plain, row) = rows([encode(Message(body=b"")), stored_of(properties, header, annotations)])
    assert (row["message_id"], row["to"], row["subject"], row["reply_to"]) == ("id", "to", "subject", None)
    assert (row["correlation_id"], row["content_type"]) == (text, "application/json")
    assert not any(plain[name] for name in TEXTS)


def test_the_empty_list_and_the_long_one_are_lists_of_properties_too() -> None:
    empty = section(0x73, b"\x45") + section(0x75, encode_value(b"x"))
    large = section(0x73, encode_list([None, None, "to " + "x" * 400])) + section(0x75, encode_value(b"x"))
    stored = [amqp_message.read(one, new_message_id=lambda: "given").stored for one in (empty, large)]
    assert [row["to"] for row in rows(stored)] == [None, "to " + "x" * 400]


def test_only_the_columns_that_are_asked_for_are_made_in_their_order() -> None:
    (row,) = rows([encode(Message(body=b"x", subject="s"))], columns=("subject", "partition"))
    assert list(row.items()) == [("subject", "s"), ("partition", 3)]


GOOD = encode(Message(body=b"good", subject="s", application_properties={"p": 1}))
DAMAGE = {
    "cut short": GOOD[:40],
    "of a later version": b"\x02" + GOOD[1:],
    "with a body beyond its end": GOOD[:24] + (2**31).to_bytes(4, "little") + GOOD[28:],
    "without a section where one should be": GOOD[:64] + b"\x01" + GOOD[65:],
    "with a value of no known type": GOOD[:67] + b"\x01" + GOOD[68:],
    "with properties that reach too far": GOOD[:69] + b"\x0d" + GOOD[70:72] + b"\xa1\xff" + GOOD[74:],
    "with application properties that are none": GOOD[:60] + (66).to_bytes(4, "little") + GOOD[64:],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_cannot_be_read_fails_is_shown_as_it_is_or_is_left_out(damage: str) -> None:
    stored = [GOOD, GOOD, DAMAGE[damage], GOOD]
    with pytest.raises(PartitionUnreadable, match=rf"message {sequence_number(3, 3)} cannot be read: .* onMalformed"):
        rows(stored)
    assert [row["sequence_number"] & 255 for row in rows(stored, on_malformed="skip")] == [1, 2, 4]
    shown = rows(stored, on_malformed="permissive")
    assert [row["body"] for row in shown] == [b"good", b"good", DAMAGE[damage], b"good"]
    assert [row["subject"] for row in shown] == ["s", "s", None, "s"]
    assert shown[2]["sequence_number"] == sequence_number(3, 3)
    assert shown[2]["application_properties"] is None


def test_damage_anywhere_never_ends_in_another_error() -> None:
    """Each byte of the header and of the sections changed, one after the other."""
    whole = replace(Message(body=b"x", subject="s", to="t", partition_key="k", session_id="k"), message_id="m")
    stored = encode(replace(whole, application_properties={"a": "b"}, time_to_live_ms=1))
    for at, byte in enumerate(stored):
        value = (0, 0xFF, byte ^ 1, byte ^ 0x40)[at % 4]
        rows([stored[:at] + bytes((value,)) + stored[at + 1 :]], on_malformed="skip")
