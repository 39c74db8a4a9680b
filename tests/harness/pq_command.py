"""The `pq` command as a person runs it: a process, a folder, and nothing left running."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

READY_SECONDS = 60.0
END_SECONDS = 60.0


def manifest(name: str = "letters", *, size_gb: int = 1, partitioned: bool = True, **spec: object) -> dict[str, Any]:
    """A PartitionedQueue manifest."""
    return {
        "apiVersion": "messaging.partitionedqueue.io/v1alpha1",
        "kind": "PartitionedQueue",
        "metadata": {"name": name},
        "spec": {"enablePartitioning": partitioned, "sizeGB": size_gb, **spec},
    }


def write(path: Path, *manifests: Mapping[str, Any]) -> Path:
    path.write_text(yaml.safe_dump_all(list(manifests)))
    return path


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_until(what: Any, *, seconds: float = 30.0, words: str = "that did not happen in time") -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, words
        time.sleep(0.02)


class Pq:
    """`pq` with one folder. `end()` leaves nothing running, however the test went."""

    def __init__(self, folder: Path, *, path: str | None = None) -> None:
        self.data = folder / "data"
        self.said = folder / "up.out"
        self.environment = {**os.environ, "PQ_DATA_DIR": str(self.data), "PYTHONWARNINGS": "error"}
        if path is not None:
            self.environment["PATH"] = path
        self._supervisors: list[subprocess.Popen[bytes]] = []

    def __call__(self, *words: str | Path, given: str = "", seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        return subprocess.run(
            self.command(*words),
            input=given,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            env=self.environment,
        )

    def done(self, *words: str | Path, given: str = "") -> str:
        """Run one command that must succeed; what it printed."""
        result = self(*words, given=given)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def up(self, file: Path, *, seconds: float = READY_SECONDS) -> subprocess.Popen[bytes]:
        """Start `pq up` and wait for its word that it is ready."""
        with self.said.open("wb") as said:
            process = subprocess.Popen(
                self.command("up", "-f", file),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=self.environment,
            )
        self._supervisors.append(process)
        wait_until(
            lambda: "Ready: " in self.said.read_text() or process.poll() is not None,
            seconds=seconds,
            words=self.said.read_text(),
        )
        assert process.poll() is None, self.said.read_text()
        return process

    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.data / "namespace.json").read_text())
        return found

    def pids(self, queue: str = "letters") -> list[int]:
        """The redis-servers, in partition order."""
        return [broker["pid"] for broker in self.record()["queues"][queue]["brokers"]]

    def status(self) -> dict[str, Any]:
        """The first queue's status."""
        found: dict[str, Any] = json.loads(self("status", "--json").stdout)[0]
        return found

    def end(self) -> None:
        for process in self._supervisors:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(END_SECONDS)

    def command(self, *words: str | Path) -> list[str]:
        return [sys.executable, "-m", "partitionedqueue_cli", *map(str, words)]
