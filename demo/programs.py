"""The two programs that the demo starts: the embedded namespace and Spark's job. It ends both, whatever happens."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from partitionedqueue.model.placement import BrokerAddress

ROOT = Path(__file__).resolve().parent.parent
STOP_S_MAX = 30.0
LOG_LINES_SHOWN = 25


class DemoFailed(Exception):
    """One clear sentence about what did not come out as it must."""


class Program:
    """A child process in a session of its own: its output is read line by line, its errors go to a log file."""

    def __init__(
        self, name: str, arguments: list[str], *, log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._arguments = arguments
        self._environment = dict(environment or {})
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        """Start it."""
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *self._arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env={**os.environ, **self._environment},
                cwd=self._log.parent,
                start_new_session=True,
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        """End it if it still runs: a request first, then by force, its whole family."""
        process = self._running()
        try:
            with suppress(DemoFailed):
                await self.stop()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "used outside its `async with`"
        return self._process

    async def next_line(self) -> str | None:
        """The next line of its output, or None once it has closed it."""
        stdout = self._running().stdout
        assert stdout is not None
        line = await stdout.readline()
        return line.decode(errors="replace").rstrip("\n") if line else None

    async def stop(self) -> None:
        """Ask it to stop with SIGTERM and wait.

        Raises:
            DemoFailed: it has not stopped in STOP_S_MAX, or it had ended with an error.
        """
        process = self._running()
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_S_MAX):
                while await self.next_line() is not None:
                    pass  # a full pipe must not keep it from ending
                status = await process.wait()
        except TimeoutError:
            raise DemoFailed(f"{self.name} did not stop within {STOP_S_MAX:.0f} s.") from None
        if status not in (0, -signal.SIGTERM):
            raise self.failure(f"ended with status {status}")

    def failure(self, what: str) -> DemoFailed:
        """What happened to it, with the end of its log."""
        lines = self._log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
        return DemoFailed("\n".join([f"{self.name} {what}. The end of its log:", *(f"  | {line}" for line in lines)]))


class Namespace(Program):
    """`pq up`: the brokers of one manifest on this machine."""

    def __init__(self, manifest: Path, queue: str, data_folder: Path, *, log: Path) -> None:
        arguments = ["-m", "partitionedqueue_cli", "up", "-f", str(manifest), "--data-dir", str(data_folder)]
        super().__init__("The namespace", arguments, log=log)
        self._queue = queue
        self._folder = data_folder

    async def ready(self) -> None:
        """Wait until all its brokers answer.

        Raises:
            DemoFailed: it ended instead.
        """
        while (line := await self.next_line()) is not None:
            if line.startswith("Ready"):
                return
        raise self.failure("did not come up")

    async def watch(self) -> None:
        """Wait until it ends, which it must not do before it is asked to.

        Raises:
            DemoFailed: it has ended.
        """
        while await self.next_line() is not None:
            pass
        raise self.failure("ended while it was needed")

    def brokers(self) -> list[BrokerAddress]:
        """Where each partition's broker listens, in partition order."""
        return [BrokerAddress("127.0.0.1", int(broker["port"])) for broker in self._recorded()]

    def pids(self) -> list[int]:
        """Each broker's process, in partition order; another one after a restart, 0 while there is none."""
        return [int(broker["pid"]) for broker in self._recorded()]

    def _recorded(self) -> list[Any]:
        record = json.loads((self._folder / "namespace.json").read_text(encoding="utf-8"))
        brokers: list[Any] = record["queues"][self._queue]["brokers"]
        return brokers

    async def __aexit__(self, *reason: object) -> None:
        """End it, and should it have died without its brokers, end those as well."""
        try:
            await super().__aexit__(*reason)
        finally:
            with suppress(OSError, ValueError, KeyError):
                for pid in self.pids():
                    self._kill_broker_left_behind(pid)

    def _kill_broker_left_behind(self, pid: int) -> None:
        with suppress(OSError):
            if pid and Path(f"/proc/{pid}/cwd").readlink().is_relative_to(self._folder):
                os.kill(pid, signal.SIGKILL)


class SparkJob(Program):
    """The streaming job: it takes the queue's messages and leaves its tables as Parquet."""

    def __init__(self, arguments: list[str], *, log: Path, heap: str, master: str) -> None:
        script = ROOT / "spark-on-k8s" / "jobs" / "flights.py"
        environment = {
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": f"--master {master} --driver-memory {heap} pyspark-shell",
        }
        super().__init__("The Spark job", [str(script), *arguments], log=log, environment=environment)
        self.rows = 0
        self.busy_s = 0.0  # in its batches, without the start of the JVM

    async def follow(self) -> None:
        """Count what it reports until it ends.

        Raises:
            DemoFailed: it ended by itself.
        """
        while (line := await self.next_line()) is not None:
            if line.startswith("{"):
                batch = json.loads(line)
                self.rows = int(batch["rows_total"])
                self.busy_s += batch["rows"] / batch["rows_per_second"]
        raise self.failure("ended before its work was done")
