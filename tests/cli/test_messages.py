import json
from pathlib import Path

from harness.pq_command import Pq


def test_what_is_sent_is_seen_by_peek_counted_by_status_and_received_once(pq: Pq, letters: Path) -> None:
    pq.up(letters)
    assert pq.done("send", "letters", "--body", "hello") == "Sent 1 message to queue letters\n"
    assert pq.done("send", "letters", given="one\ntwo\nthree\n") == "Sent 3 messages to queue letters\n"

    assert pq.status()["messages"] == 4
    assert len(pq.done("peek", "letters").splitlines()) == 4

    received = [json.loads(line) for line in pq.done("receive", "letters", "-n", "10", "--json").splitlines()]
    assert sorted(one["body"] for one in received) == ["hello", "one", "three", "two"]
    assert {one["delivery_count"] for one in received} == {1}
    assert received[0]["body"] == "hello", "the oldest message comes first"
    assert pq.status()["messages"] == 0
    nothing = pq("receive", "letters")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "No message is ready in queue letters\n")


def test_every_property_of_a_message_arrives(pq: Pq, small: Path) -> None:
    pq.up(small)
    options = ("--message-id", "m1", "--session-id", "s", "--partition-key", "s", "--subject", "greeting")
    more = ("--content-type", "text/plain", "--correlation-id", "c", "--property", "colour=blue", "--property", "size=")
    pq.done("send", "letters", "--body", "grüß dich", *options, *more)
    [one] = [json.loads(line) for line in pq.done("receive", "letters", "--json").splitlines()]
    assert one["body"] == "grüß dich"
    assert one["properties"] == {"colour": "blue", "size": ""}
    assert [one[name] for name in ("message_id", "session_id", "partition_key")] == ["m1", "s", "s"]
    assert [one[name] for name in ("subject", "content_type", "correlation_id")] == ["greeting", "text/plain", "c"]


def test_messages_with_one_key_stay_in_their_order_in_one_partition(pq: Pq, letters: Path) -> None:
    pq.up(letters)
    pq.done("send", "letters", "--partition-key", "k", given="".join(f"{n}\n" for n in range(250)))
    received = [json.loads(line) for line in pq.done("receive", "letters", "-n", "300", "--json").splitlines()]
    assert [one["body"] for one in received] == [str(n) for n in range(250)]
    assert len({one["partition"] for one in received}) == 1


def test_keyless_messages_spread_over_all_partitions(pq: Pq, letters: Path) -> None:
    pq.up(letters)
    pq.done("send", "letters", given="x\n" * 2048)
    there = [one["messages"] for one in pq.status()["partitions"]]
    assert (sum(there), len(there)) == (2048, 16)
    assert min(there) >= 64  # they travel in companies of up to so many


def test_no_complete_gives_the_messages_back_and_counts_the_delivery(pq: Pq, small: Path) -> None:
    pq.up(small)
    pq.done("send", "letters", "--body", "again")
    pq.done("receive", "letters", "--no-complete")
    assert pq.status()["ready"] == 1
    assert json.loads(pq.done("receive", "letters", "--json"))["delivery_count"] == 2


def test_delete_takes_no_more_than_asked_for(pq: Pq, letters: Path) -> None:
    pq.up(letters)
    pq.done("send", "letters", given="x\n" * 40)
    assert len(pq.done("receive", "letters", "--delete", "-n", "7").splitlines()) == 7
    assert pq.status()["messages"] == 33


def test_peek_goes_on_from_a_sequence_number(pq: Pq, letters: Path) -> None:
    pq.up(letters)
    pq.done("send", "letters", "--partition-key", "k", given="a\nb\nc\n")
    second = [json.loads(line) for line in pq.done("peek", "letters", "--json").splitlines()][1]
    rest = pq.done("peek", "letters", "--json", "--from", str(second["sequence_number"]))
    assert [json.loads(line)["body"] for line in rest.splitlines()] == ["b", "c"]


def test_a_batch_is_one_send_and_json_lines_set_what_they_name(pq: Pq, letters: Path, tmp_path: Path) -> None:
    pq.up(letters)
    lines = [{"body": "a", "session_id": "s", "properties": {"n": 1}}, {"body": "b", "session_id": "s"}]
    file = tmp_path / "lines.json"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    pq.done("send", "letters", "--json-lines", "--batch", "--file", file)
    found = [json.loads(line) for line in pq.done("receive", "letters", "-n", "5", "--json").splitlines()]
    assert [(one["body"], one["session_id"]) for one in found] == [("a", "s"), ("b", "s")]
    assert found[0]["properties"] == {"n": 1}


def test_brokers_are_told_in_partition_order(pq: Pq, letters: Path) -> None:
    pq.up(letters)
    told = pq.done("brokers", "letters").strip().split(",")
    assert told == [one["address"] for one in pq.status()["partitions"]]
    assert len(set(told)) == 16
