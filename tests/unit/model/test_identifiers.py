import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitionedqueue.model.identifiers import sequence_number, split_sequence_number


@given(st.integers(0, 2**15 - 1), st.integers(1, 2**48 - 1))
def test_a_sequence_number_gives_its_parts_back(partition: int, local: int) -> None:
    number = sequence_number(partition, local)
    assert 0 < number < 2**63
    assert split_sequence_number(number) == (partition, local)


@pytest.mark.parametrize(("partition", "local"), [(-1, 1), (2**15, 1), (0, 0), (0, 2**48)])
def test_parts_out_of_range_are_refused(partition: int, local: int) -> None:
    with pytest.raises(ValueError, match="no sequence number"):
        sequence_number(partition, local)
