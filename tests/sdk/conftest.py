from collections.abc import Iterator

import pytest

from sdk.lanes import Asked, Lanes
from sdk.namespace import SdkNamespace, running


@pytest.fixture(scope="session")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SdkNamespace]:
    """The embedded namespace."""
    with running(tmp_path_factory.mktemp("sdk")) as up:
        yield up


@pytest.fixture(scope="session")
def lanes(
    request: pytest.FixtureRequest, namespace: SdkNamespace, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lanes]:
    """All operations of this run, under way."""
    asked = [found for item in request.session.items if (found := _asked(item))]
    lanes = Lanes(namespace, asked, tmp_path_factory.mktemp("sdk-programs"))
    yield lanes
    lanes.end()


def _asked(item: pytest.Item) -> Asked | None:
    if not isinstance(item, pytest.Function) or "lanes" not in item.fixturenames:
        return None
    params = item.callspec.params
    return str(params["operation"]), str(params["kind"]), str(params["sdk"])
