"""A claim log over a queue with sessions: a session is claimed as a whole, and nobody else's meanwhile."""

import random

import pytest

from harness.clock import Clock
from harness.consistency import check
from harness.deliveries import LOCK_MS, accept, configure, delivery_counts, placed, receive, send_one, settlements
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Received, SessionLock
from partitionedqueue.model.errors import SessionCannotBeLocked


@pytest.fixture(autouse=True)
def sessions(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)


def send_to(broker: BlockingBroker, keys: QueueKeys, session_ids: str) -> None:
    for session_id in session_ids:
        send_one(broker, keys, session_id=session_id)


def claim(
    broker: BlockingBroker, keys: QueueKeys, start: int, most: int, *, group: str = "g", room: int = 0
) -> list[int]:
    """Claim in a log that is opened; gives the sequence numbers from `start` on."""
    end = start
    while (claimed := broker.call(calls.claim(keys, group, "owner", LOCK_MS, start, most, room))).end > end:
        end = claimed.end
        if room:
            break
    return claimed_numbers(broker, keys, start, end, group)


def claimed_numbers(broker: BlockingBroker, keys: QueueKeys, start: int, end: int, group: str = "g") -> list[int]:
    found = broker.call(calls.claimed(keys, group, start, end))
    return [n for entry in found.entries for n in range(entry.first, entry.first + entry.count)]


def taken(received: Received) -> list[int]:
    return [number for number, _ in placed(received.runs)]


def opened(broker: BlockingBroker, keys: QueueKeys, group: str = "g", lease_ms: int = LOCK_MS) -> None:
    assert broker.call(calls.claim_open(keys, group, "owner", lease_ms)).sessions == 1


def acknowledge(broker: BlockingBroker, keys: QueueKeys, upto: int) -> None:
    while broker.call(calls.claim_acknowledge(keys, "g", "owner", upto)):
        pass


def next_session(broker: BlockingBroker, keys: QueueKeys) -> SessionLock | None:
    return broker.call(calls.accept_session(keys)).session


def test_sessions_are_claimed_one_after_the_other_each_in_its_order(broker: BlockingBroker, keys: QueueKeys) -> None:
    send_to(broker, keys, "baabbc")
    opened(broker, keys)
    assert claim(broker, keys, 0, 100) == [1, 4, 5, 2, 3, 6]
    assert broker.call(calls.totals(keys)).claimed == 6
    check(broker, keys.state, sessions=True)


def test_a_claimed_session_is_nobody_elses_until_all_of_it_is_acknowledged(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    send_to(broker, keys, "aabb")
    opened(broker, keys)
    assert claim(broker, keys, 0, 3) == [1, 2, 3]
    send_to(broker, keys, "a")
    assert next_session(broker, keys) is None
    for session_id in "ab":
        with pytest.raises(SessionCannotBeLocked):
            accept(broker, keys, session_id)
    acknowledge(broker, keys, 2)
    held = accept(broker, keys, "a")
    assert taken(receive(broker, keys, 10, session=held)) == [5]
    assert next_session(broker, keys) is None
    acknowledge(broker, keys, 3)
    held = accept(broker, keys)
    assert (held.session_id, taken(receive(broker, keys, 10, session=held))) == ("b", [4])
    check(broker, keys.state, sessions=True)


def test_what_another_receiver_holds_is_not_claimed(broker: BlockingBroker, keys: QueueKeys) -> None:
    send_to(broker, keys, "aabb")
    held = accept(broker, keys, "a")
    received = receive(broker, keys, 1, session=held)
    opened(broker, keys)
    assert claim(broker, keys, 0, 100) == [3, 4]
    broker.call(calls.complete(keys, settlements(received), session=held))
    broker.call(calls.release_session(keys, held))
    assert claim(broker, keys, 2, 100) == [2]
    acknowledge(broker, keys, 3)
    assert broker.call(calls.totals(keys)).messages == 0
    check(broker, keys.state, sessions=True)


def test_a_session_goes_on_where_its_claim_ended_also_while_it_is_held(broker: BlockingBroker, keys: QueueKeys) -> None:
    send_to(broker, keys, "ababab" * 60)
    opened(broker, keys)
    expected = [*range(1, 361, 2), *range(2, 361, 2)]
    assert claim(broker, keys, 0, 50) == expected[:50]
    assert claim(broker, keys, 50, 1000) == expected[50:]
    acknowledge(broker, keys, 360)
    assert broker.call(calls.totals(keys)).sessions_locked == 0
    check(broker, keys.state, sessions=True)


def test_claims_that_lapse_go_back_to_their_sessions_and_count(
    broker: BlockingBroker, keys: QueueKeys, clock: Clock
) -> None:
    send_to(broker, keys, "aaabbb")
    opened(broker, keys, lease_ms=1000)
    broker.call(calls.claim(keys, "g", "owner", 1000, 0, 5))
    acknowledge(broker, keys, 1)
    send_to(broker, keys, "a")
    clock.advance(1000)
    held = accept(broker, keys)
    received = receive(broker, keys, 10, session=held)
    assert held.session_id == "a"
    assert delivery_counts(received) == {2: 2, 3: 2, 7: 1}
    assert delivery_counts(receive(broker, keys, 10, session=accept(broker, keys, "b"))) == {4: 2, 5: 2, 6: 1}
    check(broker, keys.state, sessions=True)


def test_another_group_gets_what_lapsed(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send_to(broker, keys, "ab" * 100)
    opened(broker, keys, lease_ms=1000)
    broker.call(calls.claim(keys, "g", "owner", 1000, 0, 200))
    clock.advance(1000)
    opened(broker, keys, "h")
    found: list[int] = []
    while more := claim(broker, keys, len(found), 1000, group="h"):
        found += more
    assert sorted(found) == list(range(1, 201))
    for odd in (0, 1):
        of_one = [n for n in found if n % 2 == odd]
        assert of_one == sorted(of_one)
    check(broker, keys.state, sessions=True)


def test_bytes_bound_a_claim_of_sessions(broker: BlockingBroker, keys: QueueKeys) -> None:
    send_to(broker, keys, "aaaabbbb")
    each = broker.call(calls.totals(keys)).bytes // 8
    opened(broker, keys)
    assert claim(broker, keys, 0, 100, room=2 * each) == [1, 2]
    assert claim(broker, keys, 2, 100, room=3 * each) == [3, 4, 5]
    check(broker, keys.state, sessions=True)


def test_a_session_that_has_expired_is_not_held(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    opened(broker, keys)
    send_one(broker, keys, session_id="a", time_to_live_ms=10)
    clock.advance(10)
    assert claim(broker, keys, 0, 10) == []
    assert broker.call(calls.totals(keys)).sessions_locked == 0
    check(broker, keys.state, sessions=True)


def test_whatever_happens_each_session_is_read_in_order_by_one_at_a_time(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    """A group and receivers take turns; together they have every message once, each session in its order."""
    chosen = random.Random(7)
    sent: dict[str, list[int]] = {}
    got: dict[str, list[int]] = {}
    opened(broker, keys)
    names: dict[int, str] = {}
    position = 0
    for step in range(60):
        for _ in range(chosen.randrange(12)):
            name = chosen.choice("abcdefg")
            sent.setdefault(name, []).append(send_one(broker, keys, name.encode(), session_id=name))
        names = {number: name for name, several in sent.items() for number in several}
        held = next_session(broker, keys) if chosen.random() < 0.5 or step == 59 else None
        claimed = claim(broker, keys, position, chosen.randrange(1, 20) if step < 59 else 1000)
        for number in claimed:
            got.setdefault(names[number], []).append(number)
        if held:
            received = receive(broker, keys, 1000 if step == 59 else 3, session=held)
            got.setdefault(held.session_id, []).extend(taken(received))
            broker.call(calls.complete(keys, settlements(received), session=held))
            broker.call(calls.release_session(keys, held))
        position += len(claimed)
        if chosen.random() < 0.7 or step == 59:
            acknowledge(broker, keys, position)
    while claimed := claim(broker, keys, position, 1000):
        for number in claimed:
            got.setdefault(names[number], []).append(number)
        position += len(claimed)
        acknowledge(broker, keys, position)
    assert got == sent
    check(broker, keys.state, sessions=True)
