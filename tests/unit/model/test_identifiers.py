import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.identifiers import sequence_number, split_sequence_number
from partitionedqueue.model.placement import BrokerAddress, pod_address


@given(st.integers(0, 2**15 - 1), st.integers(1, 2**48 - 1))
def test_a_sequence_number_gives_its_parts_back(partition: int, local: int) -> None:
    number = sequence_number(partition, local)
    assert 0 < number < 2**63
    assert split_sequence_number(number) == (partition, local)


@pytest.mark.parametrize(("partition", "local"), [(-1, 1), (2**15, 1), (0, 0), (0, 2**48)])
def test_parts_out_of_range_are_refused(partition: int, local: int) -> None:
    with pytest.raises(ValueError, match="no sequence number"):
        sequence_number(partition, local)


def test_broker_addresses_are_read_and_written() -> None:
    assert str(BrokerAddress.parse("127.0.0.1:6379")) == "127.0.0.1:6379"
    assert str(BrokerAddress.parse("[::1]:6379")) == "[::1]:6379"
    assert str(pod_address("flights", 3, namespace="shop")) == "flights-3.flights.shop.svc:6379"


@pytest.mark.parametrize("text", ["", "host", "host:", ":1", "host:0", "host:65536", "host:x"])
def test_what_is_no_broker_address_is_refused(text: str) -> None:
    with pytest.raises(PartitionedQueueError, match="write it as host:port"):
        BrokerAddress.parse(text)
