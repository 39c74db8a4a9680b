import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitionedqueue.model import limits
from partitionedqueue.model.errors import LockLost
from partitionedqueue.model.lock_token import LockToken, seal_of

tokens = st.builds(
    LockToken,
    st.integers(0, limits.PARTITION_MAX),
    st.integers(1, 2**limits.SEQUENCE_BITS - 1),
    st.integers(1, limits.BROKER_NUMBER_MAX - 1),
)


@given(tokens)
def test_a_token_says_where_its_message_is(token: LockToken) -> None:
    assert LockToken.from_uuid(token.uuid) == LockToken.from_tag(token.tag) == token


@given(tokens, st.integers(0, 2**64 - 1))
def test_what_is_sealed_is_opened_by_the_same_seal(token: LockToken, seal: int) -> None:
    sealed = token.sealed(seal)
    assert LockToken.from_uuid(sealed.uuid, seal) == LockToken.from_tag(sealed.tag, seal) == token


@pytest.mark.parametrize(
    "other", [("2", "ns", "orders", ""), ("1", "ns", "orders", "$DeadLetterQueue"), ("1", "n", "sorders", "")]
)
def test_another_queues_seal_does_not_open_it(other: tuple[str, ...]) -> None:
    sealed = LockToken(3, 17, 9).sealed(seal_of("1", "ns", "orders", ""))
    with pytest.raises(LockLost):
        LockToken.from_uuid(sealed.uuid, seal_of(*other))


@given(tokens)
def test_the_tag_is_the_guid_that_dotnet_makes_of_the_uuid(token: LockToken) -> None:
    assert token.tag == token.uuid.bytes_le
    assert token.uuid_bytes == token.uuid.bytes


def test_what_people_see_begins_with_the_partition() -> None:
    assert str(LockToken(5, 258, 7).uuid) == "00050000-0000-0102-0000-000000000007"


@given(st.binary(max_size=40).filter(lambda tag: len(tag) != 16))
def test_a_tag_of_another_length_is_no_token(tag: bytes) -> None:
    with pytest.raises(LockLost):
        LockToken.from_tag(tag)


@given(st.uuids())
def test_any_uuid_is_a_token_or_refused(some: uuid.UUID) -> None:
    try:
        token = LockToken.from_uuid(some)
    except LockLost:
        return
    assert token.uuid == some


@pytest.mark.parametrize("bad", [uuid.UUID(int=0), uuid.UUID(int=5), uuid.UUID(int=1 << 64), uuid.UUID(int=2**128 - 1)])
def test_what_was_never_handed_out_is_refused(bad: uuid.UUID) -> None:
    with pytest.raises(LockLost):
        LockToken.from_uuid(bad)
