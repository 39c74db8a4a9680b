from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.gateway_process import Gateway, manifest, running, write
from harness.redis_servers import Broker, running_brokers
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys

KEYS = QueueKeys("letters")
PARTITIONS = 16


def configure(brokers: list[Broker], keys: QueueKeys = KEYS) -> None:
    for number, broker in enumerate(brokers):
        with BlockingBroker(broker.address) as client:
            client.call(calls.configure(keys, partition=number, partitions=len(brokers)))


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[list[Broker]]:
    """Those of a queue named letters, told so."""
    with running_brokers(tmp_path / "brokers", PARTITIONS, fsync="no") as found:
        configure(found)
        yield found


@pytest.fixture
def queues(tmp_path: Path) -> Path:
    """The folder that gateways of a test read."""
    folder = tmp_path / "queues"
    folder.mkdir()
    return folder


@pytest.fixture
def gateway(tmp_path: Path, queues: Path, brokers: list[Broker]) -> Iterator[Gateway]:
    """One that knows the queue letters."""
    write(queues / "letters.yaml", manifest("letters", brokers))
    with running(tmp_path, PQ_GATEWAY_FOLDER=str(queues)) as one:
        one.wait_ready()
        yield one
