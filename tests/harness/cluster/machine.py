"""What this machine must have, asked of apt-get where it lacks it; words where it cannot be had."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from harness.cluster.progress import say

# program: Debian's package that brings it
PROGRAMS: Final = {
    "buildah": "buildah",
    "debootstrap": "debootstrap",
    "git": "git",
    "go": "golang-go",
    "ip": "iproute2",
    "mount": "mount",
    "nsenter": "util-linux",
    "openssl": "openssl",
}
_GO_ELSEWHERE: Final = Path("/usr/local/go/bin")  # where Go's own archive is unpacked; not on root's PATH by itself
DIES_WITH_US: Final = ("setpriv", "--pdeathsig=TERM", "--")
"""Before a command: its process gets SIGTERM when this one ends, also where this one is killed."""
_POLICY: Final = Path("/usr/sbin/policy-rc.d")
_POLICY_MARK: Final = "# partitionedqueue scripts/setup: for the length of one installation"
_NEEDED_CAPABILITIES: Final = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21, "CAP_SYS_CHROOT": 18, "CAP_MKNOD": 27}


class NoClusterHere(Exception):
    """This machine can have no cluster; the words say what is missing and what to do."""


def prepare() -> None:
    """Everything that building and running a cluster calls. Raises NoClusterHere."""
    _require_rights()
    if not shutil.which("go") and (_GO_ELSEWHERE / "go").exists():
        os.environ["PATH"] += f":{_GO_ELSEWHERE}"
    missing = _missing()
    if not missing:
        return
    packages = sorted({PROGRAMS[program] for program in missing})
    if not shutil.which("apt-get"):
        raise NoClusterHere(
            f"this machine lacks {', '.join(missing)}, and there is no apt-get to install it with. {OTHER_WAYS}"
        )
    say(f"asking apt-get for {' '.join(packages)}")
    _apt_get("update")
    _apt_get("install", "--no-install-recommends", *packages)
    if still := _missing():
        raise NoClusterHere(f"apt-get installed {' '.join(packages)}, but this machine still lacks {', '.join(still)}")


OTHER_WAYS: Final = (
    "Or let KUBECONFIG name a cluster for tests, or install kind beside a Docker daemon: either is used instead."
)


def _missing() -> list[str]:
    return [program for program in PROGRAMS if not shutil.which(program)]


def _require_rights() -> None:
    if os.uname().sysname != "Linux":
        raise NoClusterHere(f"a cluster of our own needs Linux. {OTHER_WAYS}")
    if os.geteuid() != 0:
        raise NoClusterHere(f"a cluster of our own needs root (namespaces, links, mounts). {OTHER_WAYS}")
    status = Path("/proc/self/status").read_text()
    effective = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff"))
    if lacking := [name for name, bit in _NEEDED_CAPABILITIES.items() if not effective >> bit & 1]:
        raise NoClusterHere(f"root is not allowed enough here: {', '.join(lacking)} is missing. {OTHER_WAYS}")


def _apt_get(*arguments: str) -> None:
    with Path("/var/lock/partitionedqueue-setup.lock").open("w") as lock:  # scripts/setup takes turns with this
        fcntl.flock(lock, fcntl.LOCK_EX)
        with _services_forbidden():
            done = subprocess.run(
                ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=120", *arguments],
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=900,
                check=False,
            )
    if done.returncode:
        raise NoClusterHere(f"apt-get {' '.join(arguments)} failed:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")


@contextmanager
def _services_forbidden() -> Iterator[None]:
    """No system service starts: containerd and the like run inside the cluster's nodes and nowhere else."""
    aside = _POLICY.with_name("policy-rc.d.set-aside-by-setup")
    if _POLICY.exists() and _POLICY_MARK not in _POLICY.read_text():
        _POLICY.rename(aside)
    _POLICY.write_text(f"#!/bin/sh\n{_POLICY_MARK}\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink(missing_ok=True)
        if aside.exists():
            aside.rename(_POLICY)


def debian_mirror() -> str | None:
    """Where this machine has its Debian from; None leaves the choice to debootstrap."""
    done = subprocess.run(
        ["apt-get", "update", "--print-uris"], capture_output=True, text=True, check=False, timeout=60
    )
    for line in done.stdout.splitlines():
        address = line.split()[0].strip("'")
        if "/debian/dists/" in address:
            return address.split("/dists/")[0]
    return None
