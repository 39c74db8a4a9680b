"""What a manifest says of a queue is acted upon."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.pq_command import Pq, manifest, write


@pytest.fixture
def with_sessions(tmp_path: Path) -> Path:
    return write(tmp_path / "sessions.yaml", manifest(requiresSession=True))


def received(pq: Pq, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in pq.done("receive", "letters", *words, "--json").splitlines()]


def test_messages_of_a_session_are_received_by_its_name_in_their_order(pq: Pq, with_sessions: Path) -> None:
    pq.up(with_sessions)
    for session in ("a", "b"):
        pq.done("send", "letters", "--session-id", session, given="".join(f"{session}{n}\n" for n in range(250)))
    assert [one["body"] for one in received(pq, "--session", "b", "-n", "300")] == [f"b{n}" for n in range(250)]
    assert len(pq.done("peek", "letters", "--session", "a", "-n", "1000").splitlines()) == 250
    assert pq.done("peek", "letters", "--session", "b") == ""
    found = received(pq, "--next-session", "-n", "2")
    assert [(one["session_id"], one["body"]) for one in found] == [("a", "a0"), ("a", "a1")]
    assert [one["body"] for one in received(pq, "--next-session", "--delete")] == ["a2"]
    assert pq.status()["messages"] == 247


def test_what_a_session_gives_back_comes_again(pq: Pq, with_sessions: Path) -> None:
    pq.up(with_sessions)
    pq.done("send", "letters", "--session-id", "a", "--body", "x")
    assert received(pq, "--session", "a", "--no-complete")[0]["delivery_count"] == 1
    assert received(pq, "--session", "a")[0]["delivery_count"] == 2
    nothing = pq("receive", "letters", "--next-session")
    assert (nothing.returncode, nothing.stderr) == (0, "No message is ready in queue letters\n")


def test_sessions_are_asked_for_where_there_are_some_and_only_there(
    pq: Pq, with_sessions: Path, tmp_path: Path
) -> None:
    pq.up(with_sessions)
    assert "has sessions: name one (--session ID), or take the next (--next-session)" in pq("receive", "letters").stderr
    without = pq("send", "letters", "--body", "without")
    assert (without.returncode, without.stdout) == (2, "")
    assert "the queue has sessions, and the message is of none: give --session-id, or" in without.stderr
    assert pq.status()["messages"] == 0
    assert pq("receive", "letters", "--dead-letters", "--count", "2").returncode == 0, (
        "a dead-letter queue is read without sessions"
    )
    pq.done("down")
    (tmp_path / "other").mkdir()
    other = Pq(tmp_path / "other")
    try:
        other.up(write(tmp_path / "plain.yaml", manifest(partitioned=False)))
        assert "has no sessions" in other("receive", "letters", "--session", "a").stderr
    finally:
        other.end()


@pytest.mark.parametrize("sessions", [True, False])
def test_what_up_says_to_try_works(pq: Pq, tmp_path: Path, sessions: bool) -> None:
    pq.up(write(tmp_path / "one.yaml", manifest(partitioned=False, requiresSession=sessions)))
    assert "1 partition on 127.0.0.1 (port " in pq.said.read_text()
    [said] = [line for line in pq.said.read_text().splitlines() if line.startswith("Try: ")]
    said_and_done = [pq.done(*words.split()[1:]) for words in said.removeprefix("Try: ").split("; ")]
    assert said_and_done[0] == "Sent 1 message to queue letters\n"
    assert said_and_done[1].endswith("hello\n")


def test_duplicates_are_dropped_also_after_a_restart_of_everything(pq: Pq, tmp_path: Path) -> None:
    file = write(tmp_path / "once.yaml", manifest(requiresDuplicateDetection=True))
    pq.up(file)
    for body in ("first", "second"):
        assert pq.done("send", "letters", "--message-id", "id", "--body", body) == "Sent 1 message to queue letters\n"
    pq.done("down")
    pq.up(file)
    pq.done("send", "letters", "--message-id", "id", "--body", "third")
    assert [one["body"] for one in received(pq, "-n", "5")] == ["first"]


def test_a_status_takes_effect_with_the_next_start(pq: Pq, tmp_path: Path) -> None:
    pq.up(write(tmp_path / "open.yaml", manifest(partitioned=False)))
    pq.done("send", "letters", "--body", "x")
    pq.done("down")
    pq.up(write(tmp_path / "closed.yaml", manifest(partitioned=False, status="SendDisabled")))
    refused = pq("send", "letters", "--body", "x")
    assert refused.returncode == 1
    assert "SendDisabled" in refused.stderr
    assert len(received(pq)) == 1


@pytest.mark.parametrize("length", ["P10675199DT2H48M5.4775807S", "P104249991375D", "P999999999999999D"])
def test_a_time_to_live_beyond_any_clock_is_one_that_never_ends(pq: Pq, tmp_path: Path, length: str) -> None:
    """TimeSpan.MaxValue, as Azure has it for none; then beyond what a broker counts in ms, and beyond 63 bits."""
    pq.up(write(tmp_path / "long.yaml", manifest(partitioned=False, defaultMessageTimeToLive=length)))
    pq.done("send", "letters", "--body", "queue's")
    pq.done("send", "letters", "--body", "own", "--time-to-live", length)
    pq.done("send", "letters", given="x" * 5000)
    assert [one["body"] for one in received(pq, "-n", "5")] == ["queue's", "own", "x" * 5000]
    assert pq.status()["messages"] == 0


@pytest.mark.parametrize("field", ["requiresSession", "requiresDuplicateDetection"])
def test_what_is_for_ever_stays(pq: Pq, small: Path, tmp_path: Path, field: str) -> None:
    pq.up(small)
    pq.done("down")
    other = manifest(partitioned=False)
    other["spec"][field] = True
    changed = pq("up", "-f", write(tmp_path / "changed.yaml", other))
    assert changed.returncode == 1
    assert f"was made with {field}: false and cannot become true" in changed.stderr


def test_only_what_is_not_acted_upon_is_said_to_be_so(pq: Pq, tmp_path: Path) -> None:
    acted_upon: dict[str, Any] = {
        "maxDeliveryCount": 3,
        "defaultMessageTimeToLive": "PT1H",
        "deadLetteringOnMessageExpiration": True,
        "requiresSession": True,
        "lockDuration": "PT2M",
    }
    pq.up(write(tmp_path / "new.yaml", manifest(partitioned=False, **acted_upon)))
    assert "does not act on" not in pq.said.read_text()
    pq.done("down")
    pq.up(
        write(
            tmp_path / "kept.yaml", manifest(partitioned=False, **acted_upon, autoDeleteOnIdle="PT1H", forwardTo=None)
        )
    )
    assert "this version keeps, but does not act on: autoDeleteOnIdle\n" in pq.said.read_text()


def test_status_tells_of_queues_of_the_folder_that_are_not_up(pq: Pq, tmp_path: Path) -> None:
    pq.up(write(tmp_path / "parcels.yaml", manifest("parcels", partitioned=False)))
    assert "Not up" not in pq.done("status")
    pq.done("down")
    pq.up(write(tmp_path / "letters.yaml", manifest(partitioned=False)))
    assert f"Not up, their data stays in {pq.data}: parcels (pq up with their file starts them)\n" in pq.done("status")
