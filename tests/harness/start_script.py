"""broker-image/start.sh as a pod runs it: a process, a folder, and nothing left running."""

import contextlib
import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

import redis

from harness.redis_servers import free_port, redis_server_path
from partitionedqueue.broker.library import library_text
from partitionedqueue.model.placement import BrokerAddress

IMAGE = Path(__file__).parents[2] / "broker-image"
MUST_DECIDE = 78  # start.sh's exit code where a person must
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
SECONDS = 30.0


@dataclass
class Started:
    """start.sh, as it was started."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]
    output: Path
    _code: int | None = field(default=None, repr=False)

    @property
    def address(self) -> BrokerAddress:
        return BrokerAddress("127.0.0.1", self.port)

    def said(self) -> str:
        """What it, and its server, have said."""
        return self.output.read_text(errors="replace")

    def words(self) -> str:
        """What it has said itself."""
        lines = self.said().splitlines()
        return "\n".join(x for x in lines if x.startswith(("start.sh:", "    ", "NOT STARTED", "Cut ", "The files in")))

    def is_ready(self) -> bool:
        return "start.sh: ready" in self.said()

    def wait_until_ready(self) -> "Started":
        """Returns itself. Raises AssertionError, with its words, if it ends instead."""
        deadline = time.monotonic() + SECONDS
        while not self.is_ready():
            assert self.process.poll() is None, f"start.sh ended with {self.process.returncode}:\n{self.said()}"
            assert time.monotonic() < deadline, f"start.sh was not ready in time:\n{self.said()}"
            time.sleep(0.01)
        return self

    def code(self) -> int:
        """Its exit code, once it has ended by itself."""
        return self.process.wait(SECONDS)

    def server_pid(self) -> int:
        """Its server's process id."""
        with contextlib.closing(self.connect()) as connection:
            return int(connection.info("server")["process_id"])

    def connect(self) -> redis.Redis:
        return redis.Redis(host="127.0.0.1", port=self.port, socket_timeout=10.0)

    def end(self) -> int:
        """SIGTERM, as the kubelet sends it; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise

    def kill(self) -> int:
        """Kill -9 of its server, as the kernel does when memory runs out; start.sh's exit code."""
        os.kill(self.server_pid(), signal.SIGKILL)
        return self.process.wait(SECONDS)


def library_file(folder: Path, text: str | None = None) -> Path:
    """The library as the image holds it, in a file of `folder`."""
    path = folder / "library.lua"
    path.write_text(library_text() if text is None else text, encoding="utf-8")
    return path


@contextlib.contextmanager
def started(
    folder: Path,
    library: Path,
    *arguments: str,
    server: str | None = None,
    port: int | None = None,
    user: int | None = None,
    settings: Mapping[str, str] = NOTHING,
) -> Iterator[Started]:
    """start.sh over `folder`, ended at the end of the `with` block; `settings` are more of its PQ_ variables."""
    port = port or free_port()
    output = library.with_name(f"said-{port}.log")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PQ_")}
    environment |= {"PQ_DIR": str(folder), "PQ_PORT": str(port), "PQ_LIBRARY": str(library), "PQ_MAXMEMORY": "256mb"}
    environment |= {"PQ_SERVER": server or redis_server_path(), **settings}
    with output.open("wb") as file:
        process = subprocess.Popen(
            [str(IMAGE / "start.sh"), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
    one = Started(folder, port, process, output)
    try:
        yield one
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            one.end()


def digests(folder: Path) -> dict[str, str]:
    """Every file of a folder that holds messages, by its digest: what a refusal must not have changed."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock"
    }
