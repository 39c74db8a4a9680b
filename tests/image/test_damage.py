"""start.sh over a damaged folder: it says what is wrong and what to do, ends with 78 and changes nothing.

Every damage is done to a real folder that a real broker wrote until kill -9; the commands that the words give are run.
"""

import contextlib
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from harness import deliveries, servers
from harness.servers import Server, ServerNotHere
from harness.start_script import IMAGE, MUST_DECIDE, NOTHING, digests, library_file, started
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model.errors import BrokerUnavailable
from partitionedqueue.model.placement import BrokerAddress

KEYS = QueueKeys("flights")
SENDS = 60  # before the rewrite, and as many after it
MULTI = b"*1\r\n$5\r\nMULTI\r\n"
CUT = {"PQ_TORN_END": "cut"}
MORE = deliveries.stored(b"more")


def message(number: int) -> bytes:
    return deliveries.stored(b"message %d " % number + b"." * 50)


class Volume:
    """A folder as a broker that was killed has left it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = folder / "appendonlydir"

    @property
    def manifest(self) -> Path:
        return self.files / "appendonly.aof.manifest"

    @property
    def base(self) -> Path:
        return next(self.files.glob("*.base.rdb"))

    @property
    def incr(self) -> Path:
        return next(self.files.glob("*.incr.aof"))


def stored(client: BlockingBroker, *, lock_ms: int = 1) -> list[bytes]:
    """Every message, in order; they stay. With a lock of 0 ms: the next 4 MB, taken out."""
    received = client.call(calls.receive(KEYS, most=1000, lock_ms=lock_ms))
    return [one for _, one in deliveries.placed(received.runs)]


def wrote(folder: Path, library: Path, server: Server) -> None:
    """A broker's work: a base file, what came since, and kill -9."""
    with started(folder, library, server=server.path) as broker:
        with BlockingBroker(broker.wait_until_ready().address) as client:
            for number in range(SENDS):
                client.call(calls.send(KEYS, [message(number)]))
            client.raw(("BGREWRITEAOF",))
            while b"aof_rewrite_in_progress:0" not in client.raw(("INFO", "persistence"))[0]:
                pass
            for number in range(SENDS, 2 * SENDS):
                client.call(calls.send(KEYS, [message(number)]))
        broker.kill()
    for path in ("lock", "broker.sock"):
        (folder / path).unlink()


@pytest.fixture(scope="module")
def written(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a broker wrote: copied for each test."""
    folder = tmp_path_factory.mktemp("written") / "data"
    folder.mkdir()
    wrote(folder, library_file(folder.parent), server)
    return folder


@pytest.fixture
def volume(written: Path, tmp_path: Path) -> Volume:
    shutil.copytree(written, tmp_path / "data")
    return Volume(tmp_path / "data")


def refused(volume: Volume, library: Path, server: Server, settings: Mapping[str, str] = NOTHING) -> str:
    """What start.sh says against the folder, once it is sure that it changed nothing."""
    before = digests(volume.folder)
    with started(volume.folder, library, server=server.path, settings=settings) as broker:
        code = broker.code()
        assert code == MUST_DECIDE, broker.said()
        assert not broker.is_ready()
    assert digests(volume.folder) == before
    words = broker.words()
    assert "NOT STARTED: " in words
    assert "Nothing was changed. More: docs/operating/damaged-append-only-file.md" in words
    return words


def goes_on(
    volume: Volume, library: Path, server: Server, wanted: list[bytes], settings: Mapping[str, str] = NOTHING
) -> str:
    """The broker starts, has exactly what is wanted, and takes more; what it said."""
    with started(volume.folder, library, server=server.path, settings=settings) as broker:
        with BlockingBroker(broker.wait_until_ready().address) as client:
            assert stored(client) == wanted
            client.call(calls.send(KEYS, [MORE]))
        return broker.words()


def carry_out(words: str, choice: int) -> None:
    """Run the command that choice number `choice` of the words ends with."""
    text = re.split(rf"\n *{choice + 1}\. |\n *Nothing was changed", re.split(rf"\n *{choice}\. ", words)[1])[0]
    command = re.search(r"(?s)(?:  |\n *)((?:mv|cp|printf|chown|rm) .*)", text)
    assert command, f"no command in: {text}"
    subprocess.run(["sh", "-ec", command[1]], check=True, timeout=30)


def everything(upto: int = 2 * SENDS) -> list[bytes]:
    return [message(number) for number in range(upto)]


def test_an_undamaged_folder_is_taken_as_it_is(volume: Volume, library: Path, server: Server) -> None:
    assert "Cut" not in goes_on(volume, library, server, everything(), settings=CUT)


# ---------------------------------------------------------------- a write that stopped short


def tear(volume: Volume, bytes_less: int) -> tuple[int, int]:
    """Shorten the last file; gives up to where it can be read, and its size now."""
    data = volume.incr.read_bytes()[:-bytes_less]
    volume.incr.write_bytes(data)
    return data.rindex(MULTI), len(data)


def test_a_torn_end_is_refused_with_its_place_and_the_choices(volume: Volume, library: Path, server: Server) -> None:
    readable, size = tear(volume, 20)
    words = refused(volume, library, server)
    assert f"{volume.incr} ends within a write." in words
    assert (
        f"can be read up to byte {readable} of {size}. The {size - readable} bytes from there are the beginning of one"
        in words
    )
    assert "nothing that was acknowledged is in it" in words
    assert "1. start with PQ_TORN_END=cut" in words
    assert "2. restore the folder from a copy of the volume" in words


def test_a_torn_end_is_cut_when_that_is_chosen_and_kept_beside(volume: Volume, library: Path, server: Server) -> None:
    readable, size = tear(volume, 20)
    torn = volume.incr.read_bytes()[readable:]
    words = goes_on(volume, library, server, everything(2 * SENDS - 1), settings=CUT)
    assert f"Cut the torn end of {volume.incr}: it had {size} bytes and has {readable}" in words
    (copy,) = volume.folder.glob("torn-end-*")
    assert copy.read_bytes() == torn
    assert f"the {len(torn)} bytes that were cut are in {copy}" in words
    assert "Cut" not in goes_on(volume, library, server, [*everything(2 * SENDS - 1), MORE], settings=CUT)


def test_without_a_sync_before_each_reply_the_words_promise_less(volume: Volume, library: Path, server: Server) -> None:
    tear(volume, 20)
    words = refused(volume, library, server, settings={"PQ_DURABILITY": "EverySecond"})
    assert "With durability EverySecond it, and up to a second before it, may have been acknowledged." in words


def test_zeros_that_a_file_system_left_are_a_torn_end(volume: Volume, library: Path, server: Server) -> None:
    size = volume.incr.stat().st_size
    with volume.incr.open("ab") as file:
        file.write(bytes(4096))
    words = refused(volume, library, server)
    assert (
        f"up to byte {size} of {size + 4096}. The 4096 bytes from there are zeros, as a file system may leave them"
        in words
    )
    goes_on(volume, library, server, everything(), settings=CUT)


def examined(volume: Volume, server: Server, verb: str = "examine") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(IMAGE / "append_only_file.sh"), verb, str(volume.folder)],
        env={**os.environ, "PQ_SERVER": server.path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_every_way_to_tear_the_last_writes_is_known_for_one(volume: Volume, server: Server) -> None:
    whole = volume.incr.read_bytes()
    last = [match.start() for match in re.finditer(re.escape(MULTI), whole)][-2:]
    for size in range(last[0] + 1, len(whole), 31):
        volume.incr.write_bytes(whole[:size])
        done = examined(volume, server)
        if size == last[1]:  # between two writes: nothing is amiss
            assert (done.returncode, "whole as far as can be told" in done.stderr) == (0, True)
            continue
        assert done.returncode == MUST_DECIDE, done.stderr
        readable = last[1] if size > last[1] else last[0]
        assert f"ends within a write.\n    It can be read up to byte {readable} of {size}." in done.stderr, done.stderr


def send_until_it_is_gone(address: BrokerAddress, first: int, acknowledged: list[bytes]) -> None:
    """Large messages, so that a write takes its time."""
    with BlockingBroker(address) as client, contextlib.suppress(BrokerUnavailable):
        for number in range(first, first + 1000):
            several = [deliveries.stored(b"%d %d " % (number, i) + bytes(50_000)) for i in range(10)]
            client.call(calls.send(KEYS, several))
            acknowledged += several


def test_whatever_a_kill_tears_what_was_acknowledged_is_there(folder: Path, library: Path) -> None:
    acknowledged: list[bytes] = []
    for number in range(5):
        with started(folder, library, settings=CUT) as broker:
            address = broker.wait_until_ready().address
            sender = threading.Thread(target=send_until_it_is_gone, args=(address, 1000 * number, acknowledged))
            sender.start()
            time.sleep(0.1 + 0.037 * number)
            broker.kill()
            sender.join(30)
    with started(folder, library, settings=CUT) as broker, BlockingBroker(broker.wait_until_ready().address) as client:
        found: list[bytes] = []
        while batch := stored(client, lock_ms=0):
            found += batch
    assert len(acknowledged) > 50
    assert set(acknowledged) <= set(found)
    assert len(found) - len(acknowledged) <= 5 * 10  # what was stored without a reply: at most a send a kill


# ---------------------------------------------------------------- damage in the middle


def test_damage_in_the_middle_is_never_taken_for_a_torn_end(volume: Volume, library: Path, server: Server) -> None:
    """A length that became longer: a server takes all that follows for one write without its end."""
    data = volume.incr.read_bytes()
    place = data.index(b"$%d\r\n%s" % (len(message(SENDS)), message(SENDS)))
    readable = data.rindex(MULTI, 0, place)
    volume.incr.write_bytes(data[: place + 1] + b"9999" + data[place + 1 :])
    size = len(data) + 4
    for settings in (NOTHING, CUT):
        words = refused(volume, library, server, settings=settings)
        assert f"{volume.incr} is damaged in the middle." in words
        assert (
            f"read up to byte {readable} of {size}. {size - readable} bytes follow: at least {SENDS} whole commands"
            in words
        )
        assert "torn" not in words


@pytest.mark.parametrize("offset", [0, 5])  # of a command's first byte, and of a length
def test_a_byte_that_flipped_is_found_and_what_stands_before_it_can_be_kept(
    volume: Volume, library: Path, server: Server, offset: int
) -> None:
    data = volume.incr.read_bytes()
    transactions = [match.start() for match in re.finditer(re.escape(MULTI), data)]
    middle = transactions[SENDS // 2]
    flipped = bytearray(data)
    flipped[middle + offset] ^= 0x80
    volume.incr.write_bytes(flipped)
    words = refused(volume, library, server)
    assert f"{volume.incr} is damaged in the middle." in words
    assert f"It can be read up to byte {middle} of {len(data)}" in words
    carry_out(words, 2)
    kept = len(re.findall(rb"message \d", data[:middle]))
    goes_on(volume, library, server, everything(SENDS + kept))
    assert (volume.folder / "appendonlydir.damaged" / volume.incr.name).read_bytes() == bytes(flipped)


def test_a_command_that_no_server_knows_is_the_servers_to_explain(
    volume: Volume, library: Path, server: Server
) -> None:
    with volume.incr.open("ab") as file:
        file.write(b"*1\r\n$6\r\nFUTURE\r\n")
    before = digests(volume.folder)
    with started(volume.folder, library, server=server.path) as broker:
        assert broker.code() == 1
    assert "why the server ended, it says itself above" in broker.said()
    assert re.search("(?i)unknown (or disabled )?command 'FUTURE'", broker.said())
    assert digests(volume.folder) == before


def test_the_base_file_is_read_with_its_checksum(volume: Volume, library: Path, server: Server) -> None:
    data = bytearray(volume.base.read_bytes())
    data[len(data) // 2] ^= 1
    volume.base.write_bytes(data)
    words, name = refused(volume, library, server), volume.base.name
    assert f"{volume.base} is damaged." in words
    assert "[offset " in words
    carry_out(words, 2)
    goes_on(volume, library, server, [])
    assert (volume.folder / "appendonlydir.given-up" / name).read_bytes() == bytes(data)


def test_a_base_file_cut_short_is_refused(volume: Volume, library: Path, server: Server) -> None:
    volume.base.write_bytes(volume.base.read_bytes()[:-50])
    assert f"{volume.base} is damaged." in refused(volume, library, server)


def test_an_emptied_base_file_is_not_taken_for_no_messages(volume: Volume, library: Path, server: Server) -> None:
    volume.base.write_bytes(b"")
    assert f"{volume.base} is damaged at byte 0." in refused(volume, library, server)


# ---------------------------------------------------------------- what is missing


def test_a_missing_manifest_is_refused_and_can_be_written_anew(volume: Volume, library: Path, server: Server) -> None:
    volume.manifest.unlink()
    words = refused(volume, library, server)
    assert f"{volume.manifest} is missing." in words
    assert "a server that does not find it starts empty, beside these:" in words
    assert volume.base.name in words
    assert volume.incr.name in words
    carry_out(words, 2)
    goes_on(volume, library, server, everything())


@pytest.mark.parametrize("content", ["", "hello\n", "file appendonly.aof.1.base.rdb\n"])
def test_a_manifest_that_cannot_be_understood_is_refused(
    volume: Volume, library: Path, server: Server, content: str
) -> None:
    volume.manifest.write_text(content)
    words = refused(volume, library, server)
    assert f"{volume.manifest} is damaged." in words
    carry_out(words, 2)
    goes_on(volume, library, server, everything())


def test_with_two_base_files_no_manifest_is_proposed(volume: Volume, library: Path, server: Server) -> None:
    volume.manifest.unlink()
    shutil.copy(volume.base, volume.files / "appendonly.aof.9.base.rdb")
    assert "which of these files belong together cannot be told" in refused(volume, library, server)


def test_a_first_start_that_ended_too_soon_is_no_damage(folder: Path, library: Path, server: Server) -> None:
    with started(folder, library, server=server.path) as broker:
        broker.wait_until_ready()
    shutil.copytree(folder / "appendonlydir", folder / "before")
    shutil.rmtree(folder / "appendonlydir")
    (folder / "appendonlydir").mkdir()
    (folder / "before" / "appendonly.aof.1.base.rdb").replace(folder / "appendonlydir" / "appendonly.aof.1.base.rdb")
    goes_on(Volume(folder), library, server, [])


@pytest.mark.parametrize(
    ("which", "stands"), [("base", "everything up to the last rewrite"), ("incr", "what was acknowledged since")]
)
def test_a_file_that_the_manifest_names_must_be_there(
    volume: Volume, library: Path, server: Server, which: str, stands: str
) -> None:
    missing = volume.base if which == "base" else volume.incr
    missing.unlink()
    words = refused(volume, library, server)
    assert f"{missing} is missing, though the manifest names it." in words
    assert f"In it stands {stands}" in words


# ---------------------------------------------------------------- around the files


def test_data_of_a_newer_server_is_refused_and_whole(library: Path, tmp_path: Path) -> None:
    try:
        older, newer = servers.server("redis-7"), servers.server("redis-8")
    except ServerNotHere as error:
        pytest.skip(str(error))
    volume = Volume(tmp_path / "data")
    volume.folder.mkdir()
    wrote(volume.folder, library, newer)
    words = refused(volume, library, older)
    assert f"{volume.files} was written by a newer server." in words
    assert f"has format 12, which this server cannot read: Redis server v={older.version}" in words
    goes_on(volume, library, newer, everything())


def test_data_of_an_older_server_is_read(volume: Volume, library: Path, server: Server) -> None:
    """Towards Redis 8 there is always a way; Valkey 8.1 reads what Redis 7 wrote, and not what Redis 8 did."""
    if server.name != "redis-8":
        try:
            goes_on(volume, library, servers.server("redis-8"), everything())
        except ServerNotHere as error:
            pytest.skip(str(error))


def test_messages_are_not_forgotten_because_durability_is_off(volume: Volume, library: Path, server: Server) -> None:
    words = refused(volume, library, server, settings={"PQ_DURABILITY": "None"})
    assert f"durability is None, but {volume.files} holds messages." in words
    goes_on(volume, library, server, everything())
    carry_out(words, 2)
    goes_on(volume, library, server, [], settings={"PQ_DURABILITY": "None"})


def test_a_folder_that_is_not_there_is_not_made(library: Path, tmp_path: Path, server: Server) -> None:
    with started(tmp_path / "nowhere", library, server=server.path) as broker:
        assert broker.code() == MUST_DECIDE
        assert "mount its volume there" in broker.said()
    assert not (tmp_path / "nowhere").exists()


@pytest.fixture
def somebody(library: Path) -> Iterator[tuple[int, Path]]:
    """Another user, and a folder that it may reach."""
    if os.geteuid() != 0:
        pytest.skip("only root can start a broker as another user")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copy(library, folder)
        yield pwd.getpwnam("nobody").pw_uid, folder


def test_somebody_elses_files_are_said_with_their_owner(
    written: Path, server: Server, somebody: tuple[int, Path]
) -> None:
    user, place = somebody
    if server.name != "redis-7":
        pytest.skip("the fetched servers stand in a folder of this user's")
    shutil.copytree(written, place / "data")
    volume, library = Volume(place / "data"), place / "library.lua"
    for path in (volume.folder, *volume.folder.rglob("*")):
        path.chmod(0o777)
    volume.incr.chmod(0o600)
    with started(volume.folder, library, user=user) as broker:
        assert broker.code() == MUST_DECIDE
    words = broker.words()
    assert f"{volume.incr} may not be read and written by this broker (user {user}" in words
    assert re.search(rf"-rw------- +1 0 +0 .*{re.escape(str(volume.incr))}", words)
    carry_out(words, 2)
    with started(volume.folder, library, user=user) as broker:
        broker.wait_until_ready()


# ---------------------------------------------------------------- a full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 20 MB that can be enlarged."""
    path = tmp_path / "disk"
    path.mkdir()
    if os.geteuid() != 0 or mount("-t", "tmpfs", "-o", "size=20m", "tmpfs", str(path)) != 0:
        pytest.skip("only root, and where it may mount, can make a small disk")
    yield path
    subprocess.run(["umount", str(path)], check=True, timeout=30)


def mount(*arguments: str) -> int:
    return subprocess.run(["mount", *arguments], check=False, timeout=30, capture_output=True).returncode


def sent_until_it_ends(address: BrokerAddress) -> list[bytes]:
    """What a broker acknowledged until it was gone."""
    acknowledged: list[bytes] = []
    with BlockingBroker(address) as client:
        for number in range(200):
            large = deliveries.stored(b"%d " % number + os.urandom(200_000))
            try:
                client.call(calls.send(KEYS, [large]))
            except BrokerUnavailable:
                break
            acknowledged.append(large)
    return acknowledged


def test_a_full_disk_ends_the_broker_loses_nothing_and_is_said(small_disk: Path, library: Path, server: Server) -> None:
    little = {"PQ_DISK_FREE_MB_MIN": "4"}
    with started(small_disk, library, server=server.path, settings=little) as broker:
        acknowledged = sent_until_it_ends(broker.wait_until_ready().address)
        assert broker.code() == 1
    assert 10 < len(acknowledged) < 200
    words = refused(Volume(small_disk), library, server, settings=little)
    assert f"the disk under {small_disk} is full" in words
    assert "1. enlarge the volume" in words
    mount("-o", "remount,size=60m", str(small_disk))
    with started(small_disk, library, server=server.path) as broker:
        found: list[bytes] = []
        with BlockingBroker(broker.wait_until_ready().address) as client:
            while batch := stored(client, lock_ms=0):
                found += batch
        assert found == acknowledged
