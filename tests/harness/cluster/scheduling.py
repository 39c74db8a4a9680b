"""Keeps the tests of `tests/cluster` on one worker of pytest-xdist, as there is one cluster; for `--dist loadgroup`.

xdist's own groups do nothing under pytest 9.2 and newer, silently (pytest-xdist issue 1386): test by test, each worker
would bring up a cluster. It is the controller that decides this, and that reads the topmost conftest.py only: the hook
is imported there.
"""

from typing import Any, Final

import pytest
from xdist.scheduler import LoadGroupScheduling, LoadScopeScheduling  # type: ignore[import-untyped] # it has no types

_FOLDER: Final = "tests/cluster/"


class OneWorkerForTheCluster(LoadGroupScheduling):  # type: ignore[misc] # of a class without types
    """Tests go to whichever worker is free; those on the cluster all to the same."""

    def _split_scope(self, nodeid: str) -> str:
        return _FOLDER if nodeid.startswith(_FOLDER) else str(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return OneWorkerForTheCluster(config, log) if config.getvalue("dist") == "loadgroup" else None
