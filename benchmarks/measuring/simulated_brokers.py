"""Brokers that hold nothing, for pods that consist of nothing: one process answers for every address of a network.

What the operator asks is answered as a broker with an empty queue would: who it is, and that all counts are zero.

The process ends, and takes the network's route with it, when its standard input closes: also where whoever wanted it
was killed. A route that stays would keep the next cluster from these addresses.
"""

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network
from typing import Final

import hiredis

from partitionedqueue.broker.library import library_layout, library_version
from partitionedqueue.model.placement import BROKER_PORT

TOTALS: Final = (
    "messages", "ready", "locked", "claimed", "deferred", "scheduled", "dead_letters", "transfers",
    "transfer_dead_letters", "bytes", "charge", "quota", "last", "oldest", "sessions", "sessions_locked", "remembered",
    "now", "partition", "partitions",
)  # fmt: skip
BACKLOG: Final = 1_024
END_S_MAX: Final = 10.0


def _bulk(text: str) -> bytes:
    return f"${len(text)}\r\n{text}\r\n".encode()


ABOUT: Final = b"*4\r\n" + _bulk("library") + _bulk(library_version()) + _bulk("layout") + b":%d\r\n" % library_layout()
COUNTS: Final = b"*%d\r\n" % (2 * len(TOTALS)) + b"".join(_bulk(name) + b":0\r\n" for name in TOTALS)
ANSWERS: Final = {b"pq_about": ABOUT, b"pq_totals": COUNTS, b"pq_configure": b":1\r\n"}


class _Broker(asyncio.Protocol):
    def __init__(self) -> None:
        self._reader = hiredis.Reader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (words := self._reader.gets()) is not False:
            asked = words[1] if words[0].upper() in {b"FCALL", b"FCALL_RO"} else b""
            self._transport.write(ANSWERS.get(asked, b"+OK\r\n"))


async def _serve() -> None:
    end_of_it = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, end_of_it.set)
    loop.add_reader(sys.stdin.fileno(), end_of_it.set)  # nobody writes there: it has been closed
    listener = socket.create_server(("", BROKER_PORT), backlog=BACKLOG)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")  # nobody outside this machine comes in
    await loop.create_server(_Broker, sock=listener)
    print("serving", flush=True)
    await end_of_it.wait()


@contextmanager
def _route(network: str) -> Iterator[None]:
    route = ("local", network, "dev", "lo")
    subprocess.run(["ip", "route", "replace", *route], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "route", "delete", *route], check=True)


@contextmanager
def brokers(network: IPv4Network) -> Iterator[None]:
    """They answer at every address of a network that belongs to nobody, on this machine alone."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.measuring.simulated_brokers", str(network)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C is for its owner, who then lets go in order
    )
    assert process.stdin
    assert process.stdout
    try:
        if not process.stdout.readline():
            raise RuntimeError("the simulated brokers do not serve; what they say stands above")
        yield
    finally:
        process.stdin.close()
        process.stdout.close()
        try:
            process.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    with _route(sys.argv[1]):
        asyncio.run(_serve())
