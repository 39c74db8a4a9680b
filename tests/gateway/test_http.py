"""Health, metrics and refusals, from a gateway's start to its end."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness import gateway_process
from harness.gateway_process import Gateway, manifest, running, write
from harness.redis_servers import Broker
from partitionedqueue_gateway import limits

SAMPLE = re.compile(r'[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.e+-]+')


def test_metrics_are_prometheus_text_with_each_partition(gateway: Gateway, brokers: list[Broker]) -> None:
    brokers[4].kill()
    body = ""

    def one_is_missing() -> bool:
        nonlocal body
        _, body = gateway.get("/metrics")
        return 'pq_queue_partitions_up{namespace="default",queue="letters"} 15' in body

    gateway.until(one_is_missing)
    assert body.endswith("\n")
    lines = body.splitlines()
    for line in lines:
        assert line.startswith("# ") or SAMPLE.fullmatch(line), line
    samples = [line.split(" ")[0] for line in lines if not line.startswith("#")]
    assert len(samples) == len(set(samples))
    assert 'pq_partition_up{namespace="default",queue="letters",partition="4"} 0' in lines
    assert 'pq_partition_up{namespace="default",queue="letters",partition="3"} 1' in lines
    assert not any(line.startswith("pq_partition_messages") and 'partition="4"' in line for line in lines)
    assert "pq_gateway_synced 1" in lines


def test_paths_that_were_made_up_make_no_series(gateway: Gateway) -> None:
    for number in range(20):
        assert gateway.get(f"/$made/up/{number}")[0] == 404
        assert gateway.get(f"/api/v1/namespaces/default/queues/made-up-{number}")[0] == 404
    _, body = gateway.get("/metrics")
    assert body.count("pq_gateway_http_requests_total{") <= 6
    assert 'pq_gateway_http_requests_total{route="none",status="404"} 20' in body
    assert "made" not in body


def test_refusals_are_json_in_words(gateway: Gateway) -> None:
    status, body = gateway.get("/api/v1/namespaces/default/queues/parcels")
    assert status == 404
    assert json.loads(body)["error"] == {
        "reason": "NoSuchQueue",
        "message": "this gateway knows no queue parcels in namespace default",
    }
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    connection.request("DELETE", "/api/v1/queues")
    answer = connection.getresponse()
    assert answer.status == 405
    assert json.loads(answer.read())["error"]["reason"] == "MethodNotAllowed"
    connection.close()


def test_queues_of_one_namespace_are_shown_alone(gateway: Gateway, queues: Path, brokers: list[Broker]) -> None:
    write(queues / "more.yaml", manifest("letters", brokers, namespace="shop"))
    gateway.until(lambda: len(gateway.json("/api/v1/queues")["queues"]) == 2)
    (only,) = gateway.json("/api/v1/namespaces/shop/queues")["queues"]
    assert only["namespace"] == "shop"


def test_it_is_not_ready_before_its_queues_are_known_and_says_why(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere"
    with running(tmp_path, PQ_GATEWAY_FOLDER=str(missing)) as gateway:
        gateway.until(lambda: "is no folder" in gateway.get("/readyz")[1])
        assert gateway.get("/readyz")[0] == 503
        assert gateway.get("/healthz")[0] == 200
        assert gateway.get("/api/v1/namespaces/default/queues/letters")[0] == 503
        missing.mkdir()
        gateway.wait_ready()


def test_a_file_that_makes_no_sense_changes_nothing(gateway: Gateway, queues: Path) -> None:
    write(queues / "letters.yaml", manifest("letters"))  # without its brokers
    gateway.until(lambda: "0 of 16 brokers" in gateway.said())
    assert gateway.queue("letters")["availability"] == "Available"
    assert gateway.get("/readyz")[0] == 200


def test_sigterm_turns_readiness_off_and_goes_on_answering_until_it_has_drained(
    tmp_path: Path, brokers: list[Broker]
) -> None:
    write(tmp_path / "queues" / "letters.yaml", manifest("letters", brokers))
    with running(tmp_path, PQ_GATEWAY_FOLDER=str(tmp_path / "queues"), PQ_GATEWAY_DRAIN_SECONDS="3") as gateway:
        gateway.wait_ready()
        began = time.monotonic()
        gateway.process.send_signal(signal.SIGTERM)
        gateway.until(lambda: gateway.get("/readyz") == (503, "this gateway is ending\n"), seconds=2)
        assert gateway.queue("letters")["availability"] == "Available"
        assert gateway.get("/healthz")[0] == 200
        assert gateway.process.wait(30) == 0
        assert 3.0 <= time.monotonic() - began < 3.0 + limits.END_S_MAX


def test_what_is_under_way_at_the_end_is_still_answered(tmp_path: Path, brokers: list[Broker]) -> None:
    write(tmp_path / "queues" / "letters.yaml", manifest("letters", brokers))
    gateway = gateway_process.start(tmp_path, PQ_GATEWAY_FOLDER=str(tmp_path / "queues"))
    try:
        gateway.wait_ready()
        brokers[0].pause()  # so that the answer takes a while
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
        connection.request("GET", "/api/v1/queues")
        time.sleep(0.3)
        gateway.process.send_signal(signal.SIGTERM)
        answer = connection.getresponse()
        assert answer.status == 200
        assert json.loads(answer.read())["queues"][0]["availability"] == "Limited"
        connection.close()
        assert gateway.process.wait(30) == 0
    finally:
        brokers[0].resume()
        gateway_process.end(gateway)


def test_of_too_many_connections_those_that_ask_for_nothing_make_room(gateway: Gateway) -> None:
    with ExitStack() as open_ones:
        silent = []
        for _ in range(limits.CONNECTIONS_MAX + 20):
            one = open_ones.enter_context(socket.create_connection(("127.0.0.1", gateway.port), timeout=20))
            one.sendall(b"G")  # of GET: who has said nothing yet is no client of HTTP's
            silent.append(one)
        for _ in range(3):
            assert gateway.get("/readyz")[0] == 200
        assert is_closed(silent[0])
    gateway.until(lambda: can_be_asked(gateway))


def is_closed(one: socket.socket) -> bool:
    try:
        return one.recv(1) == b""
    except ConnectionResetError:
        return True


def can_be_asked(gateway: Gateway) -> bool:
    try:
        return gateway.get("/healthz")[0] == 200
    except OSError:
        return False


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("PQ_GATEWAY_PORT", "eighty", "PQ_GATEWAY_PORT is 'eighty'; write a whole number from 0 to 65535, or off"),
        ("PQ_GATEWAY_ANONYMOUS", "yes", "PQ_GATEWAY_ANONYMOUS is 'yes'; write true or false"),
        ("PQ_GATEWAY_FOLDER", ".", "PQ_GATEWAY_POLICIES names no folder with access policies"),
        ("PQ_WATCH_NAMESPACES", "shop, Not_A_Name", "PQ_WATCH_NAMESPACES has 'Not_A_Name'"),
        ("KUBECONFIG", "missing", "no cluster is known"),
    ],
)
def test_a_setting_that_cannot_be_right_is_refused_in_words(name: str, value: str, words: str, tmp_path: Path) -> None:
    done = run_to_its_end(tmp_path, **{name: value})
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_said_in_words(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        folder = str(tmp_path)
        told = {"PQ_GATEWAY_BIND": "127.0.0.1", "PQ_GATEWAY_FOLDER": folder, "PQ_GATEWAY_ANONYMOUS": "true"}
        done = run_to_its_end(tmp_path, **told, PQ_GATEWAY_PORT=port)
    assert done.returncode == 1
    assert "cannot serve: " in done.stderr
    assert "Traceback" not in done.stderr


def run_to_its_end(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "partitionedqueue_gateway"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=60,
        check=False,
    )
