"""A gateway as it runs in a pod: a process with an environment, asked over HTTP, ended by process id."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from harness.redis_servers import Broker

START_SECONDS = 60.0
END_SECONDS = 60.0
LISTENING = re.compile(r"HTTP: listening on port (\d+)")


def manifest(
    name: str, brokers: Sequence[Broker] = (), *, namespace: str = "default", **spec: object
) -> dict[str, Any]:
    """A queue for a folder of manifests, over brokers that listen here."""
    addresses = ",".join(str(broker.address) for broker in brokers)
    return {
        "apiVersion": "messaging.partitionedqueue.io/v1alpha1",
        "kind": "PartitionedQueue",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {"messaging.partitionedqueue.io/brokers": addresses},
        },
        "spec": {"enablePartitioning": True, **spec},
    }


def write(path: Path, *manifests: Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump_all(list(manifests)))
    return path


@dataclass
class Gateway:
    """One that runs."""

    process: subprocess.Popen[bytes]
    log: Path
    port: int = 0

    def get(self, path: str) -> tuple[int, str]:
        """Status and body."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def json(self, path: str) -> Any:
        """What a path answers, which must be 200."""
        status, body = self.get(path)
        assert status == 200, body
        return json.loads(body)

    def queue(self, name: str, namespace: str = "default") -> dict[str, Any]:
        """One queue, with its partitions."""
        found: dict[str, Any] = self.json(f"/api/v1/namespaces/{namespace}/queues/{name}")
        return found

    def said(self) -> str:
        return self.log.read_text()

    def until(self, what: Callable[[], bool], *, seconds: float = 30.0) -> float:
        """Wait until something is so; gives how long that took."""
        began = time.monotonic()
        while not what():
            assert time.monotonic() - began < seconds, self.said()
            assert self.process.poll() is None, self.said()
            time.sleep(0.05)
        return time.monotonic() - began

    def wait_ready(self) -> None:
        self.until(lambda: self.get("/readyz")[0] == 200, seconds=START_SECONDS)


@contextmanager
def running(folder: Path, *, command: Sequence[str] = (), **environment: str) -> Iterator[Gateway]:
    """A gateway for a `with` block; it must end in good order. `command` goes before Python, `folder` has its log."""
    gateway = start(folder, command=command, **environment)
    try:
        yield gateway
    finally:
        end(gateway)
    assert gateway.process.returncode == 0, gateway.said()
    assert "Traceback" not in gateway.said()


def start(folder: Path, *, command: Sequence[str] = (), **environment: str) -> Gateway:
    log = folder / "gateway.log"
    told = {
        "PQ_GATEWAY_BIND": "127.0.0.1",
        "PQ_GATEWAY_PORT": "0",
        "PQ_GATEWAY_AMQP_PORT": "off",
        "PQ_GATEWAY_ANONYMOUS": "true",
        "PQ_GATEWAY_DRAIN_SECONDS": "0",
        **environment,
    }
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*command, sys.executable, "-W", "error", "-m", "partitionedqueue_gateway"],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env={**os.environ, **told},
        )
    gateway = Gateway(process, log)
    try:
        gateway.until(lambda: LISTENING.search(gateway.said()) is not None, seconds=START_SECONDS)
    except BaseException:
        end(gateway)
        raise
    found = LISTENING.search(gateway.said())
    assert found is not None
    gateway.port = int(found[1])
    return gateway


def end(gateway: Gateway) -> None:
    if gateway.process.poll() is None:
        gateway.process.send_signal(signal.SIGTERM)
    try:
        gateway.process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        gateway.process.kill()
        gateway.process.wait(END_SECONDS)
        raise
