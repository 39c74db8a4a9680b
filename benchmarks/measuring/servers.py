"""Redis-servers for the length of a measurement: free loopback ports, a temporary folder, ended by process id."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from benchmarks.measuring.lanes import Lane, connect, wire

from partitionedqueue.broker.library import library_text, redis_conf_text

OFF = "off"
EVERYSEC = "everysec"
ALWAYS = "always"
NOTHING_MORE: Mapping[str, str] = MappingProxyType({})
STOP_S_MAX = 20.0


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody uses at this moment."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is gone afterwards, whatever stands in it by then."""
    folder = Path(tempfile.mkdtemp(prefix="pq-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(arguments: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> Iterator[int]:
    """A child process, and whatever it starts in its group, for the length of a block; gives its process id."""
    with log.open("wb") as output:
        child = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    try:
        yield child.pid
    finally:
        child.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.wait(STOP_S_MAX)
        with suppress(ProcessLookupError):  # the group is gone where its leader ended in good order
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def configuration(port: int, folder: Path, fsync: str, more: Mapping[str, str]) -> str:
    """What every broker begins with, then what this one has; its append-only file is never rewritten while measured."""
    own = {
        "port": str(port),
        "bind": "127.0.0.1",
        "dir": str(folder),
        "appendonly": "no" if fsync == OFF else "yes",
        "appendfsync": "no" if fsync == OFF else fsync,
        "auto-aof-rewrite-percentage": "0",
        **more,
    }
    return "\n".join((redis_conf_text(), *(f"{name} {value}" for name, value in own.items()), ""))


class Broker(NamedTuple):
    """A running broker: where it listens, and its process group."""

    port: int
    process_group: int


@contextmanager
def brokers(count: int, fsync: str, more: Mapping[str, str] = NOTHING_MORE) -> Iterator[list[Broker]]:
    """`count` redis-servers with the library; nothing of them is left afterwards.

    `fsync` is one of OFF (no append-only file), EVERYSEC, ALWAYS; `more` are further settings of redis.conf.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        started = []
        for port in free_ports(count):
            its_folder = folder / str(port)
            its_folder.mkdir()
            conf = its_folder / "redis.conf"
            conf.write_text(configuration(port, its_folder, fsync, more), encoding="utf-8")
            group = stack.enter_context(running(["redis-server", str(conf)], its_folder / "log"))
            started.append(Broker(port, group))
        for broker in started:
            lane = connect(broker.port)
            stack.callback(lane.socket.close)
            lane.ask(wire("FUNCTION", "LOAD", "REPLACE", library_text()))
        yield started


@contextmanager
def broker_lanes(count: int, fsync: str, more: Mapping[str, str] = NOTHING_MORE) -> Iterator[list[Lane]]:
    """`count` brokers, one lane to each."""
    with brokers(count, fsync, more) as started, ExitStack() as stack:
        lanes = [connect(broker.port) for broker in started]
        for lane in lanes:
            stack.callback(lane.socket.close)
        yield lanes
