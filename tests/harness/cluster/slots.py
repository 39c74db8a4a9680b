"""Who has which slot: it is held by a lock that a cluster's keeper has open, so a cluster without a keeper is known."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from harness.cluster import cgroups, links
from harness.cluster.addresses import SLOTS, Slot
from harness.cluster.machine import NoClusterHere
from harness.cluster.node import Node

FOLDERS: Final = Path("/var/lib/partitionedqueue-cluster")  # for all users: addresses and links are the machine's
_LOCKS: Final = Path("/run/lock")


def folder(slot: Slot) -> Path:
    return FOLDERS / slot.name


def claim() -> tuple[Slot, int]:
    """A free slot, what an earlier cluster left there removed; and the open lock that holds it."""
    for number in range(SLOTS):
        slot = Slot(number)
        lock = _try_lock(slot)
        if lock is None:
            continue
        clear(slot)
        if not links.in_use(slot):
            return slot, lock
        os.close(lock)
    raise NoClusterHere(
        f"all of the {SLOTS} places for a cluster on this machine are taken, by clusters ({FOLDERS}) "
        "or by routes of this machine's own (ip route); `make cluster-down` gives one back"
    )


def alive() -> list[Slot]:
    """The slots with a cluster in them that somebody keeps; to anybody but root none, as only root makes them."""
    if os.geteuid() != 0:
        return []
    slots = []
    for number in range(SLOTS):
        slot = Slot(number)
        if (lock := _try_lock(slot)) is None:
            slots.append(slot)
        else:
            os.close(lock)
    return slots


@contextmanager
def free(slot: Slot) -> Iterator[bool]:
    """Whether nobody keeps the slot; if so it is held meanwhile."""
    lock = _try_lock(slot)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            os.close(lock)


def clear(slot: Slot) -> None:
    """Remove everything that a cluster in this slot consists of: processes, networks, groups, folder."""
    for number in range(1, len(slot.nodes()) + 1):
        node = Node(folder(slot), slot, number)
        links.detach(node.address)
        cgroups.remove(node.address.cgroup)
    links.remove_network(slot)
    shutil.rmtree(folder(slot), ignore_errors=True)
    if FOLDERS.is_dir() and not any(FOLDERS.iterdir()):
        FOLDERS.rmdir()


def _try_lock(slot: Slot) -> int | None:
    lock = os.open(
        _LOCKS / f"partitionedqueue-cluster-{slot.number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
