from collections.abc import Iterator

import pytest

from harness.clock import Clock, clocked_library
from harness.redis_servers import Broker, running_broker
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    folder = tmp_path_factory.mktemp("broker")
    with running_broker(
        folder, fsync="no", settings=("--enable-debug-command", "yes"), library=clocked_library
    ) as server:
        yield server


@pytest.fixture
def broker(redis_server: Broker) -> Iterator[BlockingBroker]:
    """A broker that holds nothing."""
    with BlockingBroker(redis_server.address) as client:
        client.raw(("FLUSHALL",))
        yield client


@pytest.fixture
def clock(broker: BlockingBroker) -> Clock:
    """The broker's clock, which from now on moves only when it is told to."""
    return Clock(broker)


@pytest.fixture
def keys() -> QueueKeys:
    return QueueKeys("flights")
