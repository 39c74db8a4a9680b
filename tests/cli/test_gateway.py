"""The gateway of an embedded namespace: there with `pq up`, gone with it, and open to who has its connection string."""

import os
import signal
import socket
import stat
import urllib.request
from pathlib import Path

import pytest

from harness.pq_command import Pq, is_alive, manifest, wait_until, write

AMQP_SASL = b"AMQP\x03\x01\x00\x00"


def parts(pq: Pq, *words: str) -> dict[str, str]:
    said = pq.done("connection-string", *words)
    assert said.count("\n") == 1
    return dict(part.split("=", 1) for part in said.strip().split(";"))


def port(pq: Pq) -> int:
    return int(parts(pq)["Endpoint"].removeprefix("sb://127.0.0.1:"))


def pid(pq: Pq) -> int:
    return int(pq.record()["gateway"]["pid"])


def speaks_amqp(on: int) -> bool:
    with socket.create_connection(("127.0.0.1", on), timeout=10) as one:
        one.sendall(AMQP_SASL)
        return one.recv(8) == AMQP_SASL


def test_up_prints_ready_once_the_gateway_serves_every_queue_on_one_port(pq: Pq, tmp_path: Path) -> None:
    pq.up(write(tmp_path / "two.yaml", manifest("one", partitioned=False), manifest("two", partitioned=False)))
    where = port(pq)
    wait_until(lambda: f"Ready: gateway for Azure's SDKs on 127.0.0.1:{where}" in pq.said.read_text())
    assert speaks_amqp(where)
    for name in ("one", "two"):
        path = f"http://127.0.0.1:{where}/api/v1/namespaces/default/queues/{name}"
        with urllib.request.urlopen(path, timeout=20) as answer:
            assert answer.status == 200
    assert f"The gateway on 127.0.0.1:{where} serves" in pq.done("status")


def test_the_connection_string_is_one_line_that_an_sdk_takes(pq: Pq, small: Path) -> None:
    pq.up(small)
    found = parts(pq)
    assert found["Endpoint"].startswith("sb://127.0.0.1:")
    assert found["SharedAccessKeyName"] == "RootManageSharedAccessKey"
    assert len(found["SharedAccessKey"]) == 44
    assert found["UseDevelopmentEmulator"] == "true"
    assert parts(pq, "letters") == {**found, "EntityPath": "letters"}
    unknown = pq("connection-string", "parcels")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "no queue parcels is running" in unknown.stderr


def test_without_a_namespace_there_is_no_connection_string(pq: Pq) -> None:
    nothing = pq("connection-string")
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert "nothing is running" in nothing.stderr


def test_key_and_port_are_made_once_and_nobody_else_may_read_the_key(pq: Pq, small: Path) -> None:
    pq.up(small)
    before = pq.done("connection-string")
    file = pq.data / "_gateway/policies/root.yaml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    pq.done("down")
    assert not is_alive(pid(pq))
    pq.up(small)
    assert pq.done("connection-string") == before
    key = parts(pq)["SharedAccessKey"]
    assert key not in pq.said.read_text()
    assert key not in (pq.data / "_gateway/gateway.log").read_text()
    for one in (pid(pq), pq.pids()[0]):
        assert key.encode() not in Path(f"/proc/{one}/cmdline").read_bytes()
        assert key.encode() not in Path(f"/proc/{one}/environ").read_bytes()


def test_a_gateway_that_is_killed_comes_back_on_its_port(pq: Pq, small: Path) -> None:
    pq.up(small)
    where, before = port(pq), pid(pq)
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: "the gateway is back" in pq.said.read_text(), words=pq.said.read_text())
    assert f"the gateway (process {before}) was ended by SIGKILL; starting it again" in pq.said.read_text()
    assert port(pq) == where
    assert pid(pq) != before
    assert speaks_amqp(where)


def test_status_says_that_the_gateway_does_not_answer(pq: Pq, small: Path) -> None:
    pq.up(small)
    os.kill(pid(pq), signal.SIGSTOP)
    try:
        result = pq("status", "--timeout", "1")
        assert result.returncode == 1
        assert "does not answer" in result.stdout
        assert "1/1" in result.stdout
    finally:
        os.kill(pid(pq), signal.SIGCONT)
    wait_until(lambda: pq("status").returncode == 0)


def test_a_supervisor_killed_with_minus_9_leaves_no_gateway_and_up_works_again(pq: Pq, small: Path) -> None:
    supervisor = pq.up(small)
    one = pid(pq)
    supervisor.kill()
    supervisor.wait(10)
    wait_until(lambda: not is_alive(one), words="the gateway outlived its supervisor")
    pq.up(small)
    assert speaks_amqp(port(pq))


def test_another_port_that_is_taken_is_named_at_once_and_the_own_one_stays(pq: Pq, small: Path) -> None:
    pq.up(small)
    where = port(pq)
    pq.end()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        pq.environment["PQ_GATEWAY_AMQP_PORT"] = str(taken.getsockname()[1])
        said = pq("up", "-f", small)
    number = pq.environment.pop("PQ_GATEWAY_AMQP_PORT")
    words = f"cannot serve: port {number} (PQ_GATEWAY_AMQP_PORT): Address already in use"
    assert said.returncode != 0
    assert said.stderr.strip().endswith(words)
    pq.up(small)
    assert port(pq) == where


def test_a_port_that_somebody_else_has_taken_is_left_to_them(pq: Pq, small: Path) -> None:
    pq.up(small)
    where = port(pq)
    pq.done("down")
    with socket.create_server(("127.0.0.1", where)):
        pq.up(small)
        assert port(pq) != where
        assert speaks_amqp(port(pq))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_who_is_connected_at_the_end_is_told_and_holds_nothing_up(pq: Pq, small: Path, how: signal.Signals) -> None:
    supervisor = pq.up(small)
    with socket.create_connection(("127.0.0.1", port(pq)), timeout=20) as one:
        one.sendall(AMQP_SASL)
        assert one.recv(8) == AMQP_SASL
        supervisor.send_signal(how)
        while one.recv(4096):
            pass
    assert supervisor.wait(30) == 0
    assert "Traceback" not in (pq.data / "_gateway/gateway.log").read_text()


def test_a_key_that_was_damaged_is_said_and_not_shown(pq: Pq, small: Path) -> None:
    pq.up(small)
    file = pq.data / "_gateway/policies/root.yaml"
    words = file.read_text()
    file.write_text(f"- {words}: {words}")
    refused = pq("connection-string")
    assert refused.returncode == 1
    assert "root.yaml is no access policy; remove it" in refused.stderr
    assert "primaryKey" not in refused.stderr
