"""The gateway of an embedded namespace: a child process on one loopback port, for every protocol that SDKs speak.

DIR/_gateway/policies/root.yaml   the root policy with its key; no queue can be called _gateway
DIR/_gateway/queues/queues.yaml   the queues that are up and where their brokers listen, as the gateway reads them
DIR/_gateway/requests/            what it asks for: queues to be made, changed, deleted
DIR/_gateway/gateway.log          what it says; one older log is kept
"""

import asyncio
import contextlib
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from partitionedqueue.model import entity_name
from partitionedqueue.model.entity_name import shown_name
from partitionedqueue_cli import access_key, children, limits, namespace
from partitionedqueue_cli.failures import GatewayDidNotStart
from partitionedqueue_cli.namespace import LOOPBACK, Namespace, QueueRecord

if TYPE_CHECKING:
    from partitionedqueue_cli.supervisor import Supervisor

BROKERS_ANNOTATION: Final = "messaging.partitionedqueue.io/brokers"
CREATED_ANNOTATION: Final = "messaging.partitionedqueue.io/created-ms"
UPDATED_ANNOTATION: Final = "messaging.partitionedqueue.io/updated-ms"
_PORT_TAKEN: Final = "(PQ_GATEWAY_PORT): Address already in use"
_STAMP: Final = re.compile(r"^[-0-9]+ [:0-9,]+ [A-Z]+ ")
"""What a line of the gateway's log begins with: when, and how bad it is."""
_DEFAULTS: Final = {
    # One port for everything; and nobody waits for a Service to leave it out.
    **dict.fromkeys(("PQ_GATEWAY_AMQP_PORT", "PQ_GATEWAY_AMQPS_PORT", "PQ_GATEWAY_HTTPS_PORT"), "off"),
    "PQ_GATEWAY_BIND": LOOPBACK,
    "PQ_GATEWAY_DRAIN_SECONDS": "0",
}


def is_installed() -> bool:
    """Whether what the gateway needs is there: `pip install partitionedqueue` alone does not bring it."""
    return all(importlib.util.find_spec(name) is not None for name in ("aiohttp", "partitionedqueue_gateway"))


class GatewayKeeper:
    """Starts the gateway, tells it where the brokers are, and starts it again whenever it ends."""

    def __init__(self, supervisor: "Supervisor") -> None:
        self._supervisor = supervisor
        self._namespace: Namespace = supervisor.namespace
        self._record = supervisor.namespace.gateway
        self._folder = supervisor.namespace.gateway_folder
        self._process: subprocess.Popen[bytes] | None = None
        self._told = ""

    def begin(self) -> None:
        """Start the process while brokers are starting; it serves once it is told of them. Raises GatewayDidNotStart.

        The folder of its queues is away until then, so that it is not ready.
        """
        try:
            for folder in (self._queues, self.requests):
                shutil.rmtree(folder, ignore_errors=True)
            access_key.ensure(self._namespace.policies_folder)
            self.requests.mkdir()
            self._start()
        except OSError as error:
            raise GatewayDidNotStart(f"the gateway cannot be started: {error}") from error

    async def serve(self) -> None:
        """Tell it where the brokers are, and wait until it serves. Raises GatewayDidNotStart."""
        self.tell()
        for _ in range(limits.PORTS_TRIED_MAX):
            if await self._is_up():
                self._record.pid = self._running.pid
                return
            if _PORT_TAKEN not in self._said():
                raise GatewayDidNotStart(f"the gateway {_how_it_ended(self._running)}: {self._last_words()}")
            self._record.port = 0
            self._start()
        raise GatewayDidNotStart(f"the gateway lost {limits.PORTS_TRIED_MAX} ports to other programs")

    def tell(self) -> None:
        """Write down where the brokers listen, where that has changed; the gateway looks there by itself."""
        manifests = [_with_brokers(queue) for queue in self._namespace.queues.values() if queue.up]
        words = yaml.safe_dump_all(manifests)
        if words == self._told:
            return
        if self._queues.exists():
            namespace.write_whole(self._queues / "queues.yaml", words)
        else:
            beside = self._queues.with_name("queues.new")
            beside.mkdir(exist_ok=True)
            namespace.write_whole(beside / "queues.yaml", words)
            beside.rename(self._queues)
        self._told = words

    async def keep(self) -> None:
        """Start it again whenever it ends; returns only when it ends too often."""
        loop, restarts = asyncio.get_running_loop(), 0
        while restarts < limits.RESTARTS_IN_A_ROW_MAX:
            began_s = loop.time()
            await self._supervisor.child_ends.of(self._running)
            self._record.pid = 0
            if loop.time() - began_s > limits.STEADY_SECONDS:
                restarts = 0
            restarts += 1
            how = f"the gateway (process {self._running.pid}) {_how_it_ended(self._running)}"
            self._supervisor.say(f"{how}; starting it again")
            if restarts > 1:
                delay = limits.RESTART_DELAY_SECONDS_FIRST * 2 ** (restarts - 2)
                await asyncio.sleep(min(delay, limits.RESTART_DELAY_SECONDS_MAX))
            try:
                self._start()
                await self.serve()
            except (GatewayDidNotStart, OSError) as error:
                self._supervisor.say(f"{error}")
                continue
            self._namespace.save()
            self._supervisor.say(f"the gateway is back (process {self._running.pid}, {LOOPBACK}:{self._record.port})")
        self._supervisor.say("the gateway is given up; the brokers go on")

    async def stop(self) -> None:
        """End it in good order, by force if it takes too long."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(limits.GATEWAY_STOP_SECONDS_MAX):
                await self._supervisor.child_ends.of(process)
        except TimeoutError:
            process.kill()
            process.wait(limits.STOP_SECONDS_MAX)
        self._record.pid = 0

    @property
    def requests(self) -> Path:
        """Where it asks for what only the supervisor can do."""
        return self._folder / "requests"

    @property
    def _queues(self) -> Path:
        return self._folder / "queues"

    @property
    def _log(self) -> Path:
        return self._folder / "gateway.log"

    @property
    def _running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None
        return self._process

    def _start(self) -> None:
        if not self._record.port or not _is_free(self._record.port):
            self._record.port = self._supervisor.free_port()
        if self._log.exists():
            self._log.replace(self._log.with_suffix(".log.1"))
        told = {
            "PQ_GATEWAY_PORT": str(self._record.port),
            "PQ_GATEWAY_FOLDER": str(self._queues),
            "PQ_GATEWAY_REQUESTS": str(self.requests),
            "PQ_GATEWAY_POLICIES": str(self._namespace.policies_folder),
        }
        command = [sys.executable, "-m", "partitionedqueue_gateway"]
        if tls := os.environ.get("PQ_GATEWAY_TLS"):
            told["PQ_GATEWAY_TLS"] = str(Path(tls).absolute())  # it begins in another folder than the user
        environment = {**_DEFAULTS, **os.environ, **told}
        with self._log.open("wb") as log:
            self._process = children.start(command, folder=self._folder, output=log, environment=environment)
        self._record.pid = self._process.pid

    async def _is_up(self) -> bool:
        """Whether it serves, within `limits.GATEWAY_START_SECONDS_MAX`; no: it has ended. Raises GatewayDidNotStart."""
        try:
            async with asyncio.timeout(limits.GATEWAY_START_SECONDS_MAX):
                while self._running.poll() is None:
                    if await says_ready(self._record.port):
                        return True
                    await asyncio.sleep(limits.READY_POLL_SECONDS)
        except TimeoutError:
            seconds = limits.GATEWAY_START_SECONDS_MAX
            raise GatewayDidNotStart(f"the gateway is not ready after {seconds:g} s: {self._last_words()}") from None
        return False

    def _said(self) -> str:
        with self._log.open("rb") as log:
            return log.read(limits.LOG_BYTES_MAX).decode(errors="replace")

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._said().splitlines() if line.strip()]
        return _STAMP.sub("", lines[-1]) if lines else "it said nothing"


def _is_free(port: int) -> bool:
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what has ended just now is no hindrance
        probe.bind((LOOPBACK, port))
        return True
    return False


async def says_ready(port: int, *, within_s: float = limits.GATEWAY_ANSWER_SECONDS_MAX) -> bool:
    """Whether a gateway on a loopback port says that it serves."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):  # a TimeoutError too
        async with asyncio.timeout(within_s):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                return await reader.readuntil(b"\r\n") == b"HTTP/1.1 200 OK\r\n"
            finally:
                writer.transport.abort()
    return False


def _with_brokers(queue: QueueRecord) -> dict[str, Any]:
    """A queue as the gateway's folder has it: in this namespace, which is the only one, with its brokers."""
    metadata = queue.manifest["metadata"]
    annotations = {BROKERS_ANNOTATION: ",".join(map(str, queue.addresses()))}
    if queue.created_ms:
        annotations[CREATED_ANNOTATION] = str(queue.created_ms)
        annotations[UPDATED_ANNOTATION] = str(queue.updated_ms)
    if (shown := shown_name(metadata)) != metadata["name"]:
        annotations[entity_name.ANNOTATION] = shown
    return {**queue.manifest, "metadata": {"name": metadata["name"], "annotations": annotations}}


def _how_it_ended(process: "subprocess.Popen[bytes]") -> str:
    code = process.returncode
    return f"was ended by {signal.Signals(-code).name}" if code is not None and code < 0 else f"ended with code {code}"
