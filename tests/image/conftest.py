from pathlib import Path

import pytest

from harness.start_script import library_file


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """The library, as the image holds it beside start.sh."""
    return library_file(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty volume."""
    path = tmp_path / "data"
    path.mkdir()
    return path
