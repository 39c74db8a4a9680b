"""Values and their encodings (AMQP 1.0 §1.6)."""

import contextlib
import math
import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partitionedqueue_gateway.amqp.engine.decoding import DecodeError, decode, decode_at, skip
from partitionedqueue_gateway.amqp.engine.encoding import EncodeError, encode
from partitionedqueue_gateway.amqp.engine.values import (
    Array,
    Byte,
    Char,
    Decimal,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from partitionedqueue_gateway.limits import AMQP_EMPTY_ITEMS_MAX, AMQP_NESTING_MAX

_ASCII = st.text(st.characters(max_codepoint=127), max_size=300)
_CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on machines that do much else


def _signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def _unsigned(bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << bits) - 1)


_SCALARS: dict[int, st.SearchStrategy[Any]] = {
    # By a format code that an array may give all of its items.
    0x50: _unsigned(8).map(UByte),
    0x60: _unsigned(16).map(UShort),
    0x70: _unsigned(32).map(UInt),
    0x80: _unsigned(64).map(ULong),
    0x51: _signed(8).map(Byte),
    0x61: _signed(16).map(Short),
    0x71: _signed(32).map(Int),
    0x81: _signed(64),
    0x83: _signed(64).map(Timestamp),
    0x72: st.floats(width=32, allow_nan=False).map(Float),
    0x82: st.floats(allow_nan=False),
    0x73: st.characters(exclude_categories=["Cs"]).map(Char),
    0x74: st.binary(min_size=4, max_size=4).map(Decimal),
    0x84: st.binary(min_size=8, max_size=8).map(Decimal),
    0x94: st.binary(min_size=16, max_size=16).map(Decimal),
    0x98: st.uuids(),
    0xB0: st.binary(max_size=300),
    0xB1: st.text(max_size=300),
    0xB3: _ASCII.map(Symbol),
    0x56: st.booleans(),
    0x40: st.none(),
}
_KEYS = st.one_of(st.text(max_size=20), _ASCII.map(Symbol), st.uuids())


def _arrays(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Array]:
    scalars = st.sampled_from(sorted(_SCALARS)).flatmap(
        lambda code: st.builds(Array, st.just(code), st.lists(_SCALARS[code], max_size=5), st.none() | _descriptors)
    )
    lists = st.builds(Array, st.just(0xD0), st.lists(st.lists(items, max_size=3), max_size=3))
    return scalars | lists


_descriptors = _unsigned(64).map(ULong) | _ASCII.map(Symbol)
_VALUES = st.recursive(
    st.one_of(*_SCALARS.values()),
    lambda items: st.one_of(
        st.lists(items, max_size=5),
        st.dictionaries(_KEYS, items, max_size=5),
        st.builds(Described, _descriptors, items),
        _arrays(items),
    ),
    max_leaves=20,
)


def _typed(value: Any) -> Any:
    """With the types of everything inside: 5 == UInt(5), and that is what must not be lost."""
    if isinstance(value, Described):
        return Described, _typed(value.descriptor), _typed(value.value)
    if isinstance(value, Array):
        return Array, value.code, [_typed(item) for item in value.items], _typed(value.descriptor)
    if isinstance(value, list):
        return list, [_typed(item) for item in value]
    if isinstance(value, dict):
        return dict, [(_typed(key), _typed(item)) for key, item in value.items()]
    return type(value), value


@_CALM
@given(_VALUES)
def test_what_is_encoded_is_decoded_with_the_same_types(value: Any) -> None:
    assert _typed(decode(encode(value))) == _typed(value)


@_CALM
@given(_VALUES, st.binary(max_size=20))
def test_a_value_is_skipped_by_its_length_alone(value: Any, rest: bytes) -> None:
    encoded = encode(value)
    assert skip(b"\x40" + encoded + rest, 1) == 1 + len(encoded)


@_CALM
@given(_VALUES, st.data())
def test_a_value_that_is_cut_short_is_refused(value: Any, data: st.DataObject) -> None:
    encoded = encode(value)
    cut = encoded[: data.draw(st.integers(0, len(encoded) - 1))]
    with pytest.raises(DecodeError):
        decode(cut)
    with pytest.raises(DecodeError):
        skip(cut, 0)


@_CALM
@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_refused(data: bytes) -> None:
    for read in (decode, lambda data: skip(data, 0)):
        with contextlib.suppress(DecodeError):
            read(data)


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        ("40", None),
        ("41", True),
        ("5600", False),
        ("5601", True),
        ("43", UInt(0)),
        ("5205", UInt(5)),
        ("7000000005", UInt(5)),
        ("44", ULong(0)),
        ("53ff", ULong(255)),
        ("80ffffffffffffffff", ULong(2**64 - 1)),
        ("55ff", -1),
        ("54ff", Int(-1)),
        ("81ffffffffffffffff", -1),
        ("830000018bcfe56800", Timestamp(1_700_000_000_000)),
        ("7300000041", Char("A")),
        ("980123456789abcdef0123456789abcdef", UUID("01234567-89ab-cdef-0123-456789abcdef")),
        ("a103e282ac", "€"),
        ("b100000003e282ac", "€"),
        ("a30161", Symbol("a")),
        ("45", []),
        ("c00100", []),
        ("d00000000400000000", []),
        ("c103024041", {None: True}),
        ("f00000001500000002" + "81" + "00" * 7 + "01" + "00" * 7 + "02", Array.of_longs([1, 2])),
    ],
)
def test_known_encodings_mean_what_the_specification_says(encoded: str, value: Any) -> None:
    assert _typed(decode(bytes.fromhex(encoded))) == _typed(value)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (UInt(0), "43"),
        (UInt(255), "52ff"),
        (UInt(256), "7000000100"),
        (ULong(0), "44"),
        (5, "5505"),
        (-129, "81ffffffffffffff7f"),
        (UByte(5), "5005"),
        ("a" * 255, "a1ff" + "61" * 255),
        ("a" * 256, "b100000100" + "61" * 256),
        ([], "45"),
        ({}, "c10100"),
        ([None, None], "c003024040"),
        (Array.of_symbols(["a"]), "e00701b30000000161"),
        ((True, False), "c003024142"),
        (bytearray(b"a"), "a00161"),
        (memoryview(b"a"), "a00161"),
    ],
)
def test_the_shortest_encoding_is_written(value: Any, encoded: str) -> None:
    assert encode(value).hex() == encoded


def test_nan_stays_what_it_is() -> None:
    assert math.isnan(decode(encode(math.nan)))


@pytest.mark.parametrize(
    "value",
    [UInt(-1), UInt(2**32), 2**63, Symbol("ä"), "\ud800", Char("ab"), Decimal(b"12"), object(), Array(0x99, [1])],
)
def test_what_does_not_fit_its_type_is_not_written(value: Any) -> None:
    with pytest.raises(EncodeError):
        encode(value)


@pytest.mark.parametrize(
    "encoded",
    [
        "",
        "3f",  # a format code that nobody knows
        "5602",  # neither true nor false
        "a101ff",  # no UTF-8
        "a301e4",  # no ASCII
        "730000d800",  # a surrogate
        "7300110000",  # beyond Unicode
        "c10301a10161",  # a key without its value
        "c1070440404041",  # a key twice
        "c10702c0010040",  # the map's list of one too few bytes
        "c1050245c00100",  # a list for a key, which no map of Service Bus has
        "c003034040",  # three items, two there
        "c003014040",  # one item, two there
        "c0ff0240",  # beyond the end
        "00004441",  # a descriptor that is described
        "f0000000050000ffff41",  # more items than bytes bound, of no bytes each
        "e00902810000000000000001",  # an array of one too few bytes
        "e0040200532441",  # an array whose descriptor leaves no room for its items
        "b1ffffffff",
        "d0ffffffffffffffff",
        "f0ffffffffffffffff",
    ],
)
def test_what_is_no_amqp_is_refused(encoded: str) -> None:
    with pytest.raises(DecodeError):
        decode(bytes.fromhex(encoded))


def test_items_without_bytes_are_few() -> None:
    def array(count: int) -> bytes:
        return b"\xf0" + struct.pack(">II", 5, count) + b"\x41"

    assert decode(array(AMQP_EMPTY_ITEMS_MAX)).items == [True] * AMQP_EMPTY_ITEMS_MAX
    with pytest.raises(DecodeError, match="no room"):
        decode(array(AMQP_EMPTY_ITEMS_MAX + 1))


@pytest.mark.parametrize(
    "wrap", [lambda inner: [inner], lambda inner: {"k": inner}, lambda inner: Described(ULong(1), inner)]
)
def test_nesting_has_an_end(wrap: Any) -> None:
    value: Any = True
    for _ in range(AMQP_NESTING_MAX):
        value = wrap(value)
    assert decode(encode(value)) == value
    with pytest.raises(DecodeError, match="nested"):
        decode(encode(wrap(value)))


def test_a_deep_nest_of_descriptions_is_not_followed_to_its_end() -> None:
    with pytest.raises(DecodeError):
        decode(b"\x00\x44" * 100_000 + b"\x40")
    with pytest.raises(DecodeError):
        skip(b"\x00\x44" * 100_000 + b"\x40", 0)


def test_more_than_one_value_is_not_taken_for_one() -> None:
    with pytest.raises(DecodeError, match="stand behind"):
        decode(b"\x40\x40")
    assert decode_at(b"\x40\x41", 1) == (True, 2)
