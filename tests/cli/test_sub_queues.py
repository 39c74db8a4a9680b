"""Dead letters, purge and resubmit, as a person meets them."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.pq_command import Pq, manifest, wait_until, write


@pytest.fixture
def impatient(tmp_path: Path) -> Path:
    """A manifest of a queue whose messages are dead letters after two deliveries, or when they expire."""
    fields: dict[str, Any] = {"maxDeliveryCount": 2, "deadLetteringOnMessageExpiration": True}
    return write(tmp_path / "impatient.yaml", manifest(**fields))


def received(pq: Pq, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in pq.done("receive", *words, "--json").splitlines()]


def peeked(pq: Pq, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in pq.done("peek", *words, "--json").splitlines()]


def test_a_message_delivered_too_often_is_a_dead_letter_and_may_be_resubmitted(pq: Pq, impatient: Path) -> None:
    pq.up(impatient)
    pq.done("send", "letters", "--body", "poison", "--property", "colour=blue")
    for _ in range(2):
        pq.done("receive", "letters", "--no-complete")
    assert pq("receive", "letters").stderr == "No message is ready in queue letters\n"
    assert (pq.status()["messages"], pq.status()["dead_letters"]) == (0, 1)
    assert "DEAD-LETTERS" in pq.done("status")

    [dead] = peeked(pq, "letters", "--dead-letters")
    assert dead["properties"]["DeadLetterReason"] == "MaxDeliveryCountExceeded"
    assert peeked(pq, "letters/$deadletterqueue") == [dead]
    line = pq.done("peek", "letters/$DeadLetterQueue")
    assert "poison" in line
    assert "colour=blue" in line
    assert "DeadLetterReason=MaxDeliveryCountExceeded" in line

    assert pq.done("resubmit", "letters") == "Resubmitted 1 message of queue letters/$DeadLetterQueue\n"
    [back] = received(pq, "letters")
    assert (back["body"], back["properties"], back["delivery_count"]) == ("poison", {"colour": "blue"}, 1)
    assert pq.status()["dead_letters"] == 0


def test_an_expired_message_is_a_dead_letter_though_nobody_asks_for_it(pq: Pq, impatient: Path) -> None:
    pq.up(impatient)
    pq.done("send", "letters", "--time-to-live", "PT1S", given="a\nb\nc\n")
    wait_until(lambda: pq.status()["dead_letters"] == 3)
    [one] = received(pq, "letters/$DeadLetterQueue")
    assert one["properties"]["DeadLetterReason"] == "TTLExpiredException"
    assert len(received(pq, "letters", "--dead-letters", "-n", "5")) == 2
    assert pq("receive", "letters", "--dead-letters").stderr == (
        "No message is ready in queue letters/$DeadLetterQueue\n"
    )


def test_dead_letters_are_resubmitted_by_their_sequence_numbers(pq: Pq, impatient: Path) -> None:
    pq.up(impatient)
    pq.done("send", "letters", given="".join(f"{n}\n" for n in range(20)))
    for _ in range(2):
        pq.done("receive", "letters", "-n", "20", "--no-complete")
    dead = peeked(pq, "letters", "--dead-letters", "-n", "20")
    assert len(dead) == 20
    chosen = dead[3:8]
    said = pq.done("resubmit", "letters", *(str(one["sequence_number"]) for one in chosen))
    assert said == "Resubmitted 5 messages of queue letters/$DeadLetterQueue\n"
    assert sorted(one["body"] for one in peeked(pq, "letters")) == sorted(one["body"] for one in chosen)
    again = pq("resubmit", "letters", str(chosen[0]["sequence_number"]))
    assert again.returncode == 1
    assert len(again.stderr.splitlines()) == 1


def test_a_scheduled_message_is_peeked_as_such_counted_and_received_when_its_time_has_come(
    pq: Pq, letters: Path
) -> None:
    pq.up(letters)
    pq.done("send", "letters", "--body", "much later", "--schedule", "2100-01-01T00:00:00Z")
    assert [one["state"] for one in peeked(pq, "letters")] == ["scheduled"]
    assert "much later  (scheduled for 2100-01-01T00:00:00.000+00:00)" in pq.done("peek", "letters")
    assert (pq.status()["scheduled"], pq.status()["ready"]) == (1, 0)
    pq.done("send", "letters", "--body", "soon", "--schedule", "1")
    wait_until(lambda: pq.status()["ready"] == 1)
    assert [one["body"] for one in received(pq, "letters", "-n", "5")] == ["soon"]


def test_purge_removes_what_it_is_told_to(pq: Pq, letters: Path) -> None:
    pq.up(letters)
    pq.done("send", "letters", given="x\n" * 300)
    pq.done("send", "letters", "--schedule", "P1D", given="x\n" * 20)
    assert pq.done("purge", "letters", "--state", "scheduled") == "Purged 20 messages of queue letters\n"
    assert (pq.status()["messages"], pq.status()["scheduled"]) == (300, 0)
    assert pq.done("purge", "letters") == "Purged 300 messages of queue letters\n"
    assert pq.status()["messages"] == 0
    assert pq.done("purge", "letters", "--dead-letters") == "Purged 0 messages of queue letters/$DeadLetterQueue\n"


def test_a_sub_queue_that_does_not_exist_is_said(pq: Pq, small: Path) -> None:
    pq.up(small)
    result = pq("receive", "letters/$Dead")
    assert result.returncode == 1
    assert "there is no 'letters/$Dead'; the sub-queues of letters are 'letters/$DeadLetterQueue'" in result.stderr
    assert "no queue letters/$DeadLetterQueue" in pq("send", "letters/$DeadLetterQueue", "--body", "x").stderr
