"""Debian roots made by debootstrap: what a node runs on, and what images are built on."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

from harness.cluster import machine
from harness.cluster.cache import FOLDER, digest, made_once
from harness.cluster.progress import timed

SUITE: Final = "trixie"
NODE_PACKAGES: Final = (
    "conntrack",
    "containerd",
    "containernetworking-plugins",
    "etcd-server",
    "iproute2",
    "ipset",
    "iptables",
    "nftables",
    "procps",
    "runc",
)
_SECONDS_MAX: Final = 900.0


def node_root() -> Path:
    """A Debian with what a node consists of, Kubernetes' own programs excepted. Never written to once it is made."""
    return _root("node", NODE_PACKAGES)


def image_root() -> Path:
    """A Debian as small as they come, for `debian:trixie-slim`."""
    return _root("image", ())


def _root(name: str, packages: tuple[str, ...]) -> Path:
    key = digest(SUITE, *packages)
    return made_once(f"root-{name}", key, lambda folder: _debootstrap(folder, packages))


def _debootstrap(folder: Path, packages: tuple[str, ...]) -> None:
    archives = FOLDER / "debs"  # two roots have most of their packages in common
    archives.mkdir(parents=True, exist_ok=True)
    command = ["debootstrap", "--variant=minbase", f"--cache-dir={archives.resolve()}"]
    if packages:
        command.append(f"--include={','.join(packages)}")
    command += [SUITE, str(folder)]
    if mirror := machine.debian_mirror():
        command.append(mirror)
    with timed(f"unpacking Debian {SUITE} with {len(packages) or 'no'} packages of ours"):
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_SECONDS_MAX, stdin=subprocess.DEVNULL
        )
    if done.returncode:
        raise machine.NoClusterHere(f"debootstrap failed:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    for leftover in ("var/cache/apt/archives", "var/lib/apt/lists"):
        shutil.rmtree(folder / leftover)
        (folder / leftover / "partial").mkdir(parents=True)
    folder.chmod(0o755)
