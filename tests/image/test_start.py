"""start.sh: what it promises where nothing is damaged."""

import contextlib
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.deliveries import received_bodies, stored
from harness.redis_servers import free_port
from harness.servers import Server
from harness.start_script import SECONDS, Started, library_file, started
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.library import library_text, library_version
from partitionedqueue.model.errors import QueueFull

KEYS = QueueKeys("flights")


def with_version(version: str, *, layout: int | None = None) -> str:
    """The library as if it were another version."""
    text = re.sub(r"LIBRARY_VERSION = '[^']+'", f"LIBRARY_VERSION = '{version}'", library_text(), count=1)
    return text if layout is None else re.sub(r"LAYOUT_VERSION = \d+", f"LAYOUT_VERSION = {layout}", text, count=1)


@contextlib.contextmanager
def asked(broker: Started) -> Iterator[BlockingBroker]:
    """A client of a broker that is ready."""
    with BlockingBroker(broker.wait_until_ready().address) as client:
        yield client


def loaded(broker: Started) -> str:
    with BlockingBroker(broker.address) as client:
        return client.call(calls.about()).library


def test_it_starts_with_the_library_and_keeps_what_it_acknowledged(folder: Path, library: Path, server: Server) -> None:
    with (
        started(folder, library, server=server.path) as broker,
        BlockingBroker(broker.wait_until_ready().address) as client,
    ):
        assert client.call(calls.about()).library == library_version()
        client.call(calls.send(KEYS, [stored(b"one"), stored(b"two")]))
        assert broker.end() == 0
    with (
        started(folder, library, server=server.path) as broker,
        BlockingBroker(broker.wait_until_ready().address) as client,
    ):
        client.call(calls.send(KEYS, [stored(b"three")]))
        assert broker.kill() == 128 + signal.SIGKILL
        assert "the server ended with code 137" in broker.said()
    with (
        started(folder, library, server=server.path) as broker,
        BlockingBroker(broker.wait_until_ready().address) as client,
    ):
        received = client.call(calls.receive(KEYS, most=10, lock_ms=1000))
        assert received_bodies(received) == [b"one", b"two", b"three"]


def first_connection(port: int) -> socket.socket:
    """A connection in the moment in which the port opens."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 5.0)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline


def test_whoever_reaches_the_port_finds_the_library(folder: Path, library: Path, server: Server) -> None:
    about = b"*3\r\n$8\r\nFCALL_RO\r\n$8\r\npq_about\r\n$1\r\n0\r\n"
    for _ in range(5):
        with started(folder, library, server=server.path) as broker:
            with first_connection(broker.port) as connection:
                connection.settimeout(5.0)
                connection.sendall(about)
                assert connection.recv(4096).startswith(b"*4\r\n$7\r\nlibrary\r\n")
            broker.wait_until_ready()
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.parametrize(
    ("durability", "appendonly", "appendfsync"),
    [("Always", "yes", "always"), ("EverySecond", "yes", "everysec"), ("None", "no", None)],
)
def test_durability_decides_when_the_file_is_on_disk(
    folder: Path, library: Path, durability: str, appendonly: str, appendfsync: str | None
) -> None:
    with started(folder, library, settings={"PQ_DURABILITY": durability}) as broker:
        connection = broker.wait_until_ready().connect()
        assert connection.config_get("appendonly") == {"appendonly": appendonly}
        if appendfsync:
            assert connection.config_get("appendfsync") == {"appendfsync": appendfsync}
        assert connection.config_get("maxmemory") == {"maxmemory": str(256 << 20)}
        connection.close()


def test_further_arguments_are_the_servers_and_come_last(folder: Path, library: Path) -> None:
    with started(folder, library, "--maxclients", "77", "--appendfsync", "everysec") as broker:
        connection = broker.wait_until_ready().connect()
        assert connection.config_get("maxclients") == {"maxclients": "77"}
        assert connection.config_get("appendfsync") == {"appendfsync": "everysec"}
        connection.close()


def test_a_password_is_asked_of_everybody_and_known_to_the_script(folder: Path, library: Path) -> None:
    with started(folder, library, "--requirepass", "secret", settings={"REDISCLI_AUTH": "secret"}) as broker:
        broker.wait_until_ready()
        with BlockingBroker(broker.address, password="secret") as client:
            assert client.call(calls.about()).library == library_version()


def test_a_later_library_replaces_the_folders_and_an_earlier_one_never(folder: Path, tmp_path: Path) -> None:
    for beside, runs in [("0.9.0", "0.9.0"), ("0.10.0", "0.10.0"), ("0.9.0", "0.10.0"), ("0.10.1", "0.10.1")]:
        with started(folder, library_file(tmp_path, with_version(beside))) as broker:
            assert loaded(broker.wait_until_ready()) == runs
            assert f"library {runs}, layout" in broker.said()
            assert ("it stays" in broker.said()) == (beside != runs)


def test_going_back_to_an_earlier_library_is_a_choice_and_never_across_layouts(folder: Path, tmp_path: Path) -> None:
    back = {"PQ_OLDER_LIBRARY": "replace"}
    with started(folder, library_file(tmp_path, with_version("0.10.0"))) as broker:
        broker.wait_until_ready()
    with started(folder, library_file(tmp_path, with_version("0.9.0")), settings=back) as broker:
        assert loaded(broker.wait_until_ready()) == "0.9.0"
        assert "as asked, it goes back to 0.9.0" in broker.said()
    with started(folder, library_file(tmp_path, with_version("0.11.0", layout=200))) as broker:
        broker.wait_until_ready()
    with started(folder, library_file(tmp_path, with_version("0.9.0")), settings=back) as broker:
        assert loaded(broker.wait_until_ready()) == "0.11.0"
        assert "layout 200" in broker.said()


def test_a_password_that_the_script_was_not_told_is_said(folder: Path, library: Path) -> None:
    for settings in ({}, {"REDISCLI_AUTH": "another"}):
        with started(folder, library, "--requirepass", "secret", settings=settings) as broker:
            assert broker.code() == 64
            assert "asks for another password than REDISCLI_AUTH holds" in broker.said()


def fill_up(client: BlockingBroker) -> None:
    """Raises QueueFull."""
    for _ in range(10_000):
        client.call(calls.send(KEYS, [stored(bytes(200_000))]))


def test_a_full_broker_takes_the_library_of_an_upgrade(folder: Path, tmp_path: Path) -> None:
    little = {"PQ_MAXMEMORY": "16mb"}
    with started(folder, library_file(tmp_path, with_version("0.9.0")), settings=little) as broker:
        with asked(broker) as client, pytest.raises(QueueFull):
            fill_up(client)
        assert broker.end() == 0
    less = {"PQ_MAXMEMORY": "10mb"}
    with started(folder, library_file(tmp_path, with_version("0.10.0")), settings=less) as broker:
        assert loaded(broker.wait_until_ready()) == "0.10.0"
        with asked(broker) as client:
            with pytest.raises(QueueFull):
                client.call(calls.send(KEYS, [stored(b"one more")]))
            assert client.call(calls.receive(KEYS, most=1, lock_ms=0)).runs


def test_a_library_that_cannot_be_loaded_leaves_the_port_closed(folder: Path, tmp_path: Path) -> None:
    with started(folder, library_file(tmp_path, library_text() + "\nthis is no Lua\n")) as broker:
        assert broker.code() == 70
        assert "the library cannot be loaded: ERR Error compiling" in broker.said()
        assert not broker.is_ready()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", broker.port), 1.0)


def test_two_brokers_never_work_in_one_folder(folder: Path, library: Path) -> None:
    with started(folder, library) as first:
        first.wait_until_ready()
        with started(folder, library, settings={"PQ_LOCK_SECONDS_MAX": "1"}) as second:
            assert second.code() == 78
            assert f"another broker works in {folder}" in second.said()
        # Nor beside the server of a script that was killed.
        pid = first.server_pid()
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait(SECONDS)
        try:
            with started(folder, library, settings={"PQ_LOCK_SECONDS_MAX": "1"}) as second:
                assert second.code() == 78
        finally:
            os.kill(pid, signal.SIGKILL)
        with started(folder, library) as third:
            third.wait_until_ready()


def test_a_port_that_is_taken_is_said(folder: Path, library: Path) -> None:
    port = free_port()
    with socket.socket() as somebody_else:
        somebody_else.bind(("127.0.0.1", port))
        somebody_else.listen()
        with started(folder, library, port=port) as broker:
            assert broker.code() == 75
            assert f"port {port} cannot be opened" in broker.said()


@pytest.mark.parametrize(
    ("setting", "value", "code", "words"),
    [
        ("PQ_DURABILITY", "Sometimes", 64, "is none of Always, EverySecond, None"),
        ("PQ_TORN_END", "maybe", 64, "is neither refuse nor cut"),
        ("PQ_OLDER_LIBRARY", "maybe", 64, "is neither keep nor replace"),
        ("PQ_MAXMEMORY", "much", 64, "PQ_MAXMEMORY=much: ERR"),
        ("PQ_LIBRARY", "/nowhere/library.lua", 66, "is not the library"),
        ("PQ_SERVER", "/nowhere/redis-server", 69, "is no Redis 7.0 or newer"),
        ("PQ_SERVER", "/bin/true", 69, "is no Redis 7.0 or newer"),
    ],
)
def test_a_wrong_setting_is_said(
    folder: Path, library: Path, *, setting: str, value: str, code: int, words: str
) -> None:
    with started(folder, library, settings={setting: value}) as broker:
        assert broker.code() == code
        assert words in broker.said()
        assert not broker.is_ready()


def test_a_start_can_be_broken_off(folder: Path, library: Path) -> None:
    for delay in (0.0, 0.02, 0.05, 0.1, 0.2):
        with started(folder, library) as broker:
            time.sleep(delay)
            assert broker.end() in {0, -signal.SIGTERM}  # the latter before the shell has read its first line
            assert "NOT STARTED" not in broker.said()
    with started(folder, library) as broker:
        broker.wait_until_ready()
