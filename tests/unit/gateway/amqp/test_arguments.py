from uuid import UUID

import pytest

from partitionedqueue.model.errors import LockLost
from partitionedqueue.model.lock_token import LockToken
from partitionedqueue_gateway.amqp import arguments
from partitionedqueue_gateway.amqp.engine.encoding import encode
from partitionedqueue_gateway.amqp.engine.values import Array, Described, Int, Symbol, UInt, ULong, Value
from partitionedqueue_gateway.amqp.failures import ArgumentOutOfRange, InvalidRequest


@pytest.mark.parametrize("number", [5, Int(5), UInt(5), ULong(5)])
def test_a_whole_number_may_be_of_any_width(number: int) -> None:
    assert arguments.whole({"top": number}, "top", least=1) == 5


@pytest.mark.parametrize("wrong", [None, True, "5", 5.0, [5]])
def test_what_is_no_whole_number_is_refused(wrong: Value) -> None:
    with pytest.raises(InvalidRequest, match="top is a whole number"):
        arguments.whole({"top": wrong}, "top", least=0)


def test_a_number_that_is_too_small_is_out_of_range() -> None:
    with pytest.raises(ArgumentOutOfRange, match="top is -1; it is 0 or more"):
        arguments.whole({"top": -1}, "top", least=0)


def test_a_number_that_is_too_large_becomes_the_largest() -> None:
    assert arguments.whole({"top": 5_000}, "top", least=0, most=1_000) == 1_000


def test_a_number_that_is_missing_or_null_may_have_a_default() -> None:
    assert arguments.whole({}, "skip", least=0, otherwise=0) == 0
    assert arguments.whole({"skip": None}, "skip", least=0, otherwise=7) == 7


@pytest.mark.parametrize("wrap", [list, Array.of_longs])
def test_sequence_numbers_come_as_a_list_or_an_array(wrap: type) -> None:
    assert arguments.sequence_numbers({"sequence-numbers": wrap([1, 2**62])}) == [1, 2**62]


@pytest.mark.parametrize("wrong", [[], None, 5, {}])
def test_no_sequence_numbers_at_all_are_refused(wrong: Value) -> None:
    with pytest.raises(InvalidRequest, match="sequence-numbers"):
        arguments.sequence_numbers({"sequence-numbers": wrong})


@pytest.mark.parametrize("wrong", [[0], [-1], [1 << 63], ["1"], list(range(1, 1_002))])
def test_numbers_that_are_no_sequence_numbers_are_out_of_range(wrong: Value) -> None:
    with pytest.raises(ArgumentOutOfRange, match="sequence-numbers"):
        arguments.sequence_numbers({"sequence-numbers": wrong})


def test_lock_tokens_are_read() -> None:
    token = LockToken(3, 17, 9)
    assert arguments.lock_tokens({"lock-tokens": Array.of_uuids([token.sealed(5).uuid])}, 5) == [token]


def test_a_token_that_was_never_handed_out_is_a_lost_lock() -> None:
    with pytest.raises(LockLost):
        arguments.lock_tokens({"lock-tokens": [UUID(int=0)]}, 0)


def test_a_token_that_is_no_uuid_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="lock-tokens are UUIDs"):
        arguments.lock_tokens({"lock-tokens": ["abc"]}, 0)


def test_properties_are_kept_with_their_types_and_null_takes_one_away() -> None:
    told = {"properties-to-modify": {Symbol("a"): Int(1), "b": Described(Symbol("com.microsoft:uri"), "x"), "c": None}}
    found = arguments.changes(told, "properties-to-modify")
    assert found == {"a": encode(Int(1)), "b": encode(Described(Symbol("com.microsoft:uri"), "x")), "c": None}
    assert all(type(name) is str for name in found)
    assert arguments.changes({}, "properties-to-modify") == {}


@pytest.mark.parametrize("wrong", [[], "a", {1: 2}, {"a": [1]}, {"a": {}}, {"a": Array.of_longs([1])}])
def test_properties_that_are_no_map_of_simple_values_are_refused(wrong: Value) -> None:
    with pytest.raises(InvalidRequest):
        arguments.changes({"properties-to-modify": wrong}, "properties-to-modify")


def test_text_is_text_or_nothing() -> None:
    assert arguments.text({"session-id": ""}, "session-id") == ""
    assert arguments.text({"session-id": None}, "session-id") is None
    with pytest.raises(InvalidRequest):
        arguments.text({"session-id": 5}, "session-id")


def test_the_body_is_a_map() -> None:
    with pytest.raises(InvalidRequest):
        arguments.of(["peek"])
