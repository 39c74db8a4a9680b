import pytest

from harness.clock import Clock
from harness.deliveries import (
    bodies,
    body_of,
    configure,
    contents,
    fill,
    locked_as,
    peeked,
    placed,
    receive,
    send,
    send_one,
    settlements,
    stored,
)
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model import stored_message
from partitionedqueue.model.errors import BrokerFault
from partitionedqueue.model.queue_spec import QueueStatus

LOOKED_AT_MOST = 16_384  # messages, by one call


def shown(broker: BlockingBroker, keys: QueueKeys, start: int, most: int, bytes_most: int = 1 << 30) -> list[int]:
    found = []
    for number, one in placed(
        broker.call(calls.peek(keys, from_sequence=start, most=most, bytes_most=bytes_most)).runs
    ):
        assert body_of(one) == b"message %d" % number
        found.append(number)
    return found


def test_peek_shows_locked_and_ready_messages_and_not_what_has_gone(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 600)
    received = receive(broker, keys, 300)
    broker.call(calls.complete(keys, locked_as(received, [*range(1, 257), 260, 262])))
    expected = [n for n in range(257, 601) if n not in (260, 262)]
    assert shown(broker, keys, 1, 1000) == expected
    assert shown(broker, keys, 261, 3) == [261, 263, 264]
    assert shown(broker, keys, 601, 3) == []


def test_peek_says_where_to_go_on_and_when_the_end_is_reached(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 600)
    first = broker.call(calls.peek(keys, most=250, bytes_most=1 << 30))
    assert len(placed(first.runs)) == 250
    assert first.next == 251
    assert [number for number, _, _ in peeked(broker, keys, start=first.next)] == list(range(251, 601))
    assert broker.call(calls.peek(keys, from_sequence=601, most=10, bytes_most=1 << 30)).next == 0
    assert broker.call(calls.peek(keys, from_sequence=2**48 - 1, most=10, bytes_most=1 << 30)).next == 0


def test_peek_stops_at_the_bytes_asked_for_but_shows_one(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 600)
    small, large = len(stored(b"message 1")), len(stored(b"message 255"))
    assert shown(broker, keys, 1, 600, bytes_most=3 * small) == [1, 2, 3]
    assert shown(broker, keys, 255, 600, bytes_most=3 * large) == [255, 256, 257]
    assert shown(broker, keys, 1, 600, bytes_most=0) == [1]


def test_a_peek_cut_short_by_bytes_goes_on_with_the_next_message(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 30)
    found, start = [], 1
    while start:
        part = broker.call(calls.peek(keys, from_sequence=start, most=1000, bytes_most=200))
        found += [number for number, _ in placed(part.runs)]
        start = part.next
    assert found == list(range(1, 31))


def test_peek_tells_states_and_shows_those_asked_for(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 4)
    send_one(broker, keys, b"message 5", scheduled_enqueue_time_ms=clock.now_ms + 1000)
    received = receive(broker, keys, 3)
    broker.call(calls.defer(keys, locked_as(received, [2])))
    assert [(n, state) for n, state, _ in peeked(broker, keys)] == [(1, 0), (2, 1), (3, 0), (4, 0), (5, 2)]
    for states, expected in (("a", [1, 3, 4]), ("d", [2]), ("s", [5]), ("ds", [2, 5]), ("sda", [1, 2, 3, 4, 5])):
        assert [n for n, _, _ in peeked(broker, keys, states=states)] == expected


def test_peek_tells_how_often_returned_and_deferred_messages_were_delivered(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    send(broker, keys, 3)
    for _ in range(2):
        broker.call(calls.abandon(keys, locked_as(receive(broker, keys, 2), [1, 2])))
    broker.call(calls.defer(keys, locked_as(receive(broker, keys, 2), [2])))
    runs = broker.call(calls.peek(keys, most=10, bytes_most=1 << 30)).runs
    assert {run.first: run.deliveries for run in runs}[3] == 0
    assert {run.first: run.deliveries for run in runs}[2] >= 2


def test_peek_within_a_session(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    for n in range(600):
        send_one(broker, keys, b"%d" % n, session_id="abc"[n % 3])
    assert [body_of(one) for _, _, one in peeked(broker, keys, session="b")] == [b"%d" % n for n in range(1, 600, 3)]
    assert peeked(broker, keys, session="nobody") == []


def test_one_peek_looks_at_a_bounded_number_of_messages(broker: BlockingBroker, keys: QueueKeys) -> None:
    fill(broker, keys, bodies(20_000))
    calls_made, start = 0, 1
    while start:
        part = broker.call(calls.peek(keys, from_sequence=start, most=1000, bytes_most=1 << 30, states="ds"))
        assert part.runs == []
        assert part.next == 0 or start < part.next <= start + LOOKED_AT_MOST
        start, calls_made = part.next, calls_made + 1
    assert calls_made > 1


def test_peek_has_the_times_of_what_it_shows(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    sent = []
    for n in range(300):
        sent.append(broker.call(calls.send(keys, bodies(1, n + 1))).enqueued_time_ms)
        clock.advance(n % 2)
    found: list[int] = []
    for run in broker.call(calls.peek(keys, most=1000, bytes_most=1 << 30)).runs:
        found += stored_message.enqueued_times(run.first, len(run.messages), run.marks)
    assert found == sent


def test_peek_changes_nothing_and_is_allowed_on_a_disabled_queue(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 5)
    broker.call(calls.complete(keys, locked_as(receive(broker, keys, 3), [2])))
    configure(broker, keys, status=QueueStatus.DISABLED)
    before = contents(broker)
    assert [n for n, _, _ in peeked(broker, keys)] == [1, 3, 4, 5]
    assert contents(broker) == before


def test_peek_shows_dead_letters(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 3)
    broker.call(calls.dead_letter(keys, settlements(receive(broker, keys))))
    assert peeked(broker, keys) == []
    assert len(peeked(broker, keys.dead_letters)) == 3


def test_nonsense_is_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    for words in ((0, 1, 0, "", ""), (1, 0, 0, "", ""), (1, 1001, 0, "", ""), (1, 1, -1, "", ""), (1, 1, 0, "ax", "")):
        with pytest.raises(BrokerFault, match="BADCALL"):
            broker.raw(("FCALL_RO", "pq_peek", 1, keys.state, *map(str, words)))
