"""The cluster harness's arithmetic and rules; what it does to a machine is tested in tests/cluster."""

import itertools
import os
import subprocess
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from harness.cluster import build_context, cache, images
from harness.cluster.addresses import NODES_MAX, SLOTS, Slot


def test_no_two_clusters_share_an_address_and_all_are_set_aside_for_tests() -> None:
    networks = [network for number in range(SLOTS) for network in Slot(number).networks]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(networks, 2))
    reserved = (IPv4Network("198.51.100.0/24"), IPv4Network("198.18.0.0/15"))
    assert all(any(network.subnet_of(whole) for whole in reserved) for network in networks)


def test_every_node_of_a_slot_has_addresses_of_its_own() -> None:
    slot = Slot(SLOTS - 1)
    nodes = slot.nodes()
    assert len({node.address for node in nodes} | {slot.host}) == NODES_MAX + 1
    assert all(node.address in slot.machines and node.pods.subnet_of(slot.pods) for node in nodes)
    assert not any(one.pods.overlaps(other.pods) for one, other in itertools.combinations(nodes, 2))


@pytest.mark.parametrize("number", [0, NODES_MAX + 1])
def test_a_node_that_cannot_be_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f"nodes 1 to {NODES_MAX}, not {number}"):
        Slot(0).node(number)


def test_a_link_has_a_name_that_linux_takes() -> None:
    assert all(len(node.link) < 16 for number in range(SLOTS) for node in Slot(number).nodes())


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        ("COPY core /build/core", ["core"]),
        ("COPY --chown=1:1 a b \\\n  c /there/", ["a", "b", "c"]),
        ("COPY --from=build /opt /opt", []),
        ('COPY ["a b", "/there"]', ["."]),
        ("ADD $WHAT /there", ["."]),
        ("RUN cp a b", []),
    ],
)
def test_what_a_dockerfile_copies_is_read_from_it(line: str, taken: list[str]) -> None:
    assert build_context.sources(f"FROM scratch\n{line}\n") == taken


RULES = ["# images are made of this", "*", "!core", "!requirements*.lock", "**/Dockerfile", "**/*.pyc", "core/notes"]


@pytest.mark.parametrize(
    ("file", "ignored"),
    [
        ("core/partitionedqueue/model/limits.py", False),
        ("requirements.lock", False),
        ("requirements-build.lock", False),
        ("README.md", True),
        ("tests/core/a.py", True),
        ("core/Dockerfile", True),
        ("core/deep/down/a.pyc", True),
        ("core/notes/today.md", True),
        ("core/notes.md", False),
    ],
)
def test_dockerignores_last_word_on_a_file_holds(file: str, ignored: bool) -> None:
    assert build_context.is_ignored(file, RULES) is ignored


def test_an_image_changes_with_what_git_knows_and_with_nothing_else(tmp_path: Path) -> None:
    def key() -> str:
        return build_context.of(tmp_path / "Dockerfile", tmp_path).digest()

    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY core /core\n")
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "a.py").write_text("a = 1\n")
    first = key()
    (tmp_path / "core" / "run.log").write_text("lies about\n")
    (tmp_path / "elsewhere.py").write_text("b = 2\n")
    assert key() == first
    (tmp_path / "core" / "a.py").write_text("a = 2\n")
    assert key() != first
    with build_context.of(tmp_path / "Dockerfile", tmp_path).copied() as clean:
        assert [str(path.relative_to(clean)) for path in clean.rglob("*") if path.is_file()] == ["core/a.py"]


def test_pips_settings_reach_a_build_with_the_authorities_where_the_build_has_them() -> None:
    settings = images.pip_settings("global.cert='/here/ca.crt'\n:env:.index-url='https://index.invalid/simple'\n")
    assert "index-url = https://index.invalid/simple" in settings
    assert "/here/ca.crt" not in settings


def test_what_failed_half_way_is_not_taken_for_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "FOLDER", tmp_path)

    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        cache.made_once("thing", "1", fail)
    whole = cache.made_once("thing", "1", lambda folder: (folder / "all").touch())
    assert [path.name for path in whole.iterdir()] == ["all"]
    assert cache.made_once("thing", "1", fail) == whole


def test_old_archives_go_but_for_the_newest_and_those_that_a_cluster_may_ask_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "FOLDER", tmp_path)
    monkeypatch.setattr(images, "_FREE_BYTES_MIN", 0)
    folders = [tmp_path / f"image-docker.io-partitionedqueue-broker-0.1.0-{number}" for number in range(5)]
    for age, folder in enumerate(folders):
        folder.mkdir()
        os.utime(folder, (age, age))
    images.prune({folders[1] / "image.tar"})
    assert sorted(path.name[-1] for path in tmp_path.iterdir()) == ["1", "3", "4"]
