"""What takes minutes to make is made once a machine, outside the clone, and named for what it was made from."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from harness.cluster.progress import say

FOLDER: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "partitionedqueue" / "cluster"


def digest(*inputs: str | bytes) -> str:
    """Sixteen hexadecimal digits that differ when any of the inputs does."""
    total = hashlib.sha256()
    for each in inputs:
        data = each.encode() if isinstance(each, str) else each
        total.update(len(data).to_bytes(8, "big") + data)
    return total.hexdigest()[:16]


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Two runs at a time wait for each other instead of making the same thing twice."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another run is making {name}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made_once(name: str, key: str, make: Callable[[Path], None]) -> Path:
    """The folder `<name>-<key>`, filled by `make` unless it is there. A failure leaves nothing that looks finished."""
    folder = FOLDER / f"{name}-{key}"
    if folder.is_dir():
        return folder
    with locked(name):
        if folder.is_dir():
            return folder
        making = FOLDER / f".making-{name}"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir()
        make(making)
        making.rename(folder)
    return folder
