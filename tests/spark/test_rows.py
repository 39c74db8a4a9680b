"""Rows of whatever an AMQP client may send: nothing that a queue took in fails the reader."""

import uuid
from typing import Any

import numpy as np
import pytest

from partitionedqueue.model import amqp_message
from partitionedqueue.model.amqp_types import Symbol, encode_list, encode_value
from partitionedqueue_spark.chunk import Chunk
from partitionedqueue_spark.rows import Shape, record_batch

PROPERTIES, APPLICATION, DATA, VALUE = 0x73, 0x74, 0x75, 0x77


def section(descriptor: int, value: bytes) -> bytes:
    return bytes((0, 0x53, descriptor)) + value


def row_of(encoded: bytes) -> dict[str, Any]:
    stored = amqp_message.read(encoded, new_message_id=lambda: "given").stored
    one = np.ones(1, dtype=np.int64)
    rows: list[dict[str, Any]] = record_batch(3, Chunk(one, one, one, [stored]), Shape()).to_pylist()
    return rows[0]


def property_of(value: bytes) -> str | None:
    content = encode_value("p") + value
    row = row_of(section(APPLICATION, bytes((0xC1, len(content) + 1, 2)) + content))
    properties: dict[str, str | None] = dict(row["application_properties"])
    return properties["p"]


def described(name: str, value: int) -> bytes:
    return b"\x00" + encode_value(Symbol(name)) + b"\x81" + value.to_bytes(8, signed=True)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"\x40", None),
        (b"\x41", "true"),
        (b"\x50\x07", "7"),
        (b"\x73\x00\x01\xf6\x00", "\U0001f600"),
        (b"\x94\x30\x3c" + bytes(12) + b"\x30\x39", "123.45"),
        (b"\x94\x78" + bytes(15), "Infinity"),
        (described("com.microsoft:timespan", 937_840_050_000), "1.02:03:04.0050000"),
        (described("com.microsoft:timespan", -600_000_000), "-00:01:00"),
        (described("com.microsoft:datetime-offset", 621_355_968_000_000_000), "1970-01-01T00:00:00+00:00"),
        (described("com.microsoft:datetime-offset", -1), "-1"),
        (described("somebody:else", 5), "5"),
        (b"\xe0\x06\x02\x61\x00\x01\x00\x02", '["1", "2"]'),
        (b"\xc1\x06\x02\xa1\x01k\xa0\x00", '{"k": ""}'),
    ],
)
def test_a_property_of_any_type_is_text(value: bytes, text: str | None) -> None:
    assert property_of(value) == text


@pytest.mark.parametrize(
    ("message_id", "text"),
    [
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (b"\x00\xff", "00ff"),
        ("an id", "an id"),
        (None, "given"),
    ],
)
def test_a_message_id_of_any_type_is_text(message_id: object, text: str) -> None:
    assert row_of(section(PROPERTIES, encode_list([message_id])))["message_id"] == text


def test_a_body_of_another_kind_comes_as_its_sections() -> None:
    assert row_of(section(VALUE, encode_value("text")))["body"] == section(VALUE, encode_value("text"))
    assert row_of(b"")["body"] == b""
    assert row_of(section(DATA, encode_value(b"one")) * 2)["body"] == section(DATA, encode_value(b"one")) * 2
