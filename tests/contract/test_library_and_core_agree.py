"""What Lua and Python both say is said alike."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from partitionedqueue.broker import calls, refusals
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.keys import DEAD_LETTERS, TRANSFERS, QueueKeys
from partitionedqueue.broker.library import library_text, library_version
from partitionedqueue.broker.replies import Place, SessionLock
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model import errors, limits, stored_message
from partitionedqueue.model.queue_spec import QueueSpec, QueueStatus

FUNCTIONS = Path(__file__).parents[2] / "broker-image/functions"
COMMANDS = {path.stem: path.read_text() for path in sorted((FUNCTIONS / "commands").glob("*.lua"))}
KEYS = QueueKeys("flights")
SESSION = SessionLock("s", 1)
EVERY_CALL: tuple[Call[Any], ...] = (
    calls.about(),
    calls.configure(KEYS, partition=0, partitions=1),
    calls.settings(KEYS),
    calls.send(KEYS, [b""]),
    calls.send_pushed(KEYS, [b""] * 300, guess=0),
    calls.receive(KEYS, most=1),
    calls.receive_places(KEYS, most=1),
    calls.bodies(KEYS, Place(lock=1, first=1, delivery_count=1, marks=b"", count=256)),
    calls.complete(KEYS, []),
    calls.abandon(KEYS, []),
    calls.defer(KEYS, []),
    calls.dead_letter(KEYS, []),
    calls.renew_lock(KEYS, []),
    calls.receive_deferred(KEYS, [1]),
    calls.cancel_scheduled(KEYS, [1]),
    calls.peek(KEYS, most=1, bytes_most=1),
    calls.states(KEYS, 1, 1),
    calls.accept_session(KEYS),
    calls.renew_session(KEYS, SESSION),
    calls.release_session(KEYS, SESSION),
    calls.get_session_state(KEYS, SESSION),
    calls.set_session_state(KEYS, SESSION, None),
    calls.list_sessions(KEYS),
    calls.purge(KEYS),
    calls.delete_batch(KEYS, most=1, enqueued_before_ms=1),
    calls.resubmit(KEYS),
    calls.apply(KEYS, []),
    calls.totals(KEYS),
    calls.next_due(KEYS),
    calls.sweep(KEYS),
    calls.claim_open(KEYS, "g", "o", 1),
    calls.claim(KEYS, "g", "o", 1, 0, 1),
    calls.claim_renew(KEYS, "g", "o", 1),
    calls.claim_acknowledge(KEYS, "g", "o", 1),
    calls.claimed(KEYS, "g", 0, 1),
)
OF_THE_LIBRARY = tuple(call for call in EVERY_CALL if str(call.words[0]).startswith("FCALL"))
PAST_LUA = tuple(call for call in EVERY_CALL if call.pushes or call not in OF_THE_LIBRARY)
REDIS_OWN = {"OOM", "MISCONF", "LOADING", "BUSY", "NOAUTH", "WRONGPASS", "NOPERM"}


def head_of(command: str) -> str:
    """What stands above the code: the contract."""
    lines = COMMANDS[command].splitlines()
    return "\n".join(line for line in lines[: next(i for i, x in enumerate(lines) if not x.startswith("--"))])


def codes_in(text: str) -> set[str]:
    return set(re.findall(r"refusal\('([A-Z]+)'", text))


def test_every_file_of_the_library_is_included_once() -> None:
    included = re.findall(r"^--@include (\S+)$", (FUNCTIONS / "library.lua").read_text(), re.MULTILINE)
    files = {str(path.relative_to(FUNCTIONS)) for path in FUNCTIONS.rglob("*.lua")} - {"library.lua"}
    assert sorted(included) == sorted(files)
    assert "--@include" not in library_text()


def test_every_command_has_a_file_and_a_call_of_its_name() -> None:
    commands = set(re.findall(r"command\('pq_(\w+)'", library_text()))
    assert commands == set(COMMANDS)
    assert commands == {str(call.words[1]).removeprefix("pq_") for call in OF_THE_LIBRARY}


def test_no_call_is_left_out_above() -> None:
    makers = {name for name, made in vars(calls).items() if getattr(made, "__module__", "") == calls.__name__}
    makers = {name for name in makers if name[0].islower()}
    assert len(makers) == len(EVERY_CALL)


@pytest.mark.parametrize("call", OF_THE_LIBRARY, ids=lambda call: call.words[1])
def test_calls_that_only_read_are_commands_that_only_read(call: Call[Any]) -> None:
    read_only = "\nend, READS)\n" in COMMANDS[str(call.words[1]).removeprefix("pq_")]
    assert call.words[0] == ("FCALL_RO" if read_only else "FCALL")
    assert call.repeatable or not read_only


@pytest.mark.parametrize("call", PAST_LUA, ids=lambda call: call.words[0])
def test_past_lua_segments_are_written_only_with_a_command_behind(call: Call[Any]) -> None:
    *before, last = call.commands
    if before:
        assert (before[0], last) == (("MULTI",), ("EXEC",))
        assert [(words[0], words[1]) for words in call.pushes] == [
            ("RPUSH", KEYS.segment(n)) for n in range(len(call.pushes))
        ]
        assert before[1:] == [*call.pushes, call.words]
        assert call.words[0] == "FCALL"
    else:
        assert call.words[:2] in {("LRANGE", KEYS.segment(0)), ("HGET", KEYS.state)}
        assert call.repeatable


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_file_begins_with_its_contract(command: str) -> None:
    head = head_of(command)
    assert head.startswith(f"-- pq_{command}: ")
    assert "\n-- REPLY " in head
    assert "\n-- KEYS " in head or command == "about"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_refusal_that_a_command_words_itself_is_in_its_contract(command: str) -> None:
    head = head_of(command)
    heads = [head, *(head_of(other) for other in re.findall(r"what pq_(\w+) refuses", head))]
    assert codes_in(COMMANDS[command]) - {"BADCALL"} <= set(re.findall(r"\b[A-Z]{5,}\b", " ".join(heads)))


def test_every_refusal_of_the_library_is_an_error_of_the_domain_and_the_other_way_round() -> None:
    assert codes_in(library_text()) == set(refusals.REFUSALS) - REDIS_OWN
    assert all(issubclass(kind, errors.PartitionedQueueError) for kind in refusals.REFUSALS.values())


def test_figures_of_the_layout_and_of_calls_agree() -> None:
    text = library_text()
    for name, figure in (
        ("SEGMENT", limits.SEGMENT_MESSAGES),
        ("SENDS_REMEMBERED", limits.SENDS_IN_FLIGHT_MAX),
        ("SETTLEMENTS_MOST", limits.SETTLEMENTS_MAX),
        ("OPERATIONS_MOST", limits.TRANSACTION_OPERATIONS_MAX),
        ("STATE_BYTES_MOST", limits.SESSION_STATE_BYTES_MAX),
        ("RECEIVE_BYTES", limits.RECEIVE_BYTES_DEFAULT),
        ("FINGERPRINT", limits.FINGERPRINT_BYTES),
        ("SECTIONS_AT", stored_message.HEADER_BYTES),
    ):
        assert re.findall(rf"^(?:local )?{name} = (\d+)\b", text, re.MULTILINE) == [str(figure)], name
    for command, words in (
        ("receive", f"whole(argv[1], 1, {limits.RECEIVE_MESSAGES_MAX})"),
        ("receive", f"whole(argv[2], -1, {limits.LOCK_DURATION_MS_MAX})"),
        ("peek", f"whole(argv[2], 1, {limits.PEEK_MESSAGES_MAX})"),
        ("list_sessions", f"whole(argv[2], 1, {limits.SESSIONS_LISTED_MAX})"),
        ("receive_deferred", f"#argv > {3 + limits.SEQUENCES_MAX}"),
        ("cancel_scheduled", f"#argv > {limits.SEQUENCES_MAX}"),
        ("resubmit", f"#argv > {2 + limits.SEQUENCES_MAX}"),
    ):
        assert words in COMMANDS[command], words


def bounds_of_settings() -> dict[str, int]:
    """The highest that pq_configure takes of each setting that is a number."""
    (bounds,) = re.findall(r"^local BOUNDS = \{(.*?)^\}", COMMANDS["configure"], re.MULTILINE | re.DOTALL)
    return {
        name: int(base) ** int(power or 1)
        for name, base, power in re.findall(r"(\w+) = \{ \d+, (\d+)(?: \^ (\d+))? \}", bounds)
    }


def test_bounds_of_settings_hold_all_that_a_queue_may_say() -> None:
    highest = bounds_of_settings()
    assert highest.pop("quota_bytes") >= max(limits.SIZES_GB_CONVENTIONAL) * 2**30
    assert highest == {
        "lock_ms": limits.LOCK_DURATION_MS_MAX,
        "max_deliveries": limits.MAX_DELIVERY_COUNT_MAX,
        "ttl_ms": limits.BROKER_NUMBER_MAX,
        "dead_letter_expired": 1,
        "sessions": 1,
        "dedupe_ms": limits.DUPLICATE_DETECTION_WINDOW_MS_MAX,
    }


def test_what_a_broker_is_told_of_the_longest_of_everything_is_within_its_bounds() -> None:
    longest = QueueSpec(
        name="flights",
        enable_partitioning=False,
        size_gb=max(limits.SIZES_GB_CONVENTIONAL),
        lock_duration_ms=limits.LOCK_DURATION_MS_MAX,
        max_delivery_count=limits.MAX_DELIVERY_COUNT_MAX,
        default_message_time_to_live_ms=limits.TIME_MS_MAX,
        requires_duplicate_detection=True,
        duplicate_detection_history_time_window_ms=limits.DUPLICATE_DETECTION_WINDOW_MS_MAX,
    )
    words = BrokerSettings.of(longest).words()
    told = dict(zip(words[::2], words[1::2], strict=True))
    highest = bounds_of_settings()
    assert set(told) == {*highest, "status"}
    for name, bound in highest.items():
        assert 0 <= int(told[name]) <= bound, name


def test_times_beyond_what_a_broker_keeps_are_capped_wherever_one_is_made() -> None:
    text = library_text()
    assert re.findall(r"^NEVER = (.*)$", text, re.MULTILINE) == ["2 ^ 48 - 1"]
    made = re.findall(r"^.*\bnow \+ ttl_ms\b.*$", text, re.MULTILINE)
    assert made
    assert all("min(now + ttl_ms, NEVER - 1)" in line for line in made)


def test_the_library_gives_its_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", library_version())


def test_places_and_flags_of_a_stored_message_agree() -> None:
    names = "HAS_SESSION_ID", "HAS_TIME_TO_LIVE", "IS_SCHEDULED", "HAS_CHANGES"
    figures = ", ".join(str(getattr(stored_message, name)) for name in names)
    assert f"HAS_SESSION, HAS_TTL, IS_SCHEDULED, HAS_CHANGES = {figures}\n" in library_text()


def test_key_names_agree() -> None:
    text = library_text()
    assert (KEYS.state, KEYS.segment(3), KEYS.times(3)) == ("pq:flights", "pq:flights:seg:3", "pq:flights:times:3")
    for words in ("queue .. ':seg:'", "queue .. ':times:'", "queue .. ':segments'", "queue .. ':wake'"):
        assert words in text
    assert f"'{DEAD_LETTERS}'" in text
    assert f"'{TRANSFERS}'" in text


def test_settings_have_the_same_names_and_statuses_the_same_meaning() -> None:
    (names,) = re.findall(r"^local NAMES = \{(.*?)\}", library_text(), re.MULTILINE | re.DOTALL)
    told = {field.name for field in dataclasses.fields(BrokerSettings)}
    assert set(re.findall(r"'(\w+)'", names)) == told | {"partition", "partitions", "given"}
    for rest, stops in (("SENDING", "Send"), ("RECEIVING", "Receive")):
        (allowed,) = re.findall(rf"^{rest} = \{{(.*?)\}}", library_text(), re.MULTILINE)
        assert set(re.findall(r"(\w+) = true", allowed)) == {
            status.value for status in QueueStatus if status.value not in ("Disabled", f"{stops}Disabled")
        }
