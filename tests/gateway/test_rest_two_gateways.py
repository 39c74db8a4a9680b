"""Two gateway processes over the same brokers: one ends or is killed, and callers go on at the other."""

import http.client
import itertools
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from harness import gateway_process
from harness.entities_in_use import configure
from harness.gateway_process import Gateway, manifest, write
from harness.redis_servers import Broker
from partitionedqueue.model.queue_spec import QueueSpec

LOCK_S = 10
SPEC = QueueSpec(name="letters", enable_partitioning=True, lock_duration_ms=LOCK_S * 1000)


class Caller:
    """Asks the first gateway as long as it answers, then the other one; keeps its connection."""

    def __init__(self, *gateways: Gateway) -> None:
        self._ports = [gateway.port for gateway in gateways]
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, http.client.HTTPMessage, bytes]:
        while True:
            if self._connection is None:
                self._connection = http.client.HTTPConnection("127.0.0.1", self._ports[0], timeout=60)
            try:
                self._connection.request(method, path, body or None)
                answer = self._connection.getresponse()
                return answer.status, answer.headers, answer.read()
            except OSError:
                self.close()
                if len(self._ports) == 1:
                    raise
                self._ports.pop(0)

    def lock(self, within: int = 4 * LOCK_S) -> tuple[str, dict[str, Any]]:
        """Where the next message is settled, and what is known of it."""
        status, headers, _ = self.ask("POST", f"/letters/messages/head?timeout={within}")
        assert status == 201
        return "/" + headers["Location"].split("/", 3)[3], json.loads(headers["BrokerProperties"])

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@pytest.fixture
def two(tmp_path: Path, brokers: list[Broker]) -> Iterator[tuple[Gateway, Gateway]]:
    configure(brokers, SPEC)
    write(tmp_path / "queues" / "letters.yaml", manifest("letters", brokers, lockDuration=f"PT{LOCK_S}S"))
    with ExitStack() as stack:
        found = []
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            one = gateway_process.start(tmp_path / name, PQ_GATEWAY_FOLDER=str(tmp_path / "queues"))
            stack.callback(gateway_process.end, one)
            found.append(one)
        for one in found:
            one.wait_ready()
        yield found[0], found[1]


def test_a_killed_gateway_takes_nothing_with_it(two: tuple[Gateway, Gateway]) -> None:
    with closing(Caller(*two)) as caller:
        _kill_one_of(two, caller)


def _kill_one_of(two: tuple[Gateway, Gateway], caller: Caller) -> None:
    for _ in range(4):
        assert caller.ask("POST", "/letters/messages", b"hello")[0] == 201
    held = [caller.lock() for _ in range(4)]
    two[0].process.kill()
    two[0].process.wait(30)
    for path, _ in held[:2]:
        assert caller.ask("DELETE", path)[0] == 200
    assert caller.ask("PUT", held[2][0])[0] == 200
    again = set()
    for _ in range(2):  # what was abandoned at once, the other one when its lock has run out
        path, told = caller.lock()
        assert told["DeliveryCount"] == 2
        assert caller.ask("DELETE", path)[0] == 200
        again.add(told["SequenceNumber"])
    assert again == {told["SequenceNumber"] for _, told in held[2:]}
    assert caller.ask("POST", held[3][0])[0] == 404
    assert caller.ask("POST", "/letters/messages/head?timeout=0")[0] == 204


def test_what_is_answered_while_a_gateway_is_killed_is_true(two: tuple[Gateway, Gateway]) -> None:
    sent: set[str] = set()
    enough = threading.Event()

    def send(sender: int) -> None:
        with closing(Caller(*two)) as caller:
            for number in itertools.count():
                body = f"{sender}-{number}"
                if caller.ask("POST", "/letters/messages?timeout=20", body.encode())[0] == 201:
                    sent.add(body)
                if enough.is_set():
                    return

    senders = [threading.Thread(target=send, args=(number,)) for number in range(3)]
    for one in senders:
        one.start()
    try:
        two[1].until(lambda: len(sent) > 50)
        two[0].process.kill()
        before = len(sent)
        two[1].until(lambda: len(sent) > before + 50)
    finally:
        enough.set()
        for one in senders:
            one.join(60)
    received = []
    with closing(Caller(two[1])) as caller:
        while (answer := caller.ask("DELETE", "/letters/messages/head?timeout=1"))[0] == 200:
            received.append(answer[2].decode())
    assert sent <= set(received)
    assert len(received) - len(sent) <= len(senders)  # sends that were stored, and whose answers were lost


def test_who_waits_at_a_gateway_that_ends_is_let_go(brokers: list[Broker], tmp_path: Path) -> None:
    write(tmp_path / "queues" / "letters.yaml", manifest("letters", brokers))
    with (
        gateway_process.running(
            tmp_path, PQ_GATEWAY_FOLDER=str(tmp_path / "queues"), PQ_GATEWAY_DRAIN_SECONDS="1"
        ) as gateway,
        ExitStack() as stack,
    ):
        gateway.wait_ready()
        waiting = [http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60) for _ in range(3)]
        for one in waiting:
            stack.enter_context(closing(one))
            one.request("POST", "/letters/messages/head?timeout=60")
        gateway.process.send_signal(signal.SIGTERM)
        for one in waiting:
            answer = one.getresponse()
            assert (answer.status, answer.headers["Connection"]) == (204, "close")
        assert gateway.process.wait(60) == 0
