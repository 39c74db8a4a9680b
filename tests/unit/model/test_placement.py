import pytest

from partitionedqueue.model import limits, placement
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.placement import BrokerAddress, pod_address


def test_broker_addresses_are_read_and_written() -> None:
    assert str(BrokerAddress.parse("127.0.0.1:6379")) == "127.0.0.1:6379"
    assert str(BrokerAddress.parse("[::1]:6379")) == "[::1]:6379"


@pytest.mark.parametrize("text", ["", "host", "host:", ":1", "host:0", "host:65536", "host:x"])
def test_what_is_no_broker_address_is_refused(text: str) -> None:
    with pytest.raises(PartitionedQueueError, match="write it as host:port"):
        BrokerAddress.parse(text)


def test_a_pod_has_a_name_of_its_own_under_the_service() -> None:
    assert str(pod_address("flights", 3, namespace="shop")) == "flights-broker-3.flights-broker.shop.svc:6379"
    assert placement.volume_claim_name("flights", 3) == f"data-{placement.pod_name('flights', 3)}"


def test_the_longest_name_leaves_room_for_what_kubernetes_appends() -> None:
    queue = "x" * limits.QUEUE_NAME_CHARACTERS_MAX
    revision = (
        f"{placement.broker_name(queue)}-{'f' * 10}"  # the label controller-revision-hash of a StatefulSet's pods
    )
    assert len(revision) <= limits.LABEL_CHARACTERS_MAX
    assert len(placement.pod_name(queue, limits.PARTITIONS_PER_GB * 5 - 1)) <= limits.LABEL_CHARACTERS_MAX


def test_a_volume_holds_an_old_file_and_a_new_one_of_a_full_partition() -> None:
    assert placement.volume_bytes(1) > placement.volume_bytes_min(1) >= 2 * 2**30
