"""Duplicate detection: pq_send with fingerprints."""

import pytest

from harness.clock import Clock
from harness.deliveries import configure, emptied, receive, settlements
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import SendResult
from partitionedqueue.model.duplicates import fingerprints
from partitionedqueue.model.errors import QueueFull
from partitionedqueue.model.message import Message
from partitionedqueue.model.stored_message import encode

WINDOW_MS = 60_000


@pytest.fixture
def detecting(broker: BlockingBroker, keys: QueueKeys) -> BlockingBroker:
    """A broker of a queue that detects duplicates."""
    configure(broker, keys, dedupe_ms=WINDOW_MS)
    return broker


def message(message_id: str | None, **fields: object) -> Message:
    return Message(body=(message_id or "none").encode(), message_id=message_id, **fields)  # type: ignore[arg-type]  # a message's own fields


def give(broker: BlockingBroker, keys: QueueKeys, *messages: Message, sender: str = "", number: int = 0) -> SendResult:
    encoded = [encode(one) for one in messages]
    return broker.call(calls.send(keys, encoded, sender=sender, number=number, fingerprints=fingerprints(messages)))


def test_a_duplicate_is_accepted_and_dropped(detecting: BlockingBroker, keys: QueueKeys) -> None:
    assert give(detecting, keys, message("a")).first == 1
    again = give(detecting, keys, message("a"))
    assert (again.first, again.duplicates, again.stored_before) == (0, [0], False)
    assert give(detecting, keys, message("b")).first == 2
    assert emptied(detecting, keys) == [b"a", b"b"]


def test_the_places_of_duplicates_in_a_batch_are_told_and_the_others_are_numbered_without_gaps(
    detecting: BlockingBroker, keys: QueueKeys
) -> None:
    give(detecting, keys, message("a"))
    result = give(detecting, keys, message("b"), message("a"), message("c"), message("b"))
    assert (result.first, result.duplicates) == (2, [1, 3])
    assert emptied(detecting, keys) == [b"a", b"b", b"c"]


def test_messages_without_an_id_are_nobodys_duplicates(detecting: BlockingBroker, keys: QueueKeys) -> None:
    assert give(detecting, keys, message(None), message(None)).duplicates == []
    assert detecting.call(calls.totals(keys)).messages == 2


def test_the_same_id_under_another_partition_key_is_another_message(detecting: BlockingBroker, keys: QueueKeys) -> None:
    give(detecting, keys, message("a", partition_key="k"))
    assert give(detecting, keys, message("a", partition_key="l")).first == 2
    assert give(detecting, keys, message("a", partition_key="k")).first == 0


def test_an_id_is_remembered_although_its_message_has_gone(detecting: BlockingBroker, keys: QueueKeys) -> None:
    give(detecting, keys, message("a"))
    detecting.call(calls.complete(keys, settlements(receive(detecting, keys))))
    assert give(detecting, keys, message("a")).first == 0


def test_an_id_is_remembered_for_the_window(detecting: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    give(detecting, keys, message("a"))
    clock.advance(WINDOW_MS - 1)
    assert give(detecting, keys, message("a")).first == 0


def test_an_id_is_forgotten_some_time_after_the_window(
    detecting: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    give(detecting, keys, message("a"))
    clock.advance(2 * WINDOW_MS + 1)
    assert give(detecting, keys, message("a")).first == 2


def test_ids_are_counted_and_the_count_falls_when_they_are_forgotten(
    detecting: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    give(detecting, keys, *(message(f"m{n}") for n in range(500)))
    assert detecting.call(calls.totals(keys)).remembered == 500
    clock.advance(3 * WINDOW_MS)
    give(detecting, keys, message("later"))
    assert detecting.call(calls.totals(keys)).remembered == 1


def test_a_scheduled_send_counts(detecting: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    later = clock.now_ms + 1000
    give(detecting, keys, message("a", scheduled_enqueue_time_ms=later))
    assert give(detecting, keys, message("a")).first == 0
    clock.set(later)
    assert emptied(detecting, keys) == [b"a"]


def test_a_refused_batch_is_not_remembered(detecting: BlockingBroker, keys: QueueKeys) -> None:
    configure(detecting, keys, quota_bytes=1)
    with pytest.raises(QueueFull):
        give(detecting, keys, message("a"))
    configure(detecting, keys, quota_bytes=0)
    assert give(detecting, keys, message("a")).first == 1


def test_a_repeated_send_is_no_duplicate_of_itself(detecting: BlockingBroker, keys: QueueKeys) -> None:
    assert give(detecting, keys, message("a"), sender="s", number=1).first == 1
    assert give(detecting, keys, message("a"), sender="s", number=1).stored_before
    assert give(detecting, keys, message("a"), sender="s", number=2).duplicates == [0]


def test_without_detection_nothing_is_dropped(broker: BlockingBroker, keys: QueueKeys) -> None:
    give(broker, keys, message("a"))
    assert give(broker, keys, message("a")).first == 2
    assert broker.call(calls.totals(keys)).remembered == 0


def test_a_longer_window_holds_for_what_is_remembered_already(
    detecting: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    give(detecting, keys, message("a"))
    configure(detecting, keys, dedupe_ms=10 * WINDOW_MS)
    give(detecting, keys, message("b"))
    clock.advance(9 * WINDOW_MS)
    assert give(detecting, keys, message("b")).first == 0
