"""What goes into an image: the files that git knows, that the Dockerfile copies, and that .dockerignore lets through.

So nothing that happens to lie about gets into an image, and only a change of what is in it makes it anew.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.cluster import cache

_LONG_AGO: Final = 1_600_000_000  # one time for all files: a fresh clone must not look like a change


@dataclass(frozen=True, slots=True)
class BuildContext:
    """Files below `root`, by their paths relative to it."""

    root: Path
    files: tuple[str, ...]

    def digest(self) -> str:
        """Differs when a name, a content or a right to run differs."""
        return cache.digest(
            *(part for file in self.files for part in (file, self._mode(file), (self.root / file).read_bytes()))
        )

    @contextmanager
    def copied(self) -> Iterator[Path]:
        """A folder with these files and no others, for as long as a build takes."""
        cache.FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="context-", dir=cache.FOLDER) as name:
            clean = Path(name)
            for file in self.files:
                (clean / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.root / file, clean / file)
                (clean / file).chmod(int(self._mode(file), 8))
            for each in (clean, *clean.rglob("*")):
                if each.is_dir():
                    each.chmod(0o755)
                os.utime(each, (_LONG_AGO, _LONG_AGO))
            yield clean

    def _mode(self, file: str) -> str:
        return "755" if os.access(self.root / file, os.X_OK) else "644"


def of(dockerfile: Path, root: Path) -> BuildContext:
    """The context of one Dockerfile in a git checkout."""
    ignore = root / ".dockerignore"
    rules = ignore.read_text().splitlines() if ignore.exists() else []
    known = _known_to_git(root, sources(dockerfile.read_text()))
    return BuildContext(root, tuple(file for file in known if not is_ignored(file, rules)))


def sources(dockerfile: str) -> list[str]:
    """What the Dockerfile copies from its context; the whole of it where that is not plain to see."""
    found: list[str] = []
    for line in re.sub(r"\\\n", " ", dockerfile).splitlines():
        instruction, *words = line.split() or [""]
        if instruction.upper() not in {"COPY", "ADD"} or any(word.startswith("--from=") for word in words):
            continue
        paths = [word for word in words if not word.startswith("--")]
        if paths[0].startswith("[") or "$" in line or "<<" in line:
            return ["."]
        found += paths[:-1]
    return found


def is_ignored(file: str, rules: list[str]) -> bool:
    """Whether .dockerignore's `rules` keep `file` out: the last that speaks of it, or of a folder it is in, decides."""
    ignored = False
    for rule in rules:
        pattern = rule.strip()
        if not pattern or pattern.startswith("#"):
            continue
        readmits = pattern.startswith("!")
        if re.fullmatch(_expression(pattern.lstrip("!").strip("/")) + "(/.*)?", file):
            ignored = not readmits
    return ignored


def _expression(pattern: str) -> str:
    """`**/` is any number of folders, `*` and `?` stay within a name."""
    meanings = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(meanings.get(part) or re.escape(part) for part in re.split(r"(\*\*/|\*\*|\*|\?)", pattern) if part)


def _known_to_git(root: Path, paths: list[str]) -> list[str]:
    if not paths:
        return []
    # Whoever owns the clone: nothing of it is run.
    listing = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
    done = subprocess.run([*listing, *paths], cwd=root, capture_output=True, text=True, check=True, timeout=60)
    return sorted({file for file in done.stdout.split("\0") if file and (root / file).is_file()})
