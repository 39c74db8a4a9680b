"""`pq up` over a damaged folder says what a pod says, and changes as little; every damage is done to real files."""

import hashlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness import deliveries
from harness.pq_command import Pq, is_alive, manifest, wait_until, write
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model.placement import BrokerAddress

MULTI = b"*1\r\n$5\r\nMULTI\r\n"


class Volume:
    """The folder of one partition."""

    def __init__(self, pq: Pq, partition: int = 0) -> None:
        self.folder = pq.data / "letters" / f"partition-{partition:02}"
        self.files = self.folder / "appendonlydir"
        self.manifest = self.files / "appendonly.aof.manifest"

    @property
    def base(self) -> Path:
        return next(self.files.glob("*.base.rdb"))

    @property
    def incr(self) -> Path:
        return next(self.files.glob("*.incr.aof"))

    def digests(self) -> dict[str, str]:
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in self.files.iterdir()}

    def lose_its_manifest(self) -> int:
        self.manifest.unlink()
        return 0

    def tear(self) -> int:
        """Shorten the last file by some bytes; gives up to where it can be read."""
        data = self.incr.read_bytes()[:-20]
        self.incr.write_bytes(data)
        return data.rindex(MULTI)

    def lengthen_in_the_middle(self) -> int:
        """A length that became longer: a server takes all that follows for one write without its end."""
        data = self.incr.read_bytes()
        damaged = [match.start() for match in re.finditer(re.escape(MULTI), data)][5]
        at = data.index(b"$", damaged + len(MULTI)) + 1
        self.incr.write_bytes(data[:at] + b"9999" + data[at:])
        return damaged


@pytest.fixture
def volume(pq: Pq, small: Path) -> Volume:
    """Of a queue with 20 messages, which is down."""
    pq.up(small)
    sent(pq)
    pq.done("down")
    return Volume(pq)


def refused(pq: Pq, file: Path, *volumes: Volume) -> str:
    """What `pq up` says; it changes nothing and leaves nothing running."""
    before = [one.digests() for one in volumes]
    result = pq("up", "-f", file)
    assert result.returncode == 1
    assert "Ready" not in result.stdout
    assert [one.digests() for one in volumes] == before
    assert pq("status").returncode != 0
    first, *rest = result.stderr.splitlines()
    assert first.startswith("pq: partition ")
    assert all(line.startswith("    ") for line in rest), result.stderr
    return result.stderr


def killed_and(pq: Pq, change: str) -> tuple[Volume, int]:
    """A broker of a running namespace is killed, and its folder changed before anybody can start it again."""
    [supervisor_pid] = [pq.record()["supervisor_pid"]]
    os.kill(supervisor_pid, signal.SIGSTOP)
    try:
        os.kill(pq.pids()[0], signal.SIGKILL)
        wait_until(lambda: not is_alive(pq.pids()[0]))
        volume = Volume(pq)
        return volume, getattr(volume, change)()
    finally:
        os.kill(supervisor_pid, signal.SIGCONT)


def sent(pq: Pq, count: int = 20) -> None:
    """Messages, each by itself, so that each is a write of its own."""
    port = int(pq.done("brokers", "letters").strip().rpartition(":")[2])
    with BlockingBroker(BrokerAddress("127.0.0.1", port)) as client:
        for n in range(count):
            client.call(calls.send(QueueKeys("letters"), [deliveries.stored(b"message %d" % n)]))


# ---------------------------------------------------------------- a torn end


def test_a_torn_end_after_a_kill_is_kept_beside_cut_off_and_said(pq: Pq, small: Path) -> None:
    pq.up(small)
    sent(pq)
    volume, readable = killed_and(pq, "tear")
    wait_until(lambda: "is back" in pq.said.read_text(), words=pq.said.read_text())
    assert f"pq: partition 0 of queue letters: Cut the torn end of {volume.incr}" in pq.said.read_text()
    [copy] = volume.folder.glob(f"torn-end-*-at-{readable}-of-{volume.incr.name}")
    assert copy.read_bytes().startswith(MULTI)
    assert pq.status()["messages"] == 19, "a real one had no reply yet"


def test_a_torn_end_is_for_a_person_to_decide_at_the_start(pq: Pq, volume: Volume, small: Path) -> None:
    readable = volume.tear()
    said = refused(pq, small, volume)
    assert f"pq: partition 0 of queue letters: {volume.incr} ends within a write.\n" in said
    assert f"can be read up to byte {readable} of" in said
    assert "1. start with PQ_TORN_END=cut" in said
    pq.environment["PQ_TORN_END"] = "cut"
    pq.up(small)
    assert f"Cut the torn end of {volume.incr}" in pq.said.read_text()
    assert len(list(volume.folder.glob("torn-end-*"))) == 1
    assert pq.status()["messages"] == 19


def test_a_choice_that_there_is_not(pq: Pq, small: Path) -> None:
    pq.environment["PQ_TORN_END"] = "mend"
    result = pq("up", "-f", small)
    assert (result.returncode, result.stderr) == (1, "pq: PQ_TORN_END is 'mend'; it is refuse, or cut\n")
    assert not pq.data.exists()


# ---------------------------------------------------------------- damage in the middle


@pytest.mark.parametrize("choice", ["refuse", "cut"])
def test_damage_in_the_middle_is_not_taken_for_a_torn_end(pq: Pq, volume: Volume, small: Path, choice: str) -> None:
    damaged = volume.lengthen_in_the_middle()
    pq.environment["PQ_TORN_END"] = choice
    said = refused(pq, small, volume)
    assert f"{volume.incr} is damaged in the middle." in said
    assert f"can be read up to byte {damaged} of" in said
    assert "keep what stands before the damage and lose what follows; first keep a copy" in said


def test_nor_after_a_kill(pq: Pq, small: Path) -> None:
    """redis-server's own aof-load-truncated would drop all the acknowledged commands that follow it."""
    pq.up(small)
    sent(pq)
    volume, _ = killed_and(pq, "lengthen_in_the_middle")
    before = volume.digests()
    wait_until(lambda: "given up" in pq.said.read_text(), words=pq.said.read_text())
    said = pq.said.read_text()
    assert f"pq: partition 0 of queue letters: {volume.incr} is damaged in the middle.\n    It can be read" in said
    assert "pq: partition 0 of queue letters: it is given up; the other partitions go on\n" in said
    assert "is back" not in said
    assert volume.digests() == before
    assert pq.status()["availability"] != "Available"


def test_rubbish_at_the_end_is_not_taken_for_a_torn_end_either(pq: Pq, volume: Volume, small: Path) -> None:
    volume.incr.write_bytes(volume.incr.read_bytes()[:-20] + b"rubbish in the place of data")
    assert f"{volume.incr} " in refused(pq, small, volume)


# ---------------------------------------------------------------- what a server would not notice


def test_a_missing_manifest_is_not_taken_for_no_messages(pq: Pq, volume: Volume, small: Path) -> None:
    volume.manifest.unlink()
    said = refused(pq, small, volume)
    assert f"{volume.manifest} is missing." in said
    [command] = re.findall(r"the base and what came since:\n +(printf .*)\n", said)
    subprocess.run(["sh", "-c", command], check=True)
    pq.up(small)
    assert pq.status()["messages"] == 20


def test_an_emptied_base_file_is_not_taken_for_no_messages(pq: Pq, volume: Volume, small: Path) -> None:
    volume.base.write_bytes(b"")
    assert f"{volume.base} is damaged at byte 0." in refused(pq, small, volume)


def test_messages_are_not_forgotten_because_durability_is_off(
    pq: Pq, volume: Volume, small: Path, tmp_path: Path
) -> None:
    off = write(tmp_path / "off.yaml", manifest(partitioned=False, durability="None"))
    assert f"durability is None, but {volume.files} holds messages." in refused(pq, off, volume)
    pq.up(small)
    assert pq.status()["messages"] == 20
    pq.done("down")
    volume.files.rename(volume.folder / "appendonlydir.given-up")
    pq.up(off)
    assert pq.status()["messages"] == 0


def test_a_full_disk_is_said_before_anything_starts(pq: Pq, volume: Volume, small: Path) -> None:
    pq.environment["PQ_DISK_FREE_MB_MIN"] = "999999999"
    assert f"the disk under {volume.folder} is full" in refused(pq, small, volume)
    pq.environment["PQ_DISK_FREE_MB_MIN"] = "1"
    pq.up(small)
    assert pq.status()["messages"] == 20


def test_all_folders_that_are_refused_are_said_at_once_and_no_broker_starts(pq: Pq, letters: Path) -> None:
    pq.up(letters)
    pq.done("down")
    volumes = [Volume(pq, partition) for partition in range(16)]
    for partition in (3, 7, 11):
        volumes[partition].manifest.unlink()
    logs = [one.folder / "redis.log" for one in volumes]
    before = [log.stat().st_size for log in logs]
    said = refused(pq, letters, *volumes)
    assert [log.stat().st_size for log in logs] == before
    assert said.startswith(f"pq: partition 3 of queue letters: {volumes[3].manifest} is missing.\n    It says")
    assert said.endswith(
        f"    Refused as well: partition 7 of queue letters: {volumes[7].manifest} is missing.\n"
        f"    Refused as well: partition 11 of queue letters: {volumes[11].manifest} is missing.\n"
    )


def test_what_refuses_a_restart_may_be_mended_meanwhile(pq: Pq, small: Path) -> None:
    pq.up(small)
    sent(pq, 3)
    kept = Volume(pq).manifest.read_bytes()
    volume, _ = killed_and(pq, "lose_its_manifest")
    wait_until(lambda: pq.said.read_text().count("is missing.; trying again") > 2, words=pq.said.read_text())
    assert pq.said.read_text().count("What to do, one of:") == 1, "all its lines are said once"
    volume.manifest.write_bytes(kept)
    wait_until(lambda: "is back" in pq.said.read_text(), words=pq.said.read_text())
    assert pq.status()["messages"] == 3


def test_data_whose_record_was_lost_stays_where_a_start_fails(pq: Pq, volume: Volume, small: Path) -> None:
    (pq.data / "namespace.json").unlink()
    kept = volume.manifest.read_bytes()
    volume.manifest.unlink()
    refused(pq, small, volume)
    volume.manifest.write_bytes(kept)
    pq.up(small)
    assert pq.status()["messages"] == 20


# ---------------------------------------------------------------- where the script is


def test_the_wheel_brings_the_script_along(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=root, check=True, capture_output=True, timeout=60)
    [wheel] = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(tmp_path)], check=True)
    found = subprocess.run(
        [sys.executable, "-c", "from partitionedqueue_cli import append_only_file; print(append_only_file.script())"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert found == str(tmp_path / "partitionedqueue/broker/append_only_file.sh")
    assert Path(found).read_bytes() == (root / "broker-image/append_only_file.sh").read_bytes()
