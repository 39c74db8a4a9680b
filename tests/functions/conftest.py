from collections.abc import Iterator

import pytest

from harness.redis_servers import Broker, running_broker
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("broker"), fsync="no") as server:
        yield server


@pytest.fixture
def broker(redis_server: Broker) -> Iterator[BlockingBroker]:
    """A broker that holds nothing."""
    with BlockingBroker(redis_server.address) as client:
        client.raw(("FLUSHALL",))
        yield client


@pytest.fixture
def keys() -> QueueKeys:
    return QueueKeys("flights")
