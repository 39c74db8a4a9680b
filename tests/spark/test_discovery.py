"""How many brokers a queue has, asked of the first one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.redis_servers import Broker, running_brokers
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model.placement import BrokerAddress
from partitionedqueue_spark.discovery import partition_count
from partitionedqueue_spark.options import SourceOptions
from partitionedqueue_spark.partition import PartitionUnreadable


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Broker]:
    with running_brokers(tmp_path, 1) as (started,):
        yield started


def options(**more: str) -> SourceOptions:
    return SourceOptions.parse({"queue": "orders", "namespace": "shop", "brokerTimeout": "0s", **more}, {})


@pytest.mark.parametrize("partitions", [1, 16, 80])
def test_the_first_broker_says_how_many_there_are(server: Broker, partitions: int) -> None:
    with BlockingBroker(server.address) as broker:
        broker.call(calls.configure(QueueKeys("orders"), partition=0, partitions=partitions))
    assert partition_count(server.address, options()) == partitions


def test_a_broker_of_another_queue_is_told_apart(server: Broker) -> None:
    with pytest.raises(PartitionUnreadable, match="there is no queue orders in this broker"):
        partition_count(server.address, options())


def test_a_broker_that_is_not_the_first_one_is_told_apart(server: Broker) -> None:
    with BlockingBroker(server.address) as broker:
        broker.call(calls.configure(QueueKeys("orders"), partition=3, partitions=16))
    with pytest.raises(PartitionUnreadable, match="this broker holds partition 3 of 16"):
        partition_count(server.address, options())


def test_a_password_that_is_not_the_users_is_an_error_that_says_where_it_is(server: Broker) -> None:
    with BlockingBroker(server.address) as broker:
        broker.raw(("ACL", "SETUSER", "spark", "on", ">right", "~*", "+@all"))
    with pytest.raises(PartitionUnreadable, match="is in the Secret orders-broker, spark-password; the driver has it"):
        partition_count(server.address, options(password="wrong"))


def test_where_nobody_answers_the_error_asks_for_the_queue_and_the_label() -> None:
    with pytest.raises(PartitionUnreadable, match=r"Is there a queue orders in namespace shop \(kubectl"):
        partition_count(BrokerAddress("127.0.0.1", 1), options())
