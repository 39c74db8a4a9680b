"""The gateway's program at its door: policies and certificates in folders, several processes, and its end."""

import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from harness import gateway_process
from harness.gateway_process import Gateway, running
from harness.own_certificate import write_certificate
from harness.pq_command import is_alive

AMQP = b"AMQP\x03\x01\x00\x00"
POLICY = {"name": "root", "primaryKey": "a-key-of-some-length", "rights": ["Manage"]}


@pytest.fixture
def told(tmp_path: Path) -> dict[str, str]:
    """Queues, none of them, and a policy."""
    (tmp_path / "queues").mkdir()
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/root.yaml").write_text(yaml.safe_dump(POLICY))
    return {
        "PQ_GATEWAY_FOLDER": str(tmp_path / "queues"),
        "PQ_GATEWAY_POLICIES": str(tmp_path / "policies"),
        "PQ_GATEWAY_ANONYMOUS": "",
    }


def greeted(port: int, context: ssl.SSLContext | None = None) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
        one = context.wrap_socket(plain, server_hostname="127.0.0.1") if context is not None else plain
        with one:
            one.sendall(AMQP)
            try:
                return one.recv(8)
            except ConnectionResetError:
                return b""


def port_of(gateway: Gateway, name: str) -> int:
    (line,) = [line for line in gateway.said().splitlines() if f" {name}: listening on port " in line]
    return int(line.rpartition(" ")[2])


def children(gateway: Gateway) -> list[int]:
    pid = gateway.process.pid
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_every_port_serves_what_its_name_says_and_policies_are_in_force(tmp_path: Path, told: dict[str, str]) -> None:
    chain = write_certificate(tmp_path / "tls")
    ports = dict.fromkeys(("PQ_GATEWAY_AMQP_PORT", "PQ_GATEWAY_AMQPS_PORT", "PQ_GATEWAY_HTTPS_PORT"), "0")
    with running(tmp_path, **told, **ports, PQ_GATEWAY_TLS=str(chain.parent)) as gateway:
        gateway.wait_ready()
        trusting = ssl.create_default_context(cafile=str(chain))
        for name in ("HTTP", "AMQP"):
            assert greeted(port_of(gateway, name)) == AMQP
            assert greeted(port_of(gateway, name), trusting) == AMQP
        for name in ("AMQP over TLS", "HTTPS"):
            assert greeted(port_of(gateway, name), trusting) == AMQP
            assert greeted(port_of(gateway, name)) == b""
            # What asks for no login is answered on the port for operations alone.
            url = f"https://127.0.0.1:{port_of(gateway, name)}/api/v1/queues"
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(url, context=trusting, timeout=20)
        (tmp_path / "policies/more.yaml").write_text(yaml.safe_dump({**POLICY, "name": "more"}))
        gateway.until(lambda: "access policies: read again" in gateway.said())
    assert str(POLICY["primaryKey"]) not in gateway.said()


def test_a_policy_that_cannot_be_right_is_refused_at_the_start(tmp_path: Path, told: dict[str, str]) -> None:
    (tmp_path / "policies/root.yaml").write_text(yaml.safe_dump({**POLICY, "rights": ["Everything"]}))
    done = subprocess.run(
        [sys.executable, "-m", "partitionedqueue_gateway"],
        env={**os.environ, **told, "PQ_GATEWAY_PORT": "0", "PQ_GATEWAY_AMQP_PORT": "off"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "root.yaml: rights must be a list of Manage, Send, Listen" in done.stderr
    assert "Traceback" not in done.stderr


def test_several_processes_share_the_ports_one_that_dies_is_replaced_and_all_end_together(
    tmp_path: Path, told: dict[str, str]
) -> None:
    with running(tmp_path, **told, PQ_GATEWAY_PROCESSES="3", PQ_GATEWAY_AMQP_PORT="0") as gateway:
        gateway.until(lambda: gateway.said().count(" AMQP: listening on port ") == 3)
        ports = {line.rpartition(" ")[2] for line in gateway.said().splitlines() if " AMQP: listening" in line}
        assert len(ports) == 1
        gateway.wait_ready()
        before = children(gateway)
        assert len(before) == 3
        os.kill(before[0], signal.SIGKILL)
        gateway.until(lambda: gateway.said().count(" AMQP: listening on port ") == 4)
        after = children(gateway)
        assert len(after) == 3
        assert before[0] not in after
        for _ in range(30):
            assert greeted(int(*ports)) == AMQP
            assert gateway.get("/healthz")[0] == 200
    assert not any(map(is_alive, after))


def test_processes_end_with_the_one_that_started_them(tmp_path: Path, told: dict[str, str]) -> None:
    gateway = gateway_process.start(tmp_path, **told, PQ_GATEWAY_PROCESSES="2")
    gateway.until(lambda: gateway.said().count("listening on port") == 2)
    ours = children(gateway)
    gateway.process.kill()
    gateway.process.wait(20)
    deadline = time.monotonic() + 30
    while any(map(is_alive, ours)):
        assert time.monotonic() < deadline, "they outlived it"
        time.sleep(0.05)


def test_a_second_signal_ends_several_processes_at_once(tmp_path: Path, told: dict[str, str]) -> None:
    told["PQ_GATEWAY_DRAIN_SECONDS"] = "60"
    gateway = gateway_process.start(tmp_path, **told, PQ_GATEWAY_PROCESSES="2")
    gateway.until(lambda: gateway.said().count("listening on port") == 2)
    ours = children(gateway)
    gateway.process.send_signal(signal.SIGTERM)
    gateway.until(lambda: gateway.said().count("ending: /readyz says no") == 2)
    gateway.process.send_signal(signal.SIGTERM)
    assert gateway.process.wait(20) == 1
    assert not any(map(is_alive, ours))


def test_an_environment_that_no_process_can_do_with_ends_them_all(tmp_path: Path, told: dict[str, str]) -> None:
    (tmp_path / "policies/root.yaml").write_text("[]")
    done = subprocess.run(
        [sys.executable, "-m", "partitionedqueue_gateway"],
        env={**os.environ, **told, "PQ_GATEWAY_PORT": "0", "PQ_GATEWAY_AMQP_PORT": "off", "PQ_GATEWAY_PROCESSES": "2"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "root.yaml: write a policy as a mapping" in done.stderr
    assert "Traceback" not in done.stderr


def test_while_it_drains_new_clients_come_in_and_then_those_who_are_there_are_sent_away(
    tmp_path: Path, told: dict[str, str]
) -> None:
    with running(tmp_path, **told, PQ_GATEWAY_DRAIN_SECONDS="2") as gateway:
        gateway.wait_ready()
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as there:
            there.sendall(AMQP)
            assert there.recv(8) == AMQP
            ended = list[float]()

            def read_to_the_end() -> None:
                while there.recv(4096):
                    pass
                ended.append(time.monotonic())

            reading = threading.Thread(target=read_to_the_end)
            reading.start()
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            gateway.until(lambda: gateway.get("/readyz")[0] == 503, seconds=2)
            assert greeted(gateway.port) == AMQP
            reading.join(30)
            assert ended[0] - began >= 2.0
            assert gateway.process.wait(30) == 0
