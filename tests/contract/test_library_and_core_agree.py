"""What Lua and Python both say is said alike."""

import re
from pathlib import Path

from partitionedqueue.broker import calls, refusals
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.library import library_text, library_version
from partitionedqueue.model import errors, limits

FUNCTIONS = Path(__file__).parents[2] / "broker-image/functions"


def test_every_file_of_the_library_is_included_once() -> None:
    included = re.findall(r"^--@include (\S+)$", (FUNCTIONS / "library.lua").read_text(), re.MULTILINE)
    files = {str(path.relative_to(FUNCTIONS)) for path in FUNCTIONS.rglob("*.lua")} - {"library.lua"}
    assert sorted(included) == sorted(files)
    assert "--@include" not in library_text()


def test_every_command_has_a_call_of_its_name_and_the_other_way_round() -> None:
    commands = set(re.findall(r"command\('pq_(\w+)'", library_text()))
    assert commands == {path.stem for path in (FUNCTIONS / "commands").glob("*.lua")}
    assert all(callable(getattr(calls, name, None)) for name in commands)


def test_every_command_file_states_its_contract() -> None:
    for path in (FUNCTIONS / "commands").glob("*.lua"):
        head = path.read_text().split("command(")[0]
        assert f"-- pq_{path.stem}: " in head
        assert "-- REPLY " in head, path.name


def test_every_refusal_of_the_library_is_an_error_of_the_domain() -> None:
    codes = set(re.findall(r"refusal\('([A-Z]+)'", library_text()))
    assert codes
    assert codes <= set(refusals.REFUSALS)
    assert all(issubclass(kind, errors.PartitionedQueueError) for kind in refusals.REFUSALS.values())


def test_figures_of_the_layout_agree() -> None:
    text = library_text()
    assert f"local SEGMENT = {limits.SEGMENT_MESSAGES} " in text
    assert f"local SENDS_REMEMBERED = {limits.SENDS_IN_FLIGHT_MAX}\n" in text
    assert f"whole(argv[1], 1, {limits.RECEIVE_MESSAGES_MAX})" in text
    assert f"whole(argv[2], 0, {limits.LOCK_DURATION_MS_MAX})" in text
    assert f"local SETTLEMENTS_MOST = {limits.SETTLEMENTS_MAX} " in text
    assert library_version() == "0.1.0"


def test_key_names_agree() -> None:
    keys = QueueKeys("flights")
    assert (keys.state, keys.segment(3), keys.times(3)) == ("pq:flights", "pq:flights:seg:3", "pq:flights:times:3")
    assert "queue .. ':seg:'" in library_text()
    assert "queue .. ':times:'" in library_text()
