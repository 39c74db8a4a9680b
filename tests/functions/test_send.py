import pytest

from harness.clock import Clock
from harness.deliveries import (
    bodies,
    configure,
    contents,
    delivery_counts,
    numbers,
    placed,
    receive,
    received_bodies,
    send,
    send_one,
    settlements,
    stored,
)
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Settlement
from partitionedqueue.model import stored_message
from partitionedqueue.model.errors import BrokerFault, EntityDisabled, QueueFull, SendForgotten, SessionRequired
from partitionedqueue.model.queue_spec import QueueStatus

MINUTE_MS = 60_000


def test_send_numbers_a_batch_without_gaps_over_segments(broker: BlockingBroker, keys: QueueKeys) -> None:
    firsts = [broker.call(calls.send(keys, bodies(100, start))).first for start in range(1, 1001, 100)]
    assert firsts == list(range(1, 1001, 100))
    assert numbers(receive(broker, keys, 1000)) == list(range(1, 1001))


def test_one_batch_may_span_many_segments(broker: BlockingBroker, keys: QueueKeys) -> None:
    broker.call(calls.send(keys, bodies(4000)))
    assert numbers(receive(broker, keys, 1000)) == list(range(1, 1001))


def test_a_repeated_send_is_stored_once(broker: BlockingBroker, keys: QueueKeys) -> None:
    one = [stored(b"a")]
    assert not broker.call(calls.send(keys, one, sender="s", number=1)).stored_before
    assert broker.call(calls.send(keys, one, sender="s", number=1)).stored_before
    assert not broker.call(calls.send(keys, one, sender="other", number=1)).stored_before
    assert broker.call(calls.totals(keys)).messages == 2


def test_a_send_that_was_passed_over_is_still_stored(broker: BlockingBroker, keys: QueueKeys) -> None:
    for number in (1, 3, 2):
        assert not broker.call(calls.send(keys, [stored(b"a")], sender="s", number=number)).stored_before
    for number in (1, 2, 3):
        assert broker.call(calls.send(keys, [stored(b"x")], sender="s", number=number)).stored_before
    assert broker.call(calls.totals(keys)).messages == 3


def test_a_send_too_old_to_tell_is_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    for number in range(1, 70):
        broker.call(calls.send(keys, [stored(b"a")], sender="s", number=number))
    assert broker.call(calls.send(keys, [stored(b"a")], sender="s", number=6)).stored_before
    with pytest.raises(SendForgotten):
        broker.call(calls.send(keys, [stored(b"a")], sender="s", number=5))
    assert broker.call(calls.totals(keys)).messages == 69


def test_a_repeated_send_is_recognised_for_twenty_minutes(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    broker.call(calls.send(keys, [stored(b"a")], sender="s", number=1))
    clock.advance(20 * MINUTE_MS)
    assert broker.call(calls.send(keys, [stored(b"a")], sender="s", number=1)).stored_before


def test_a_repeated_send_is_recognised_although_the_clock_was_set_back(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    broker.call(calls.send(keys, [stored(b"a")], sender="s", number=1))
    clock.advance(-MINUTE_MS)
    assert broker.call(calls.send(keys, [stored(b"a")], sender="s", number=1)).stored_before


def test_every_message_has_the_time_it_was_stored(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    sent = []
    for n in range(300):
        sent.append(broker.call(calls.send(keys, bodies(1, n + 1))).enqueued_time_ms)
        clock.advance(n % 3)
    found: list[int] = []
    for run in receive(broker, keys, 300).runs:
        found += stored_message.enqueued_times(run.first, len(run.messages), run.marks)
    assert found == sent
    assert sent[0] < sent[-1]


def test_a_full_broker_refuses_a_send_and_still_completes(broker: BlockingBroker, keys: QueueKeys) -> None:
    broker.call(calls.send(keys, bodies(10)))
    received = receive(broker, keys, 5)
    try:
        broker.raw(("CONFIG", "SET", "maxmemory", "1"))
        with pytest.raises(QueueFull, match="is full"):
            broker.call(calls.send(keys, bodies(1)))
        assert broker.call(calls.complete(keys, [Settlement(received.runs[0].lock, 1, 5)])) == []
        assert numbers(receive(broker, keys, 10)) == [6, 7, 8, 9, 10]
    finally:
        broker.raw(("CONFIG", "SET", "maxmemory", "0"))


@pytest.mark.parametrize("status", [QueueStatus.DISABLED, QueueStatus.SEND_DISABLED])
def test_send_to_a_disabled_queue_is_refused(broker: BlockingBroker, keys: QueueKeys, status: QueueStatus) -> None:
    configure(broker, keys, status=status)
    with pytest.raises(EntityDisabled):
        send_one(broker, keys)
    configure(broker, keys, status=QueueStatus.RECEIVE_DISABLED)
    assert send_one(broker, keys) == 1


def test_a_send_stored_before_its_queue_was_disabled_is_still_recognised(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    broker.call(calls.send(keys, [stored(b"a")], sender="s", number=1))
    configure(broker, keys, status=QueueStatus.DISABLED)
    assert broker.call(calls.send(keys, [stored(b"a")], sender="s", number=1)).stored_before


def test_a_session_queue_takes_no_message_without_a_session_and_no_batch_of_two(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    configure(broker, keys, sessions=True)
    refused = (
        [stored(b"a")],
        [stored(b"a", session_id="s"), stored(b"b")],
        [stored(b"a", session_id="s"), stored(b"b", session_id="t")],
    )
    for batch in refused:
        with pytest.raises(SessionRequired):
            broker.call(calls.send(keys, batch))
    assert broker.call(calls.totals(keys)).last == 0
    assert broker.call(calls.send(keys, [stored(b"a", session_id="s"), stored(b"b", session_id="s")])).first == 1


def test_a_queue_without_sessions_takes_messages_of_any_session(broker: BlockingBroker, keys: QueueKeys) -> None:
    broker.call(calls.send(keys, [stored(b"a", session_id="s"), stored(b"b", session_id="t"), stored(b"c")]))
    assert received_bodies(receive(broker, keys)) == [b"a", b"b", b"c"]


def test_nonsense_is_refused_and_stores_nothing(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1)
    before = contents(broker)
    good = stored(b"a")
    nonsense: tuple[tuple[bytes | str | int, ...], ...] = (
        ("", 0, ""),  # no message
        ("", "x", "", good),  # no number
        ("", -1, "", good),
        ("s", 1, b"12345678901", good),  # a fingerprint cut short
        ("s", 1, bytes(12), good, good),  # one for two messages
    )
    for words in nonsense:
        with pytest.raises(BrokerFault, match="BADCALL"):
            broker.raw(("FCALL", "pq_send", 1, keys.state, *words))
    assert contents(broker) == before


def test_bytes_that_are_no_stored_message_are_stored_as_they_are(broker: BlockingBroker, keys: QueueKeys) -> None:
    strange = [b"", b"x", stored(b"a")[:63], bytes(range(256))]
    broker.call(calls.send(keys, strange))
    received = receive(broker, keys)
    assert [one for _, one in placed(received.runs)] == strange
    broker.call(calls.dead_letter(keys, settlements(received), reason="strange"))
    broker.call(calls.resubmit(keys.dead_letters))
    assert broker.call(calls.totals(keys)).messages == 4
    receive(broker, keys, lock_ms=0)
    assert broker.call(calls.totals(keys)).bytes == 0


def test_a_message_sent_begins_without_deliveries(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 3)
    assert set(delivery_counts(receive(broker, keys)).values()) == {1}
