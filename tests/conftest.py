import os

import hypothesis
import pytest

from harness import servers
from harness.cluster.scheduling import (
    pytest_xdist_make_scheduler,  # noqa: F401 - a hook: the tests of tests/cluster stay on one worker
)
from sdk.matrix import pytest_terminal_summary  # noqa: F401 - a hook: what each SDK can do is printed at the end

# A busy machine fails no property: how long an example takes says nothing of whether it holds.
hypothesis.settings.register_profile(
    "busy machines", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("busy machines")

# Java is started often here and never runs for long: compiling for hours of work costs more than all the rest.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--server", help=f"run the brokers on another server than PATH's: {', '.join(servers.NAMES)}, or a path"
    )


def pytest_configure(config: pytest.Config) -> None:
    chosen = config.getoption("--server")
    if chosen:
        os.environ[servers.CHOSEN] = str(chosen)  # brokers that a test's child processes start use it as well
        try:
            servers.chosen_path()
        except servers.ServerNotHere as error:
            raise pytest.UsageError(str(error)) from error


@pytest.fixture(scope="module", params=servers.NAMES)
def server(request: pytest.FixtureRequest) -> servers.Server:
    """Each server in turn that a broker may run on."""
    try:
        return servers.server(request.param)
    except servers.ServerNotHere as error:
        pytest.skip(str(error))
