"""Keeps tests that share something large on one worker of pytest-xdist, for `--dist loadgroup`: the cluster of
`tests/cluster`, the namespace of the SDKs' operations, the brokers of their partitions.

xdist's own groups do nothing under pytest 9.2 and newer, silently (pytest-xdist issue 1386): test by test, each worker
would bring up one of its own. It is the controller that decides this, and that reads the topmost conftest.py only: the
hook is imported there.
"""

from typing import Any, Final

import pytest
from xdist.scheduler import LoadGroupScheduling, LoadScopeScheduling  # type: ignore[import-untyped] # it has no types

_TOGETHER: Final = (
    "tests/cluster/",
    "tests/sdk/test_operations.py",
    "tests/sdk/test_partitions.py",
    "tests/sdk/test_eighty_partitions.py",
)


class OneWorkerForWhatIsShared(LoadGroupScheduling):  # type: ignore[misc] # of a class without types
    """Tests go to whichever worker is free; those that share something all to the same."""

    def _split_scope(self, nodeid: str) -> str:
        shared = next((start for start in _TOGETHER if nodeid.startswith(start)), None)
        return shared or str(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return OneWorkerForWhatIsShared(config, log) if config.getvalue("dist") == "loadgroup" else None
