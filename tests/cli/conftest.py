from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.pq_command import Pq, manifest, write


@pytest.fixture
def pq(tmp_path: Path) -> Iterator[Pq]:
    command = Pq(tmp_path)
    yield command
    command.end()


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    """A manifest of a partitioned queue."""
    return write(tmp_path / "letters.yaml", manifest())


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A manifest of a queue with one broker."""
    return write(tmp_path / "small.yaml", manifest(partitioned=False))
