"""The servers that a broker is tested on: the machine's redis-server, and those that scripts/servers fetches."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

NAMES: Final = ("redis-7", "redis-8", "valkey-8")
CHOSEN: Final = "PQ_TEST_SERVER"  # the environment's word: one of these names, or a path
FETCH_SECONDS: Final = 300.0
_UNAVAILABLE: Final = 69
_SCRIPT: Final = Path(__file__).parents[2] / "scripts" / "servers"


class ServerNotHere(Exception):
    """This machine cannot have that server; the words say why."""


@dataclass(frozen=True, slots=True)
class Server:
    """One of them. `path` is its redis-server; `program` gives what stands beside it."""

    name: str
    version: str
    path: str

    def program(self, which: str) -> str:
        """`cli` or `check-aof`."""
        return self.path.removesuffix("server") + which


@cache
def server(name: str) -> Server:
    """A server by its name; fetched if need be, which takes a while the first time. Raises ServerNotHere."""
    done = subprocess.run(
        [str(_SCRIPT), name],
        capture_output=True,
        text=True,
        timeout=FETCH_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode == _UNAVAILABLE:
        raise ServerNotHere(done.stderr.strip())
    done.check_returncode()
    return Server(*done.stdout.split())


def chosen_path() -> str | None:
    """The redis-server that the tests are to run on: by PQ_TEST_SERVER, otherwise the first on PATH."""
    chosen = os.environ.get(CHOSEN)
    if not chosen:
        return shutil.which("redis-server")
    return server(chosen).path if chosen in NAMES else chosen
