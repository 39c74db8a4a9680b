"""Real redis-servers for tests: a free loopback port, a folder, the library loaded, ended by process id.

A test that ends by `stop()` (or leaves the `with` block) leaves nothing running. `kill()` is kill -9: what had been
acknowledged must be there after `restart()`.
"""

import contextlib
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import redis

from harness import servers
from partitionedqueue.broker.library import library_text
from partitionedqueue.model.placement import BrokerAddress

START_SECONDS = 20.0
STOP_SECONDS = 20.0
PORT_ATTEMPTS = 10


def redis_server_path() -> str:
    """Where redis-server is: PQ_TEST_SERVER chooses another than PATH's (harness.servers)."""
    path = servers.chosen_path()
    if path is None:
        raise RuntimeError("these tests need redis-server 7.0 or newer on PATH")
    return path


def free_port() -> int:
    """A loopback port that was free a moment ago; whoever binds it must be ready to lose the race.

    Below those that the kernel gives to outgoing connections: a broker that restarts must find its port free.
    """
    while True:
        port = random.randrange(15_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@dataclass
class Broker:
    """One redis-server with the library loaded."""

    folder: Path
    appendonly: bool = True
    fsync: str = "always"
    settings: tuple[str, ...] = ()
    library: Callable[[], str] = library_text
    port: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _killed: bool = field(default=False, repr=False)

    @property
    def address(self) -> BrokerAddress:
        return BrokerAddress("127.0.0.1", self.port)

    @property
    def pid(self) -> int:
        assert self.process is not None, "this broker is not running"
        return self.process.pid

    def start(self) -> None:
        """Start on the port of before, or on a free one the first time; load the library."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for _ in range(PORT_ATTEMPTS):
            port = self.port or free_port()
            self.process = self._spawn(port)
            if self._answers(port):
                self.port = port
                self.load_library()
                self._killed = False
                return
            self.stop()
        raise RuntimeError(f"redis-server did not start:\n{self.log()}")

    def load_library(self) -> None:
        with contextlib.closing(self.connect()) as connection:
            connection.function_load(self.library(), replace=True)

    def connect(self) -> redis.Redis:
        """A plain Redis client, for native commands."""
        return redis.Redis(host="127.0.0.1", port=self.port, socket_timeout=10.0, socket_connect_timeout=10.0)

    def log(self) -> str:
        path = self.folder / "redis.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def kill(self) -> None:
        """Kill -9, as the kernel does when memory runs out.

        It may tear the write that is under way; nobody was told that it was done. The next start cuts it off, as
        start.sh and `pq up` do.
        """
        self._killed = True
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End in good order; harmless if it has ended already."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Let it hang (SIGSTOP), as a machine that does not answer."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """Start again on the same port and folder; stops it first if it runs."""
        self.stop()
        self.start()

    def _end(self, how: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
            process.send_signal(signal.SIGCONT)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS)

    def _spawn(self, port: int) -> subprocess.Popen[bytes]:
        arguments = [
            *("--bind", "127.0.0.1", "--port", str(port), "--dir", str(self.folder)),
            *("--logfile", str(self.folder / "redis.log"), "--save", ""),
            *("--appendonly", "yes" if self.appendonly else "no", "--appendfsync", self.fsync),
            *("--aof-load-truncated", "yes" if self._killed else "no"),
            *self.settings,
        ]
        return subprocess.Popen(
            [redis_server_path(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=self.folder
        )

    def _answers(self, port: int) -> bool:
        assert self.process is not None
        deadline = time.monotonic() + START_SECONDS
        with contextlib.closing(redis.Redis(host="127.0.0.1", port=port, socket_timeout=5.0)) as connection:
            while time.monotonic() < deadline and self.process.poll() is None:
                with contextlib.suppress(redis.RedisError):
                    # A stranger on this port would answer as well: the process id tells.
                    return bool(connection.info("server")["process_id"] == self.process.pid)
                time.sleep(0.01)
        return False


def start_broker(
    tmp_path: Path,
    *,
    appendonly: bool = True,
    fsync: str = "always",
    settings: tuple[str, ...] = (),
    library: Callable[[], str] = library_text,
) -> Broker:
    """Start one broker below `tmp_path`; the caller stops it. `settings` are more redis-server arguments."""
    broker = Broker(tmp_path, appendonly=appendonly, fsync=fsync, settings=settings, library=library)
    try:
        broker.start()
    except BaseException:
        broker.stop()
        raise
    return broker


@contextlib.contextmanager
def running_broker(
    tmp_path: Path,
    *,
    appendonly: bool = True,
    fsync: str = "always",
    settings: tuple[str, ...] = (),
    library: Callable[[], str] = library_text,
) -> Iterator[Broker]:
    """One broker for a `with` block."""
    broker = start_broker(tmp_path, appendonly=appendonly, fsync=fsync, settings=settings, library=library)
    try:
        yield broker
    finally:
        broker.stop()


@contextlib.contextmanager
def running_brokers(
    tmp_path: Path, count: int, *, appendonly: bool = True, fsync: str = "always"
) -> Iterator[list[Broker]]:
    """`count` brokers for a `with` block, each in a folder of its own, in partition order."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(running_broker(tmp_path / f"broker-{i:02}", appendonly=appendonly, fsync=fsync))
            for i in range(count)
        ]
