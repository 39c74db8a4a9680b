"""Each kind of bad input: one clear sentence, a non-zero exit code, and nothing half-made."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.pq_command import Pq, manifest, wait_until, write
from partitionedqueue.model.partitioning import partition_of


def refused(result: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert result.returncode not in (0, None)
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("pq: ")
    for part in parts:
        assert part in lines[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sizeGb": 1}, "unknown field spec.sizeGb"),
        ({"sizeGB": 6}, "spec.sizeGB is 6"),
        ({"sizeGB": "1"}, "spec.sizeGB is '1'"),
        ({"partitionLayout": "Thirty"}, "spec.partitionLayout is 'Thirty'"),
        ({"lockDuration": "a minute"}, "spec.lockDuration"),
    ],
)
def test_a_manifest_that_cannot_be(pq: Pq, tmp_path: Path, change: dict[str, Any], words: str) -> None:
    bad = manifest()
    bad["spec"].update(change)
    file = write(tmp_path / "bad.yaml", bad)
    refused(pq("up", "-f", file), str(file), words)
    assert not pq.data.exists()


@pytest.mark.parametrize("text", ["", "a: [", "\x00", "just words", "kind: Pod"])
def test_a_file_that_is_no_manifest(pq: Pq, tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    refused(pq("up", "-f", file), str(file))
    assert not pq.data.exists()


def test_a_file_that_is_not_there(pq: Pq, tmp_path: Path) -> None:
    refused(pq("up", "-f", tmp_path / "none.yaml"), "none.yaml cannot be read: No such file or directory")
    refused(pq("up", "-f", tmp_path), "Is a directory")
    assert not pq.data.exists()


def test_a_folder_that_cannot_be_written(pq: Pq, small: Path, tmp_path: Path) -> None:
    below_a_file = small / "data"
    refused(pq("up", "-f", small, "--data-dir", below_a_file), str(below_a_file), "Not a directory")
    refused(pq("up", "-f", small, "--data-dir", small), str(small))
    refused(pq("up", "-f", small, "--data-dir", "/proc/nowhere/data"), "/proc/nowhere")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["small.yaml"]


def test_no_redis_server(tmp_path: Path, small: Path) -> None:
    pq = Pq(tmp_path, path=str(tmp_path))
    refused(pq("up", "-f", small), "there is no redis-server on PATH")
    assert not pq.data.exists()


@pytest.mark.parametrize("version", ["6.2.1", "4.0.0"])
def test_a_redis_server_without_functions(tmp_path: Path, small: Path, version: str) -> None:
    fake = tmp_path / "redis-server"
    fake.write_text(f"#!/bin/sh\necho 'Redis server v={version} sha=00000000:0 malloc=libc bits=64 build=0'\n")
    fake.chmod(0o755)
    pq = Pq(tmp_path, path=f"{tmp_path}:{os.environ['PATH']}")
    refused(pq("up", "-f", small), str(fake), f"is Redis {version}", "7.0 or newer is needed")
    assert not pq.data.exists()


def test_a_redis_server_that_does_not_start_leaves_no_folder(tmp_path: Path, small: Path) -> None:
    fake = tmp_path / "redis-server"
    fake.write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'Redis server v=7.4.0 x' && exit\necho out of luck\nexit 3\n"
    )
    fake.chmod(0o755)
    pq = Pq(tmp_path, path=f"{tmp_path}:{os.environ['PATH']}")
    refused(pq("up", "-f", small), "partition 0 of queue letters", "ended with code 3", "out of luck")
    assert not pq.data.exists()


@pytest.mark.parametrize(
    ("change", "word"),
    [({"sizeGB": 2}, "sizeGB"), ({"enablePartitioning": True}, "enablePartitioning")],
)
def test_a_queue_keeps_its_immutable_properties(
    pq: Pq, small: Path, tmp_path: Path, change: dict[str, Any], word: str
) -> None:
    pq.up(small)
    pq.done("send", "letters", "--body", "kept")
    other = manifest(partitioned=False)
    other["spec"].update(change)
    file = write(tmp_path / "other.yaml", other)
    refused(pq("up", "-f", file), "is up with another manifest")
    pq.done("down")
    refused(pq("up", "-f", file), "queue letters in", f"was made with {word}")
    pq.up(small)
    assert pq.status()["messages"] == 1


def test_what_may_change_changes_with_the_next_start(pq: Pq, small: Path, tmp_path: Path) -> None:
    pq.up(small)
    pq.done("down")
    pq.up(write(tmp_path / "other.yaml", manifest(partitioned=False, lockDuration="PT2M")))
    assert pq.record()["queues"]["letters"]["manifest"]["spec"]["lockDuration"] == "PT2M"


def test_another_queue_in_a_folder_that_is_up(pq: Pq, small: Path, tmp_path: Path) -> None:
    pq.up(small)
    file = write(tmp_path / "other.yaml", manifest("other", partitioned=False))
    refused(pq("up", "-f", file), "is up with queue letters")


def test_messages_that_no_queue_takes(pq: Pq, letters: Path) -> None:
    pq.up(letters)
    refused(pq("send", "letters", given="x" * (256 * 1024 + 1)), "256")
    refused(pq("send", "letters", given="x" * (3 << 20)), "256")
    refused(pq("send", "letters", "--body", "x", "--session-id", "a", "--partition-key", "b"), "'a'", "'b'", "differ")
    refused(pq("send", "letters", "--body", "x", "--message-id", "m" * 129), "MessageId")
    refused(pq("send", "letters", "--body", "x", "--property", "colour"), "--property 'colour' must be name=value")
    two_keys = "".join(json.dumps({"body": "x", "partition_key": key}) + "\n" for key in "ab")
    refused(pq("send", "letters", "--json-lines", "--batch", given=two_keys), "'a'", "'b'")
    refused(pq("send", "letters", "--json-lines", given="nonsense\n"), "line 1 is no JSON")
    refused(pq("send", "letters", "--json-lines", given='{"body": "x", "colour": 1}\n'), 'unknown field "colour"')
    refused(pq("send", "letters", "--file", "nowhere"), "nowhere cannot be read")
    assert pq.status()["messages"] == 0


def test_a_queue_or_a_namespace_that_is_not_there(pq: Pq, small: Path) -> None:
    for words in (["status"], ["send", "letters", "--body", "x"], ["receive", "letters"], ["peek", "letters"]):
        refused(pq(*words), "nothing is running in", "start it with: pq up")
    assert not pq.data.exists()
    pq.up(small)
    refused(pq("send", "lettres", "--body", "x"), "no queue lettres is running", "running: letters")
    refused(pq("send", "Letters", "--body", "x"), "no queue Letters is running", "it is called letters")
    refused(pq("peek", "letters", "--from", str(5 << 48 | 1)), "partition 5")


def test_a_broker_that_is_down_fails_its_keys_and_not_the_others(pq: Pq, letters: Path) -> None:
    supervisor = pq.up(letters)
    partition = partition_of("k", 16)
    supervisor.send_signal(signal.SIGSTOP)  # nobody restarts it
    os.kill(pq.pids()[partition], signal.SIGKILL)
    try:
        keyed = pq("send", "letters", "--body", "x", "--partition-key", "k", "--timeout", "1", seconds=20)
        refused(keyed, f"partition {partition}", "down")
        assert pq.done("send", "letters", "--timeout", "2", given="x\n" * 32) == "Sent 32 messages to queue letters\n"
        assert (pq.status()["availability"], pq.status()["messages"]) == ("Limited", 32)
        got = pq("receive", "letters", "-n", "50", "--timeout", "1")
        assert len(got.stdout.splitlines()) == 32
        refused(got, f"partition {partition} of queue letters is down")
    finally:
        supervisor.send_signal(signal.SIGCONT)
    wait_until(lambda: pq.status()["availability"] == "Available")


def test_a_record_that_was_damaged(pq: Pq, small: Path) -> None:
    pq.up(small)
    pq.done("down")
    (pq.data / "namespace.json").write_text("{")
    refused(pq("up", "-f", small), "namespace.json is damaged")
    assert (pq.data / "letters" / "partition-00" / "appendonlydir").is_dir()


def test_words_that_are_no_command(pq: Pq) -> None:
    for words in (["fly"], ["receive", "letters", "-n", "0"], ["send", "letters", "--timeout", "soon"], []):
        result = pq(*words)
        assert result.returncode == 2
        assert "pq" in result.stderr
    for option, word in (("--schedule", "soon"), ("--time-to-live", "-1"), ("--time-to-live", "P1Y")):
        result = pq("send", "letters", "--body", "x", f"{option}={word}")
        assert result.returncode == 2
        assert f"{word!r} is no" in result.stderr
