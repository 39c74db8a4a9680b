import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from partitionedqueue.model import limits
from partitionedqueue.model.duplicates import NOT_DETECTED, fingerprint, fingerprints
from partitionedqueue.model.message import Message

VECTORS = Path(__file__).parents[3] / "docs/reference/duplicate-detection-vectors.json"
text = st.text(max_size=128)


def of(message_id: str | None, key: str | None = None) -> bytes:
    return fingerprint(Message(body=b"", message_id=message_id, partition_key=key))


def test_the_published_vectors_hold() -> None:
    vectors = json.loads(VECTORS.read_text())["vectors"]
    assert len(vectors) >= 12
    for vector in vectors:
        assert fingerprint(Message(body=b"", **vector["message"])).hex() == vector["fingerprint"]


@given(text, text, text, text)
def test_only_the_same_id_under_the_same_key_has_the_same_fingerprint(id1: str, key1: str, id2: str, key2: str) -> None:
    assert (of(id1, key1) == of(id2, key2)) == ((id1, key1) == (id2, key2))


def test_what_the_key_ends_with_is_not_taken_for_what_the_id_begins_with() -> None:
    assert of("bc", "a") != of("c", "ab")
    assert of("\u0000", "a") != of("", "a\u0000")


def test_the_session_id_is_the_key_where_there_is_one() -> None:
    assert fingerprint(Message(body=b"", message_id="1", session_id="s")) == of("1", "s")
    assert fingerprint(Message(body=b"", message_id="1", session_id="")) == of("1") == of("1", "")


def test_the_body_does_not_matter() -> None:
    assert fingerprint(Message(body=b"a", message_id="1")) == fingerprint(Message(body=b"b", message_id="1"))


def test_a_message_without_an_id_is_nobodys_duplicate_and_an_empty_id_is_one() -> None:
    assert of(None) == of(None, "k") == NOT_DETECTED
    assert of("") != NOT_DETECTED


def test_a_batch_has_one_fingerprint_a_message_in_its_order() -> None:
    messages = [Message(body=b"", message_id=name) for name in ("a", None, "b")]
    joined = fingerprints(messages)
    assert len(joined) == 3 * limits.FINGERPRINT_BYTES
    assert joined == of("a") + NOT_DETECTED + of("b")
    assert fingerprints([]) == b""
