"""Sixteen brokers and a gateway for a file of tests; each test finds them whole and empty, whatever was done before."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from harness.gateway_process import Gateway, manifest, running, write
from harness.redis_servers import Broker, running_brokers
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys

KEYS = QueueKeys("letters")
PARTITIONS = 16


@pytest.fixture(scope="module")
def standing_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Broker]]:
    with running_brokers(tmp_path_factory.mktemp("brokers"), PARTITIONS, fsync="no") as found:
        _make_whole(found)
        yield found


def _make_whole(brokers: list[Broker]) -> None:
    for number, broker in enumerate(brokers):
        if broker.process is None:
            broker.start()
        broker.resume()
        with closing(broker.connect()) as connection:
            connection.flushall()
        with BlockingBroker(broker.address) as client:
            client.call(calls.configure(KEYS, partition=number, partitions=len(brokers)))


@pytest.fixture
def brokers(standing_brokers: list[Broker]) -> Iterator[list[Broker]]:
    """Those of a queue named letters, told so."""
    yield standing_brokers
    _make_whole(standing_brokers)


@pytest.fixture(scope="module")
def standing_gateway(
    tmp_path_factory: pytest.TempPathFactory, standing_brokers: list[Broker]
) -> Iterator[tuple[Gateway, Path]]:
    folder = tmp_path_factory.mktemp("gateway")
    write(folder / "queues" / "letters.yaml", manifest("letters", standing_brokers))
    with running(folder, PQ_GATEWAY_FOLDER=str(folder / "queues")) as one:
        one.wait_ready()
        yield one, folder / "queues"


@pytest.fixture
def queues(standing_gateway: tuple[Gateway, Path], standing_brokers: list[Broker]) -> Iterator[Path]:
    """The folder that the gateway reads."""
    gateway, folder = standing_gateway
    yield folder
    for path in folder.iterdir():
        path.unlink()
    write(folder / "letters.yaml", manifest("letters", standing_brokers))
    gateway.until(lambda: [one["namespace"] for one in gateway.json("/api/v1/queues")["queues"]] == ["default"])


@pytest.fixture
def gateway(standing_gateway: tuple[Gateway, Path], brokers: list[Broker]) -> Gateway:
    """One that knows the queue letters."""
    found = standing_gateway[0]
    found.until(lambda: found.queue("letters")["availability"] == "Available")
    assert brokers
    return found
