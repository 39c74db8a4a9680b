import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from harness.pq_command import Pq, is_alive, manifest, wait_until, write


def test_data_and_ports_are_the_same_after_down_and_up(pq: Pq, letters: Path) -> None:
    first = pq.up(letters)
    pq.done("send", "letters", given="x\n" * 50)
    before = pq.done("brokers", "letters")
    assert "Stopped" in pq.done("down")
    assert first.wait(10) == 0
    pq.up(letters)
    assert pq.done("brokers", "letters") == before
    assert pq.status()["messages"] == 50


def test_starting_twice_is_harmless(pq: Pq, letters: Path) -> None:
    pq.up(letters)
    pids = pq.pids()
    again = pq("up", "-f", letters)
    assert again.returncode == 0
    assert again.stdout.startswith("Already up: queue letters in ")
    assert pq.pids() == pids
    assert all(map(is_alive, pids))


def test_down_leaves_nothing_running_and_twice_is_harmless(pq: Pq, letters: Path) -> None:
    pq.up(letters)
    pids = pq.pids()
    pq.done("down")
    assert not any(map(is_alive, pids))
    assert pq.done("down") == f"Nothing is running in {pq.data}\n"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_everything_in_good_order(pq: Pq, letters: Path, how: signal.Signals) -> None:
    supervisor = pq.up(letters)
    pids = pq.pids()
    supervisor.send_signal(how)
    assert supervisor.wait(30) == 0
    assert not any(map(is_alive, pids))


def test_a_broker_killed_with_minus_9_is_restarted_and_its_data_is_back(pq: Pq, letters: Path) -> None:
    pq.up(letters)
    pq.done("send", "letters", "--partition-key", "k", given="x\n" * 20)
    [partition] = [one["partition"] for one in pq.status()["partitions"] if one["messages"]]
    before = pq.pids()[partition]
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: "is back" in pq.said.read_text(), words=pq.said.read_text())
    assert (
        f"partition {partition} of queue letters: redis-server (process {before}) was ended by SIGKILL"
        in pq.said.read_text()
    )
    assert pq.status()["availability"] == "Available"
    assert pq.status()["partitions"][partition]["messages"] == 20
    assert pq.pids()[partition] not in (0, before)


def test_a_supervisor_killed_with_minus_9_leaves_nothing_running_and_up_works_again(pq: Pq, letters: Path) -> None:
    supervisor = pq.up(letters)
    pq.done("send", "letters", given="x\n" * 30)
    pids = pq.pids()
    supervisor.kill()
    supervisor.wait(10)
    wait_until(lambda: not any(map(is_alive, pids)), words="redis-servers outlived their supervisor")
    pq.up(letters)
    assert pq.status()["messages"] == 30


def test_a_port_that_somebody_else_has_taken_is_left_to_them(pq: Pq, small: Path) -> None:
    import socket

    pq.up(small)
    pq.done("send", "letters", "--body", "kept")
    port = int(pq.done("brokers", "letters").strip().rpartition(":")[2])
    pq.done("down")
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        pq.up(small)
        assert int(pq.done("brokers", "letters").strip().rpartition(":")[2]) != port
    assert pq.status()["messages"] == 1


def test_status_names_the_partition_that_does_not_answer(pq: Pq, letters: Path) -> None:
    pq.up(letters)
    pid = pq.pids()[5]
    os.kill(pid, signal.SIGSTOP)
    try:
        result = pq("status", "--timeout", "1")
        assert result.returncode == 1
        assert "15/16" in result.stdout
        assert "Limited" in result.stdout
        assert "letters: partition 5 does not answer" in result.stdout
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: pq.status()["availability"] == "Available")


def test_one_folder_holds_several_queues(pq: Pq, tmp_path: Path) -> None:
    file = write(tmp_path / "two.yaml", manifest("one", partitioned=False), manifest("two", partitioned=False))
    pq.up(file)
    pq.done("send", "two", "--body", "x")
    counts = {one["queue"]: one["messages"] for one in json.loads(pq.done("status", "--json"))}
    assert counts == {"one": 0, "two": 1}


def test_80_brokers_start(pq: Pq, tmp_path: Path) -> None:
    pq.up(write(tmp_path / "large.yaml", manifest(size_gb=5)), seconds=100)
    standing = pq.status()
    assert (standing["partitionsReady"], standing["partitionsTotal"]) == (80, 80)
    pids = pq.pids()
    pq.done("down")
    assert not any(map(is_alive, pids))


def test_up_while_a_down_is_under_way_never_leaves_two_brokers_on_one_file(pq: Pq, small: Path) -> None:
    first = pq.up(small)
    pid = pq.pids()[0]
    os.kill(pid, signal.SIGSTOP)  # it does not end when its supervisor is gone
    first.kill()
    first.wait(10)
    pq.up(small)
    assert not is_alive(pid)
    assert pq.status()["availability"] == "Available"


def test_a_namespace_that_was_ended_before_it_was_ready_says_so(pq: Pq, tmp_path: Path) -> None:
    file = write(tmp_path / "large.yaml", manifest(size_gb=5))
    process = subprocess.Popen(
        pq.command("up", "-f", file), env=pq.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_until((pq.data / "namespace.json").exists)
    time.sleep(0.05)
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGTERM, 1)
    if process.returncode == 1:
        assert errors == b"pq: was ended before it was ready\n"
        assert not pq.data.exists()
