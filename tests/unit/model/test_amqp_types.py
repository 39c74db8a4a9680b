"""Values of every AMQP type (§1.6) can be read; bytes that are none are refused, whatever lengths they claim."""

import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitionedqueue.model.amqp_types import Described, Encoded, Symbol, Timestamp, decode_value, encode_value
from partitionedqueue.model.errors import InvalidMessage


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        ("40", None), ("41", True), ("42", False), ("5601", True), ("5600", False),
        ("5007", 7), ("600102", 258), ("7000000001", 1), ("5207", 7), ("43", 0),
        ("800000000000000001", 1), ("5307", 7), ("44", 0),
        ("51ff", -1), ("61ffff", -1), ("71ffffffff", -1), ("54ff", -1), ("81ffffffffffffffff", -1), ("55ff", -1),
        ("723f800000", 1.0), ("823ff0000000000000", 1.0), ("730001f600", "\U0001f600"),
        ("83ffffffffffffffff", Timestamp(-1)), ("98" + "00" * 15 + "05", UUID(int=5)),
        ("a00161", b"a"), ("b00000000161", b"a"), ("a10161", "a"), ("b10000000161", "a"),
        ("a30161", Symbol("a")), ("b30000000161", Symbol("a")),
        ("45", []), ("c0020141", [True]), ("d0000000050000000141", [True]),
        ("c10402a10041", {"": True}), ("d10000000700000002a10041", {"": True}),
        ("00a30161" + "810000000000000000", Described("a", 0)), ("00537441", Described(0x74, True)),
    ],
)  # fmt: skip
def test_every_type_is_read(encoded: str, value: Any) -> None:
    data = bytes.fromhex(encoded)
    assert decode_value(data, 0) == (value, len(data))
    assert decode_value(b"\x40" + data + b"\x40", 1) == (value, len(data) + 1)


@pytest.mark.parametrize(
    ("items", "values"),
    [
        (b"\x61\x00\x01\x00\x02", [1, 2]),
        (b"\xa1\x01a\x02bc", ["a", "bc"]),
        (b"\x41", [True, True]),
        (b"\xc0\x02\x01\x41\x01\x00", [[True], []]),
        (b"\x00\xa3\x01a\x55\x01\x02", [Described("a", 1), Described("a", 2)]),
        (b"\xe0\x03\x01\x50\x07\x03\x01\x50\x08", [[7], [8]]),
    ],
)
def test_arrays_are_lists_of_one_type(items: bytes, values: list[Any]) -> None:
    short = bytes((0xE0, 1 + len(items), 2)) + items
    long = b"\xf0" + struct.pack(">II", 4 + len(items), 2) + items
    for data in (short, long):
        assert decode_value(data, 0) == (values, len(data))


@pytest.mark.parametrize(
    ("code", "bits", "value"),
    [
        (0x74, 101 << 23 | 7, "7"), (0x74, 99 << 23 | 12345, "123.45"), (0x74, 1 << 31 | 101 << 23 | 7, "-7"),
        (0x84, (398 - 3) << 53 | 1, "0.001"), (0x94, (6176 + 2) << 113 | 5, "5E+2"), (0x94, 0x78 << 120, "Infinity"),
        (0x94, 0xF8 << 120, "-Infinity"), (0x94, 0x7C << 120, "NaN"), (0x74, 0b11 << 29 | 101 << 21 | 1, "8388609"),
    ],
)  # fmt: skip
def test_decimals_are_read(code: int, bits: int, value: str) -> None:
    data = bytes((code,)) + bits.to_bytes({0x74: 4, 0x84: 8, 0x94: 16}[code])
    assert str(decode_value(data, 0)[0]) == str(Decimal(value))


@given(st.binary(max_size=80))
def test_noise_is_read_or_refused(noise: bytes) -> None:
    try:
        _, end = decode_value(noise, 0)
    except InvalidMessage:
        return
    assert end <= len(noise)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff", b"\x00", b"\x00\x53", b"\x80\x00", b"\xa1\x05abc", b"\xb1\xff\xff\xff\xffabc", b"\xb1\x00",
        b"\xc0\x00", b"\xc0\x05\x01\x40", b"\xc0\x02\x02\x40\x40", b"\xc1\x02\x01\x40", b"\xd0" + b"\xff" * 8,
        b"\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40", b"\xe0\x02\x05\x50", b"\xe0\x01\x00",
        b"\xa1\x01\xff", b"\xa3\x01\xff",
        b"\x73\x00\x11\x00\x00", b"\xc1\x03\x02\x45\x40", b"\xc0\x03\x01\xc0" * 40, b"\x00\x44" * 400 + b"\x40",
    ],
)  # fmt: skip
def test_what_is_cut_short_or_claims_too_much_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidMessage):
        decode_value(data, 0)


def test_described_and_encoded_values_are_written() -> None:
    described = Described(Symbol("com.microsoft:timespan"), 5)
    assert decode_value(encode_value(described), 0)[0] == described
    assert encode_value(Encoded(b"\x71\x00\x00\x00\x01")) == b"\x71\x00\x00\x00\x01"
