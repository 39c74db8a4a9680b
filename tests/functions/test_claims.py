from typing import Any

import pytest

from harness.clock import Clock
from harness.consistency import check
from harness.deliveries import (
    LOCK_MS,
    bodies,
    configure,
    delivery_counts,
    locked_as,
    numbers,
    placed,
    receive,
    send,
    send_one,
    settlements,
    stored,
)
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Claimed
from partitionedqueue.model import stored_message
from partitionedqueue.model.errors import (
    BrokerFault,
    ClaimAhead,
    ClaimFenced,
    ClaimLost,
    EntityDisabled,
)
from partitionedqueue.model.queue_spec import QueueStatus


def claim(broker: BlockingBroker, keys: QueueKeys, start: int, most: int, group: str = "g") -> Claimed:
    return broker.call(calls.claim(keys, group, "owner", LOCK_MS, start, most))


def opened(broker: BlockingBroker, keys: QueueKeys, lease_ms: int = LOCK_MS, group: str = "g") -> None:
    broker.call(calls.claim_open(keys, group, "owner", lease_ms))


def claimed_numbers(broker: BlockingBroker, keys: QueueKeys, start: int, end: int, group: str = "g") -> list[int]:
    found = broker.call(calls.claimed(keys, group, start, end))
    return [n for entry in found.entries for n in range(entry.first, entry.first + entry.count)]


def test_a_range_of_a_claim_log_gives_the_same_messages_each_time(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1000)
    opened(broker, keys)
    assert claim(broker, keys, 0, 600) == Claimed(600, 400)
    assert claim(broker, keys, 0, 600) == Claimed(600, 400)
    assert claimed_numbers(broker, keys, 100, 600) == list(range(101, 601))
    assert claimed_numbers(broker, keys, 100, 600) == list(range(101, 601))


def test_a_receiver_sees_nothing_that_is_claimed(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 10)
    opened(broker, keys)
    claim(broker, keys, 0, 6)
    assert numbers(receive(broker, keys, 10)) == [7, 8, 9, 10]
    assert broker.call(calls.totals(keys)).claimed == 6


def test_returned_messages_are_claimed_with_their_deliveries(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 10)
    broker.call(calls.abandon(keys, settlements(receive(broker, keys, 3))))
    opened(broker, keys)
    assert claim(broker, keys, 0, 10).end == 10
    entries = broker.call(calls.claimed(keys, "g", 0, 10)).entries
    assert [(e.first, e.count, e.deliveries) for e in entries] == [(1, 3, 1), (4, 7, 0)]


@pytest.mark.parametrize("steps", [[1000], [1, 999], [256, 512, 1000], [300, 301, 700, 1000]])
def test_acknowledging_frees_messages_and_bytes(broker: BlockingBroker, keys: QueueKeys, steps: list[int]) -> None:
    send(broker, keys, 1000)
    opened(broker, keys)
    claim(broker, keys, 0, 1000)
    for upto in steps:
        while broker.call(calls.claim_acknowledge(keys, "g", "owner", upto)):
            pass
        rest = list(range(upto + 1, 1001))
        assert claimed_numbers(broker, keys, upto, 1000) == rest
        assert broker.call(calls.totals(keys)).bytes == sum(map(len, bodies(len(rest), upto + 1)))
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.claimed) == (1000 - steps[-1], 1000 - steps[-1])


def test_a_large_claim_and_its_acknowledgement_go_in_bounded_calls(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 40_000)
    opened(broker, keys)
    end, rounds = 0, 0
    while end < 40_000:
        end = claim(broker, keys, 0, 40_000).end
        rounds += 1
    assert rounds > 1
    rounds = 1
    while broker.call(calls.claim_acknowledge(keys, "g", "owner", 40_000)):
        rounds += 1
    assert rounds > 1
    totals = broker.call(calls.totals(keys))
    assert (totals.messages, totals.bytes, totals.claimed) == (0, 0, 0)


def test_a_newer_owner_fences_the_older(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 10)
    opened(broker, keys)
    broker.call(calls.claim_open(keys, "g", "newer", LOCK_MS))
    refused: list[Call[Any]] = [
        calls.claim(keys, "g", "owner", LOCK_MS, 0, 1),
        calls.claim_renew(keys, "g", "owner", LOCK_MS),
        calls.claim_acknowledge(keys, "g", "owner", 1),
    ]
    for call in refused:
        with pytest.raises(ClaimFenced):
            broker.call(call)


def test_a_lapsed_lease_lets_others_have_the_messages_and_counts(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send(broker, keys, 600)
    opened(broker, keys)
    broker.call(calls.claim(keys, "g", "owner", 1, 0, 500))
    clock.advance(1)
    received = receive(broker, keys, 600)
    assert numbers(received) == list(range(1, 601))
    assert received.runs[0].delivery_count == 2
    found = broker.call(calls.claimed(keys, "g", 0, 500))
    assert (found.lost, found.entries) == (500, [])
    refused: list[Call[Any]] = [
        calls.claim(keys, "g", "owner", 1, 0, 1),
        calls.claim_acknowledge(keys, "g", "owner", 500),
    ]
    for call in refused:
        with pytest.raises(ClaimLost):
            broker.call(call)


def test_a_lapsed_lease_alone_takes_nothing_away(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 10)
    opened(broker, keys)
    broker.call(calls.claim(keys, "g", "owner", 1, 0, 10))
    clock.advance(1)
    send(broker, keys, 1)
    opened(broker, keys)
    assert claimed_numbers(broker, keys, 0, 10) == list(range(1, 11))


def test_after_a_loss_the_count_goes_on_behind_it(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 10)
    opened(broker, keys)
    broker.call(calls.claim(keys, "g", "owner", 1, 0, 10))
    clock.advance(1)
    received = receive(broker, keys, 4)
    opened(broker, keys)
    assert claim(broker, keys, 2, 3).end == 13
    assert claimed_numbers(broker, keys, 2, 13) == [5, 6, 7]
    broker.call(calls.complete(keys, settlements(received)))
    opened(broker, keys, group="empty")
    assert claim(broker, keys, 13, 100).end == 16
    assert claim(broker, keys, 16, 100).end == 16


def test_a_position_beyond_the_log_is_refused(broker: BlockingBroker, keys: QueueKeys) -> None:
    opened(broker, keys)
    with pytest.raises(ClaimAhead):
        claim(broker, keys, 5, 1)
    with pytest.raises(ClaimAhead):
        broker.call(calls.claim_acknowledge(keys, "g", "owner", 5))


def test_a_whole_segment_is_counted_right_after_the_next_has_gone(broker: BlockingBroker, keys: QueueKeys) -> None:
    broker.call(calls.send(keys, [b"0123456789"] * 768))
    opened(broker, keys)
    claim(broker, keys, 0, 256)
    broker.call(calls.receive(keys, most=256, lock_ms=0))
    assert broker.call(calls.claim_acknowledge(keys, "g", "owner", 256)) == 0
    assert broker.call(calls.totals(keys)).bytes == 2560


def test_a_group_that_was_never_opened_says_so(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1)
    with pytest.raises(ClaimAhead, match="no claim log here"):
        claim(broker, keys, 0, 1, group="new")
    with pytest.raises(BrokerFault):
        broker.call(calls.claim_open(keys, "g", "", LOCK_MS))


def test_a_queue_that_hands_nothing_out_is_not_claimed_from(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, status=QueueStatus.RECEIVE_DISABLED)
    opened(broker, keys)
    with pytest.raises(EntityDisabled):
        claim(broker, keys, 0, 1)


def test_a_claim_ends_with_the_message_that_reaches_its_bytes(broker: BlockingBroker, keys: QueueKeys) -> None:
    sizes = [*([1000] * 300), 50_000, *([10] * 200)]
    batch = [stored(bytes(size)) for size in sizes]
    for at in range(0, len(batch), 100):
        broker.call(calls.send(keys, batch[at : at + 100]))
    each = len(batch[0])
    returned = receive(broker, keys, 3)
    opened(broker, keys)
    end, found = 0, []
    broker.call(calls.abandon(keys, settlements(returned)))
    for room in (1, each, 2 * each, 2 * each + 1, 290 * each, 12 * each, 2**40):
        claimed = broker.call(calls.claim(keys, "g", "owner", LOCK_MS, end, 1000, room))
        found.append(claimed.end - end)
        end = claimed.end
        assert claimed.bytes == sum(map(len, batch[end - found[-1] : end]))
    assert found == [1, 1, 2, 3, 290, 4, 200]
    assert claimed_numbers(broker, keys, 0, end) == list(range(1, 502))
    check(broker, keys.state)


def test_claims_that_are_given_back_count_a_delivery_and_the_last_one_dead_letters(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, max_deliveries=2)
    send(broker, keys, 3)
    for times in (1, 2):
        broker.call(calls.claim_open(keys, f"g{times}", "owner", 1000))
        broker.call(calls.claim(keys, f"g{times}", "owner", 1000, 0, 10))
        found = broker.call(calls.claimed(keys, f"g{times}", 0, 3)).entries
        assert [(entry.count, entry.deliveries) for entry in found] == [(3, times - 1)]
        clock.advance(1000)
    assert receive(broker, keys).runs == []
    assert broker.call(calls.totals(keys)).dead_letters == 3


def test_what_is_deferred_scheduled_or_expired_is_not_claimed(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, dead_letter_expired=True)
    batch = bodies(3)
    batch += [stored(b"message 4", time_to_live_ms=10)]
    batch += [stored(b"message 5", scheduled_enqueue_time_ms=clock.now_ms + 1000)]
    broker.call(calls.send(keys, batch))
    broker.call(calls.defer(keys, locked_as(receive(broker, keys, 2), [2])))
    clock.advance(10)
    opened(broker, keys)
    assert claim(broker, keys, 0, 10).end == 1
    assert claimed_numbers(broker, keys, 0, 1) == [3]
    assert broker.call(calls.totals(keys)).dead_letters == 1


def test_what_is_claimed_does_not_expire_until_it_is_given_back(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, dead_letter_expired=True)
    for _ in range(3):
        send_one(broker, keys, time_to_live_ms=1000)
    broker.call(calls.claim_open(keys, "g", "owner", 5000))
    broker.call(calls.claim(keys, "g", "owner", 5000, 0, 2))
    clock.advance(4999)
    assert broker.call(calls.claim_acknowledge(keys, "g", "owner", 1)) == 0
    assert receive(broker, keys).runs == []
    clock.advance(1)
    assert receive(broker, keys).runs == []
    dead = placed(receive(broker, keys.dead_letters).runs)
    assert sorted(stored_message.first_sequence_number(one) for _, one in dead) == [2, 3]


def test_claims_that_lapse_at_their_last_delivery_are_dead_lettered(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    configure(broker, keys, max_deliveries=1)
    send(broker, keys, 300)
    opened(broker, keys, 1000)
    broker.call(calls.claim(keys, "g", "owner", 1000, 0, 300))
    clock.advance(1000)
    while 0 <= (received := receive(broker, keys)).ask_again_ms <= clock.now_ms:
        assert received.runs == []
    assert received.runs == []
    assert broker.call(calls.totals(keys)).dead_letters == 300
    assert set(delivery_counts(receive(broker, keys.dead_letters, 300)).values()) == {1}
