"""Data of every released library, taken over by today's: all that was there is there, and goes on."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import layouts
from harness.clock import Clock, clocked_library
from harness.deliveries import PEEK_BYTES, contents, delivery_counts, placed, receive, stored
from harness.layouts import Expected
from harness.redis_servers import running_broker
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.operations import CompleteOperation
from partitionedqueue.broker.replies import Received, SessionLock, Settlement
from partitionedqueue.model.errors import BrokerTooNew, ClaimFenced, ClaimLost, TryAgain
from partitionedqueue.model.stored_message import enqueued_times

CASES = [(version, name) for version in layouts.VERSIONS for name in layouts.expected(version)]
LOCK_MS = 300_000


class Taken:
    """One queue of an upgraded broker, and what must be in it."""

    def __init__(self, broker: BlockingBroker, clock: Clock, queue: Expected) -> None:
        self.broker, self.clock, self.queue, self.keys = broker, clock, queue, queue.keys

    def receive_all(self, lock_ms: int = LOCK_MS) -> list[Received]:
        """Receive until nothing more comes, whatever a call does at most."""
        found = []
        while True:
            received = receive(self.broker, self.keys, 1000, lock_ms)
            found.append(received)
            if not received.runs and not 0 <= received.ask_again_ms <= received.now_ms:
                return found


@pytest.fixture(params=CASES, ids=[f"{version}-{name}" for version, name in CASES])
def taken(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Taken]:
    version, name = request.param
    with layouts.upgraded(layouts.FOLDER / version, tmp_path / "data") as (broker, clock):
        yield Taken(broker, clock, layouts.expected(version)[name])


def peeked(taken: Taken) -> dict[int, tuple[int, bytes]]:
    """Sequence number, enqueued time and stored form of all that peek shows."""
    found: dict[int, tuple[int, bytes]] = {}
    start = 1
    while start:
        shown = taken.broker.call(calls.peek(taken.keys, from_sequence=start, most=1000, bytes_most=PEEK_BYTES))
        for run in shown.runs:
            times = enqueued_times(run.first, len(run.messages), run.marks)
            found |= {run.first + i: (times[i], one) for i, one in enumerate(run.messages)}
        start = shown.next
    return found


def single_locks(queue: Expected) -> list[Settlement]:
    return [Settlement(row.lock, number, number) for number, row in queue.of("locked").items()]


def test_the_totals_are_right(taken: Taken) -> None:
    queue, totals = taken.queue, taken.broker.call(calls.totals(taken.keys))
    assert totals.messages == len(queue.rows)
    assert totals.bytes == sum(len(queue.stored(number)) for number in queue.rows)
    assert totals.last == queue.last
    assert (totals.partition, totals.partitions) == ((3, 16) if queue.configured else (0, 0))
    assert totals.claimed == len(queue.of("claimed"))
    assert totals.locked == len(queue.of("locked"))
    assert totals.ready == len(queue.of("ready"))


def test_every_message_is_shown_with_its_time(taken: Taken) -> None:
    taken.broker.call(calls.totals(taken.keys))
    wanted = {
        number: (row.enqueued_time_ms, taken.queue.stored(number)) for number, row in sorted(taken.queue.rows.items())
    }
    assert peeked(taken) == wanted


def test_a_command_that_only_reads_shows_all_or_asks_for_patience(taken: Taken) -> None:
    try:
        shown = peeked(taken)
    except TryAgain:
        return
    assert shown.keys() == taken.queue.rows.keys()


def test_ready_messages_are_received_in_order_with_their_deliveries(taken: Taken) -> None:
    wanted = [(number, taken.queue.stored(number)) for number in sorted(taken.queue.of("ready"))]
    received = taken.receive_all()
    assert sorted(entry for one in received for entry in placed(one.runs)) == wanted
    if "lapsed" not in str(
        taken.queue.groups
    ):  # what lapsed comes back bit by bit, before or after what stands behind it
        assert [entry for one in received for entry in placed(one.runs)] == wanted
    counts = {number: count for one in received for number, count in delivery_counts(one).items()}
    assert counts == {number: row.deliveries + 1 for number, row in taken.queue.of("ready").items()}
    times = {
        run.first + i: at
        for one in received
        for run in one.runs
        for i, at in enumerate(enqueued_times(run.first, len(run.messages), run.marks))
    }
    assert times == {number: row.enqueued_time_ms for number, row in taken.queue.of("ready").items()}


def test_lock_tokens_of_before_complete_what_they_hold_and_once_only(taken: Taken) -> None:
    locks = single_locks(taken.queue)
    assert taken.broker.call(calls.complete(taken.keys, locks)) == []
    assert taken.broker.call(calls.complete(taken.keys, locks)) == list(range(len(locks)))
    totals = taken.broker.call(calls.totals(taken.keys))
    assert (totals.locked, totals.messages) == (0, len(taken.queue.rows) - len(locks))
    wanted = set(taken.queue.rows) - {lock.first for lock in locks}
    assert peeked(taken).keys() == wanted
    assert totals.bytes == sum(len(taken.queue.stored(number)) for number in wanted)


def test_lock_tokens_of_before_abandon_what_they_hold(taken: Taken) -> None:
    locks = single_locks(taken.queue)
    assert taken.broker.call(calls.abandon(taken.keys, locks)) == []
    assert taken.broker.call(calls.totals(taken.keys)).locked == 0
    counts = {number: count for one in taken.receive_all() for number, count in delivery_counts(one).items()}
    both = taken.queue.of("ready") | taken.queue.of("locked")
    assert counts == {number: row.deliveries + 1 for number, row in both.items()}


def test_locks_of_before_expire_when_they_were_given_until_and_not_before(taken: Taken) -> None:
    taken.receive_all(0)
    for name, group in taken.queue.groups.items():
        if not group.get("lapsed"):
            taken.broker.call(calls.claim_renew(taken.keys, name, group["owner"], 10 * LOCK_MS))
    locked = taken.queue.of("locked")
    for until in sorted({row.until_ms for row in locked.values()}):
        taken.clock.set(until - 1)
        assert not [run for one in taken.receive_all() for run in one.runs]
        taken.clock.set(until)
        counts = {number: count for one in taken.receive_all() for number, count in delivery_counts(one).items()}
        due = {number: row.deliveries + 1 for number, row in locked.items() if row.until_ms == until}
        assert counts == due


def test_locks_of_before_can_be_renewed(taken: Taken) -> None:
    locks = single_locks(taken.queue)
    renewed = taken.broker.call(calls.renew_lock(taken.keys, locks, lock_ms=LOCK_MS))
    assert renewed.refused == []
    taken.clock.set(renewed.locked_until_ms - 1)
    assert taken.broker.call(calls.complete(taken.keys, locks[::2])) == []
    taken.clock.set(renewed.locked_until_ms)
    assert taken.broker.call(calls.complete(taken.keys, locks[1::2])) == list(range(len(locks[1::2])))


def test_nothing_that_was_settled_before_can_be_settled_again(taken: Taken) -> None:
    gone = sorted(set(range(1, taken.queue.last + 1)) - taken.queue.rows.keys())
    dead = [Settlement(run, number, number) for number in gone[:: max(1, len(gone) // 20)] for run in range(1, 12)]
    assert taken.broker.call(calls.complete(taken.keys, dead)) == list(range(len(dead)))


def test_claims_of_before_are_where_they_were_and_leave_with_their_acknowledgement(taken: Taken) -> None:
    for name, group in taken.queue.groups.items():
        if group.get("lapsed"):
            continue
        found = taken.broker.call(calls.claimed(taken.keys, name, group["base"], group["next"]))
        assert (found.base, found.next, found.lost) == (group["base"], group["next"], group["lost"])
        assert [n for e in found.entries for n in range(e.first, e.first + e.count)] == group["numbers"]
        deliveries = {n: e.deliveries for e in found.entries for n in range(e.first, e.first + e.count)}
        assert deliveries == {number: row.deliveries for number, row in taken.queue.of("claimed").items()}
        middle = (group["base"] + group["next"]) // 2
        for upto in (middle, group["next"]):
            while taken.broker.call(calls.claim_acknowledge(taken.keys, name, group["owner"], upto)):
                pass
        totals = taken.broker.call(calls.totals(taken.keys))
        assert (totals.claimed, totals.messages) == (0, len(taken.queue.rows) - len(group["numbers"]))
        rest = taken.queue.rows.keys() - set(group["numbers"])
        assert totals.bytes == sum(len(taken.queue.stored(number)) for number in rest)


def test_a_claim_log_goes_on_behind_what_it_held_and_fences_who_had_it(taken: Taken) -> None:
    for name, group in taken.queue.groups.items():
        if group.get("lapsed"):
            continue
        log = taken.broker.call(calls.claim_open(taken.keys, name, "job-2", LOCK_MS))
        assert (log.base, log.next, log.lost) == (group["base"], group["next"], group["lost"])
        with pytest.raises(ClaimFenced):
            taken.broker.call(calls.claim_acknowledge(taken.keys, name, group["owner"], group["next"]))
        claimed = taken.broker.call(calls.claim(taken.keys, name, "job-2", LOCK_MS, log.next, 10))
        found = taken.broker.call(calls.claimed(taken.keys, name, log.next, claimed.end)).entries
        numbers = [n for e in found for n in range(e.first, e.first + e.count)]
        assert numbers == sorted(taken.queue.of("ready"))[:10]


def test_claims_that_lapsed_before_are_lost_to_their_group(taken: Taken) -> None:
    for name, group in taken.queue.groups.items():
        if not group.get("lapsed"):
            continue
        taken.receive_all()
        with pytest.raises(ClaimLost):
            taken.broker.call(calls.claim_acknowledge(taken.keys, name, group["owner"], group["next"]))
        log = taken.broker.call(calls.claim_open(taken.keys, name, "job-2", LOCK_MS))
        assert (log.base, log.next, log.lost) == (group["next"],) * 3


def test_a_group_whose_claims_lapsed_can_be_opened_at_once(taken: Taken) -> None:
    for name, group in taken.queue.groups.items():
        for _ in range(10):
            try:
                log = taken.broker.call(calls.claim_open(taken.keys, name, "job-2", LOCK_MS))
                break
            except TryAgain:
                continue
        else:
            pytest.fail("the giving back does not end")
        if log.lost == group["lost"]:  # a lapsed lease alone takes nothing away
            assert log.next == group["next"]
        else:
            assert log == type(log)(group["next"], group["next"], group["next"])


def test_a_send_repeated_after_the_upgrade_is_stored_once(taken: Taken) -> None:
    for sender, told in taken.queue.senders.items():
        for number in range(1, max(told["stored"]) + 1):
            sent = taken.broker.call(calls.send(taken.keys, [stored(b"again")], sender=sender, number=number))
            assert (sent.first == 0) == (number in told["stored"])
        last = taken.broker.call(calls.totals(taken.keys)).last
        for expected in (last + 1, 0):
            following = calls.send(taken.keys, [stored(b"next")], sender=sender, number=max(told["stored"]) + 1)
            assert taken.broker.call(following).first == expected


def test_it_goes_on_behind_what_was_there(taken: Taken) -> None:
    first = taken.queue.last + 1
    assert taken.broker.call(calls.send(taken.keys, [taken.queue.stored(first + i) for i in range(700)])).first == first
    found = [entry for one in taken.receive_all() for entry in placed(one.runs)]
    numbers = sorted(taken.queue.of("ready")) + list(range(first, first + 700))
    assert sorted(found) == [(number, taken.queue.stored(number)) for number in numbers]


def test_a_send_past_lua_may_be_the_first_call_of_all(taken: Taken) -> None:
    """Its bodies are in the lists before the library sees the old data."""
    first = taken.queue.last + 1
    pushed = [taken.queue.stored(first + i) for i in range(300)]
    assert taken.broker.call(calls.send_pushed(taken.keys, pushed, guess=taken.queue.last)).first == first
    wanted = {number: taken.queue.stored(number) for number in [*taken.queue.rows, *range(first, first + 300)]}
    assert {number: one for number, (_, one) in peeked(taken).items()} == wanted
    for name, group in taken.queue.groups.items():
        if not group.get("lapsed"):
            while taken.broker.call(calls.claim_acknowledge(taken.keys, name, group["owner"], group["next"])):
                pass
    assert taken.broker.call(calls.complete(taken.keys, single_locks(taken.queue))) == []
    received = [entry for one in taken.receive_all(0) for entry in placed(one.runs)]
    numbers = sorted(taken.queue.of("ready")) + list(range(first, first + 300))
    assert sorted(received) == [(number, wanted[number]) for number in numbers]
    assert taken.broker.call(calls.totals(taken.keys)).bytes == 0


def test_when_all_is_settled_nothing_is_left(taken: Taken) -> None:
    """Every segment, mark and run of before is freed: what is left is the state of an empty queue."""
    assert taken.broker.call(calls.complete(taken.keys, single_locks(taken.queue))) == []
    for name, group in taken.queue.groups.items():
        if not group.get("lapsed"):
            while taken.broker.call(calls.claim_acknowledge(taken.keys, name, group["owner"], group["next"])):
                pass
    left = -(taken.queue.last % -256)  # fill the last segment, so that it can go
    if left:
        taken.broker.call(calls.send(taken.keys, [stored(b"the last")] * left))
    taken.receive_all(0)
    totals = taken.broker.call(calls.totals(taken.keys))
    assert (totals.messages, totals.bytes, totals.locked, totals.claimed) == (0, 0, 0, 0)
    names = {bytes(name).decode() for name in taken.broker.raw(("KEYS", f"{taken.keys.state}*"))[0]}
    assert {name for name in names if ":seg" in name or ":times" in name or ":returned" in name} == set()
    fields = {bytes(name).decode() for name in taken.broker.raw(("HKEYS", taken.keys.state))[0]}
    assert {name for name in fields if name[0] in "rbg" and name[1:].isdigit()} == set()


@pytest.mark.parametrize("version", layouts.VERSIONS)
def test_the_upgrade_survives_a_crash_at_once(version: str, tmp_path: Path) -> None:
    """What the first call has made of the old data is what the next start finds."""
    keys = [queue.keys for queue in layouts.expected(version).values()]
    with layouts.upgraded(layouts.FOLDER / version, tmp_path / "data") as (broker, _):
        before = [broker.call(calls.totals(one)) for one in keys]
        os.kill(int(broker.raw(("INFO", "server"))[0].split(b"process_id:")[1].split()[0]), signal.SIGKILL)
    with running_broker(tmp_path / "data", library=clocked_library) as server, BlockingBroker(server.address) as broker:
        assert [broker.call(calls.totals(one)) for one in keys] == before


# ---------------------------------------------------------------- and the other way round


def calls_of_every_kind(keys: QueueKeys) -> list[Call[Any]]:
    """One well-formed call of each command that has a queue."""
    one, held = [Settlement(1, 1, 1)], SessionLock("session", 1)
    return [
        calls.configure(keys, partition=0, partitions=1),
        calls.send(keys, [stored(b"three")]),
        calls.send_pushed(keys, [stored(b"three")], guess=2),
        calls.receive(keys, most=1),
        calls.complete(keys, one),
        calls.abandon(keys, one),
        calls.defer(keys, one),
        calls.dead_letter(keys, one),
        calls.renew_lock(keys, one),
        calls.receive_deferred(keys, [1]),
        calls.cancel_scheduled(keys, [1]),
        calls.peek(keys, most=1, bytes_most=1),
        calls.states(keys, 1, 9),
        calls.accept_session(keys),
        calls.renew_session(keys, held),
        calls.release_session(keys, held),
        calls.get_session_state(keys, held),
        calls.list_sessions(keys),
        calls.purge(keys),
        calls.resubmit(keys.dead_letters),
        calls.apply(keys, [CompleteOperation(one)]),
        calls.totals(keys),
        calls.next_due(keys),
        calls.sweep(keys),
        calls.claim_open(keys, "g", "o", LOCK_MS),
        calls.claim(keys, "g", "o", LOCK_MS, 0, 1),
        calls.claim_renew(keys, "g", "o", LOCK_MS),
        calls.claim_acknowledge(keys, "g", "o", 0),
        calls.claimed(keys, "g", 0, 1),
    ]


def held_by(broker: BlockingBroker) -> dict[bytes, Any]:
    """All that the broker holds; of hashes the fields, as their DUMP may change its order by itself."""
    found: dict[bytes, Any] = dict(contents(broker))
    for name in found:
        if broker.raw(("TYPE", name)) == [b"hash"] or broker.raw(("TYPE", name)) == ["hash"]:
            flat = broker.raw(("HGETALL", name))[0]
            found[name] = dict(zip(flat[::2], flat[1::2], strict=True))
    return found


def as_layout(layout: int) -> str:
    """The library as if it had another layout."""
    return re.sub(r"LAYOUT_VERSION = \d+", f"LAYOUT_VERSION = {layout}", clocked_library(), count=1)


def test_data_of_a_later_layout_is_refused_by_every_command_and_left_alone(tmp_path: Path) -> None:
    later = calls_of_every_kind(QueueKeys("later"))
    with running_broker(tmp_path, library=lambda: as_layout(200)) as server, BlockingBroker(server.address) as broker:
        broker.call(calls.configure(QueueKeys("later"), partition=0, partitions=1))
        broker.call(calls.send(QueueKeys("later"), [stored(b"one"), stored(b"two")]))
        (run,) = receive(broker, QueueKeys("later"), 1).runs
        broker.call(calls.dead_letter(QueueKeys("later"), [Settlement(run.lock, 1, 1)]))
        server.library = clocked_library
        server.load_library()
        before = held_by(broker)
        named = {bytes(function[1]).decode() for function in broker.raw(("FUNCTION", "LIST"))[0][0][5]}
        assert {str(call.words[1]) for call in later} == named - {"pq_about"}
        for call in later:
            with pytest.raises(BrokerTooNew, match="layout 200"):
                broker.call(call)
            assert held_by(broker) == before, call.words[1]
