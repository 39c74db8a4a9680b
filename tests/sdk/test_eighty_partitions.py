"""A queue of eighty partitions: found promptly, and sessions over all of them in each of Microsoft's SDKs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.redis_servers import running_brokers
from sdk.gateways import PARTITIONS, Bench, bench
from sdk.operations import SDKS
from sdk.programs import Program, SdkNotHere, sdk
from sdk.promptness import assert_found_promptly

SESSIONS = (
    "session_named",
    "session_next",
    "session_none_available",
    "session_already_locked",
    "session_order",
    "session_state",
    "session_peek",
    "session_deferred",
    "session_dead_letter",
    "session_list",
    "session_id_required",
    "session_receiver_required",
)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A queue of eighty partitions."""
    folder = tmp_path_factory.mktemp("wide")
    with running_brokers(folder / "brokers", 5 * PARTITIONS) as brokers, bench(brokers, folder) as found:
        found.make("plain")
        found.make("sessions", requiresSession=True, deadLetteringOnMessageExpiration=True)
        found.start_gateway()
        yield found


def test_a_single_message_in_any_of_eighty_partitions_is_found_promptly(wide: Bench) -> None:
    assert_found_promptly(wide)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", SDKS)
def test_sessions_work_over_eighty_partitions_in_each_sdk(wide: Bench, name: str, tmp_path: Path) -> None:
    try:
        program = Program(sdk(name), tmp_path / "program.log")
    except SdkNotHere as error:
        pytest.skip(str(error))
    place = {
        **dict.fromkeys(("connection", "connection_wrong_key", "connection_expired", "connection_listen"), ""),
        "connection": wide.connection(),
        **dict.fromkeys(("queue", "brief", "missing"), "plain"),
        "sessions": "sessions",
    }
    try:
        failed = {}
        for operation in SESSIONS:
            outcome = program.run(operation, place)
            if outcome.outcome == "failed":
                failed[operation] = outcome.said
    finally:
        program.end()
    assert not failed
