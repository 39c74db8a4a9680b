from hypothesis import given
from hypothesis import strategies as st

from partitionedqueue.broker.replies import Settlement
from partitionedqueue.model.lock_token import LockToken
from partitionedqueue_gateway.entities.ranges import merged

TOKENS = st.builds(LockToken, st.just(3), st.integers(1, 30), st.integers(1, 3))


def test_neighbours_under_one_lock_are_a_range() -> None:
    tokens = [LockToken(0, sequence, lock) for sequence, lock in ((5, 1), (4, 1), (6, 2), (7, 2), (9, 2), (1, 1))]
    assert merged(tokens) == [Settlement(1, 1, 1), Settlement(1, 4, 5), Settlement(2, 6, 7), Settlement(2, 9, 9)]
    assert merged([]) == []


@given(st.lists(TOKENS))
def test_ranges_hold_just_what_they_were_made_of(tokens: list[LockToken]) -> None:
    ranges = merged(tokens)
    held = [(one.lock, n) for one in ranges for n in range(one.first, one.last + 1)]
    assert sorted(held) == sorted({(token.lock, token.sequence) for token in tokens})
    assert not {(one.lock, one.last + 1) for one in ranges} & {(one.lock, one.first) for one in ranges}
