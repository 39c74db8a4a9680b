"""Fixtures of tests that need an operator: one installation a module, and the image of the broker."""

from collections.abc import Iterator

import pytest

from harness.cluster.own import OwnCluster
from harness.operator_process import Installation

VERSION = "0.1.0"


@pytest.fixture(scope="module")
def image(own_cluster: OwnCluster) -> str:
    """The broker's image, known to every node."""
    return own_cluster.load("broker", version=VERSION)[0]


@pytest.fixture(scope="module")
def installation(own_cluster: OwnCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """What an operator needs around it."""
    made = Installation(own_cluster, tmp_path_factory.mktemp("operator"))
    yield made
    made.end()
