"""A part of the cgroup tree for each node: the kubelets of one machine must not take each other's pods for theirs."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harness.cluster.machine import NoClusterHere

_ROOT: Final = Path("/sys/fs/cgroup")
_WANTED: Final = "+cpu +cpuset +memory +pids"
_REMOVE_SECONDS: Final = 60.0


def create(name: str) -> list[Path]:
    """The node's groups: its own processes go into `system` below them, its pods into what kubelet makes beside it."""
    groups = []
    for hierarchy in _hierarchies():
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        if hierarchy.name == "cpuset":
            _inherit_processors(hierarchy, group)
        if _is_unified():
            _delegate(hierarchy)
            _delegate(group)
        (group / "system").mkdir(exist_ok=True)
        if hierarchy.name == "cpuset":
            _inherit_processors(group, group / "system")
        groups.append(group / "system")
    return groups


def remove(name: str) -> None:
    """Everything below the node's groups; its processes have just been killed and take a moment to be gone."""
    deadline = time.monotonic() + _REMOVE_SECONDS
    while True:
        for hierarchy in _hierarchies():
            for group in _deepest_first(hierarchy / name):
                with contextlib.suppress(OSError):  # still has a process, or went by itself
                    group.rmdir()
        if not any((hierarchy / name).exists() for hierarchy in _hierarchies()) or time.monotonic() > deadline:
            return
        time.sleep(0.2)


def _is_unified() -> bool:
    return (_ROOT / "cgroup.controllers").exists()


def _hierarchies() -> list[Path]:
    if _is_unified():
        return [_ROOT]
    # Aliases such as cpuacct -> cpu,cpuacct lead to the same place twice.
    named = {path.resolve() for path in _ROOT.iterdir() if (path / "cgroup.procs").exists()}
    return sorted(named)


def _inherit_processors(parent: Path, group: Path) -> None:
    for file in ("cpuset.cpus", "cpuset.mems"):  # empty in a new group of version 1, and then nothing may run in it
        (group / file).write_text((parent / file).read_text())


def _delegate(group: Path) -> None:
    try:
        (group / "cgroup.subtree_control").write_text(_WANTED)
    except OSError as error:
        raise NoClusterHere(
            f"the cgroup controllers{_WANTED.replace('+', '')} cannot be handed on from {group} ({error.strerror}): "
            "this looks like a container; run the tests on the machine itself, or give them a cluster by KUBECONFIG"
        ) from error


def _deepest_first(group: Path) -> Iterator[Path]:
    if group.is_dir():
        yield from sorted((path for path in group.rglob("*") if path.is_dir()), key=lambda path: -len(path.parts))
        yield group
