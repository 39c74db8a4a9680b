from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from harness.redis_servers import Broker, running_broker
from partitionedqueue.broker.bell import Bell
from partitionedqueue.broker.client import BrokerClient


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path) as broker:
        yield broker


@pytest.fixture
async def client(server: Broker) -> AsyncIterator[BrokerClient]:
    one = BrokerClient(server.address)
    yield one
    await one.close()


@pytest.fixture
async def bell(server: Broker) -> AsyncIterator[Bell]:
    one = Bell(server.address)
    yield one
    await one.close()
