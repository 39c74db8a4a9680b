"""The Lua library and the redis.conf that every broker runs: package data where installed, broker-image/ in a checkout.

`python -m partitionedqueue.broker.library` prints the bundled library.
"""

import re
import sys
from functools import cache
from pathlib import Path
from typing import Final

from partitionedqueue.model.errors import BrokerTooNew

LIBRARY_NAME: Final = "partitionedqueue"
_INCLUDE = re.compile(r"^--@include (\S+)\n", re.MULTILINE)
_SHARED = re.compile(r"^(?:function (\w+)\(|(\w+(?:, \w+)*) = )", re.MULTILINE)


def _folder() -> Path:
    installed = Path(__file__).parent
    checkout = Path(__file__).parents[3] / "broker-image"
    return installed if (installed / "functions").is_dir() else checkout


@cache
def library_text() -> str:
    """The library as one text, for FUNCTION LOAD: library.lua, each `--@include` line replaced by its file, a function.

    What a file defines at the margin without `local` is shared: it is declared before all files, so they may refer to
    each other. Everything else is the file's own. A function of Lua has 200 local variables at most, and uses up to 60
    of those around it.
    """
    functions = _folder() / "functions"
    top = (functions / "library.lua").read_text(encoding="utf-8")
    names = _INCLUDE.findall(top)
    if len(set(names)) < len(names):
        raise ValueError("library.lua includes a file twice")
    files = {name: (functions / name).read_text(encoding="utf-8") for name in names}
    shared = [name for text in files.values() for match in _SHARED.findall(text) for name in "".join(match).split(", ")]
    if len(set(shared)) < len(shared):
        raise ValueError("two files of the library share the same name")
    first = top.index("--@include")
    declared = f"local {', '.join(shared)}\n"
    return (
        top[:first]
        + declared
        + _INCLUDE.sub(lambda match: f"do local file = function()\n{files[match[1]]}end file() end\n", top[first:])
    )


def _constant(name: str, pattern: str) -> str:
    match = re.search(rf"^local {name} = {pattern}$", library_text(), re.MULTILINE)
    if match is None:
        raise ValueError(f"library.lua gives no {name}")
    return match[1]


def library_version() -> str:
    """The version that the library's text gives itself: three numbers."""
    return _constant("LIBRARY_VERSION", r"'(\d+\.\d+\.\d+)'")


def library_layout() -> int:
    """The version of the stored layout that the library writes."""
    return int(_constant("LAYOUT_VERSION", r"(\d+)"))


def must_load(version: str, layout: int, address: object) -> bool:
    """Whether a broker that runs that library is to be given this one: an older one is, a newer one stays.

    Raises BrokerTooNew where it is newer and keeps its data in another layout.
    """
    if _numbers(version) <= _numbers(library_version()):
        return version != library_version()
    if layout != library_layout():
        raise BrokerTooNew(
            f"broker {address} runs library {version} with layout {layout}; this program knows {library_version()} "
            f"with layout {library_layout()}: install a newer one"
        )
    return False


def _numbers(version: str) -> tuple[int, ...]:
    """A version as numbers, so that 0.10.0 comes after 0.9.0; what is no version comes before all."""
    parts = version.split(".")
    return tuple(map(int, parts)) if all(part.isascii() and part.isdigit() for part in parts) else ()


@cache
def redis_conf_text() -> str:
    """The configuration that every broker begins with."""
    return (_folder() / "redis.conf").read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.stdout.write(library_text())
