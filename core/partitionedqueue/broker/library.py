"""The Lua library and the redis.conf that every broker runs: package data where installed, broker-image/ in a checkout.

`python -m partitionedqueue.broker.library` prints the bundled library.
"""

import re
import sys
from functools import cache
from pathlib import Path
from typing import Final

LIBRARY_NAME: Final = "partitionedqueue"
_INCLUDE = re.compile(r"^--@include (\S+)\n", re.MULTILINE)


def _folder() -> Path:
    installed = Path(__file__).parent
    checkout = Path(__file__).parents[3] / "broker-image"
    return installed if (installed / "functions").is_dir() else checkout


@cache
def library_text() -> str:
    """The library as one text, for FUNCTION LOAD: library.lua, each `--@include` line replaced by its file."""
    functions = _folder() / "functions"
    top = (functions / "library.lua").read_text(encoding="utf-8")
    included: set[str] = set()

    def include(match: re.Match[str]) -> str:
        name = match[1]
        if name in included:
            raise ValueError(f"library.lua includes {name} twice")
        included.add(name)
        return (functions / name).read_text(encoding="utf-8")

    return _INCLUDE.sub(include, top)


def library_version() -> str:
    """The version that the library's text gives itself."""
    match = re.search(r"LIBRARY_VERSION = '([^']+)'", library_text())
    if match is None:
        raise ValueError("library.lua gives no LIBRARY_VERSION")
    return match[1]


@cache
def redis_conf_text() -> str:
    """The configuration that every broker begins with."""
    return (_folder() / "redis.conf").read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.stdout.write(library_text())
