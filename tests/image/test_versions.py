"""Redis 7.0 and newer, and Valkey 8: the library, start.sh and the data on each of them."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness import servers
from harness.deliveries import emptied, stored
from harness.redis_servers import Broker
from harness.servers import Server, ServerNotHere
from harness.start_script import MUST_DECIDE, Started, started
from harness.tour import Tour, commands_of
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys

KEYS = QueueKeys("flights")
ROOT = Path(__file__).parents[2]
SELECTED = ("test_complete.py", "test_layouts.py", "test_receive.py", "test_send.py")
"""Of tests/functions: what runs on each server in every run of the tests. `make versions` runs all of them."""
READS_DATA_OF = {
    "redis-7": {"redis-7"},
    "valkey-8": {"redis-7", "valkey-8"},
    "redis-8": {"redis-7", "valkey-8", "redis-8"},
}


def test_every_command_works(folder: Path, library: Path, server: Server) -> None:
    with started(folder, library, server=server.path) as one, BlockingBroker(one.wait_until_ready().address) as broker:
        version = bytes(broker.raw(("INFO", "server"))[0]).decode()
        assert f"_version:{server.version}" in version
        tour = Tour(broker)
        tour.walk()
        assert tour.called == commands_of(broker)


@pytest.mark.timeout(300)
def test_the_tests_of_the_library_pass(server: Server) -> None:
    if server.path == servers.chosen_path():
        pytest.skip("this is the server that tests/functions run on")
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "--server", server.name]
    done = subprocess.run(
        [*command, *(f"tests/functions/{name}" for name in SELECTED)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]


def filled(one: Started) -> list[bytes]:
    with BlockingBroker(one.wait_until_ready().address) as broker:
        for number in range(20):
            broker.call(calls.send(KEYS, [stored(b"%d" % (number * 10 + i)) for i in range(10)]))
    return [b"%d" % number for number in range(200)]


@pytest.mark.parametrize("writer", servers.NAMES)
def test_data_goes_along_to_the_servers_that_can_read_it(
    folder: Path, library: Path, server: Server, writer: str
) -> None:
    """And is refused, whole, by those that cannot: what an upgrade may do, and where there is no way back."""
    try:
        before = servers.server(writer)
    except ServerNotHere as error:
        pytest.skip(str(error))
    with started(folder, library, server=before.path) as one:
        sent = filled(one)
        one.kill()
    may_read = writer in READS_DATA_OF[server.name]
    if not may_read:
        with started(folder, library, server=server.path) as one:
            assert one.code() == MUST_DECIDE
            assert "was written by a newer server" in one.said()
    after = server if may_read else before
    with started(folder, library, server=after.path) as one, BlockingBroker(one.wait_until_ready().address) as broker:
        assert emptied(broker, KEYS) == sent


def test_a_server_is_chosen_by_its_name(monkeypatch: pytest.MonkeyPatch, server: Server, tmp_path: Path) -> None:
    monkeypatch.setenv(servers.CHOSEN, server.name)
    assert servers.chosen_path() == server.path
    broker = Broker(tmp_path)
    broker.start()
    try:
        with BlockingBroker(broker.address) as client:
            assert f"_version:{server.version}".encode() in client.raw(("INFO", "server"))[0]
    finally:
        broker.stop()
