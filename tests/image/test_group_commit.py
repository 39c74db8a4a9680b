"""appendfsync always: no reply before its sync, and what is in flight together shares one. Seen with strace."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import hiredis
import pytest

from harness.deliveries import stored
from harness.start_script import Started, started
from partitionedqueue.broker import calls
from partitionedqueue.broker.keys import QueueKeys

KEYS = QueueKeys("flights")
ROUNDS, AT_ONCE = 20, 64


@pytest.fixture
def broker(folder: Path, library: Path) -> Iterator[Started]:
    """A broker as a pod runs it."""
    with started(folder, library) as one:
        yield one.wait_until_ready()


class Trace:
    """What the server's main thread did: `s` a sync of the append-only file, `w` a write to it, `r` a reply."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.did = ""

    def read(self) -> None:
        kinds = {"fdatasync": "s", "fsync": "s", "write": "r", "writev": "r", "sendto": "r"}
        found = re.findall(r"^(\w+)\(\d+<([^>]*)>.*\) += \d+", self._path.read_text(errors="replace"), re.MULTILINE)
        for call, where in found:
            if where.endswith(".aof"):
                self.did += "s" if kinds[call] == "s" else "w"
            elif where.startswith(("socket:", "TCP")) and kinds[call] == "r":
                self.did += "r"


@contextlib.contextmanager
def traced(broker: Started, folder: Path) -> Iterator[Trace]:
    """Follow the server's main thread, which writes, syncs and replies."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    out = folder / "strace.txt"
    watched = "trace=fdatasync,fsync,write,writev,sendto"
    process = subprocess.Popen(
        [strace, "-y", "-e", watched, "-o", str(out), "-p", str(broker.server_pid())], stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    said = process.stderr.readline().decode()  # it says so once it is attached
    if "attached" not in said:
        process.wait(10)
        pytest.skip(f"strace may not follow a process here: {said.strip()}")
    trace = Trace(out)
    try:
        yield trace
    finally:
        time.sleep(0.2)  # what a client has read already may not be written down yet
        process.send_signal(signal.SIGINT)
        process.wait(10)
        process.stderr.close()
    trace.read()


@contextlib.contextmanager
def connections(broker: Started, count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(("127.0.0.1", broker.port), 10.0)) for _ in range(count)]


def packed(message: bytes) -> bytes:
    words = calls.send(KEYS, [stored(message)]).words
    return bytes(hiredis.pack_command(words))  # type: ignore[arg-type]  # its stub knows tuples of one


def replied(connection: socket.socket) -> None:
    reader = hiredis.Reader()
    while (reply := reader.gets()) is False:
        reader.feed(connection.recv(4096))
    assert isinstance(reply, list), reply


def test_a_reply_comes_after_the_sync_of_what_it_answers(broker: Started, tmp_path: Path) -> None:
    with connections(broker, 1) as (only,), traced(broker, tmp_path) as trace:
        for number in range(ROUNDS):
            only.sendall(packed(b"%d" % number))
            replied(only)
    assert trace.did.count("r") == ROUNDS
    assert re.fullmatch(r"(w+s+r)+s*", trace.did), trace.did


def test_what_is_in_flight_together_shares_a_sync(broker: Started, tmp_path: Path) -> None:
    pid = broker.server_pid()
    with connections(broker, AT_ONCE) as all_of_them, traced(broker, tmp_path) as trace:
        for _ in range(ROUNDS):
            os.kill(pid, signal.SIGSTOP)  # so that what is sent meanwhile is there together
            for connection in all_of_them:
                connection.sendall(packed(b"together"))
            time.sleep(0.005)
            os.kill(pid, signal.SIGCONT)
            for connection in all_of_them:
                replied(connection)
    assert trace.did.count("r") == ROUNDS * AT_ONCE
    assert ROUNDS <= trace.did.count("s") <= ROUNDS * AT_ONCE / 8
    assert re.fullmatch(r"(w+s+r+)+s*", trace.did), trace.did
