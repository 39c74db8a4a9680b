import json
from pathlib import Path

import pytest

from partitionedqueue.model.errors import BatchKeyConflict, PartitionKeyConflict
from partitionedqueue.model.message import Message
from partitionedqueue.model.partitioning import key_of_batch, partition_key_of, partition_of

VECTORS = Path(__file__).parents[3] / "docs/reference/partitioning-vectors.json"


def test_session_id_decides_before_the_partition_key() -> None:
    assert partition_key_of(Message(body=b"", session_id="s", partition_key="s", message_id="m")) == "s"


def test_message_id_decides_only_where_duplicates_are_detected() -> None:
    message = Message(body=b"", message_id="m")
    assert partition_key_of(message) is None
    assert partition_key_of(message, requires_duplicate_detection=True) == "m"


def test_an_empty_session_id_is_a_key() -> None:
    assert partition_key_of(Message(body=b"", session_id="")) == ""


def test_different_session_id_and_partition_key_are_refused() -> None:
    with pytest.raises(PartitionKeyConflict, match="SessionId 'a' and PartitionKey 'b' differ"):
        Message(body=b"", session_id="a", partition_key="b")


def test_a_batch_with_two_keys_is_refused() -> None:
    with pytest.raises(BatchKeyConflict, match="'a' and 'b'"):
        key_of_batch([Message(body=b"", partition_key="a"), Message(body=b"", partition_key="b")])


def test_a_batch_of_keyed_and_keyless_messages_is_refused() -> None:
    with pytest.raises(BatchKeyConflict, match="no key"):
        key_of_batch([Message(body=b"", partition_key="a"), Message(body=b"")])


def test_the_published_vectors_hold() -> None:
    vectors = json.loads(VECTORS.read_text())["vectors"]
    assert len(vectors) >= 16
    for vector in vectors:
        for partitions, expected in vector["partitions"].items():
            assert partition_of(vector["key"], int(partitions)) == expected


def test_keys_spread_evenly() -> None:
    counts = [0] * 16
    for n in range(16_000):
        counts[partition_of(f"N{n:05}", 16)] += 1
    assert min(counts) > 850
    assert max(counts) < 1150
