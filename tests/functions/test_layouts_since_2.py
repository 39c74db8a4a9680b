"""What layout 2 brought, taken over by today's library: settings, messages put aside, sub-queues, sessions, ids.

Beside the fixtures of releases, one of today's library is made and taken over by itself: any release can make one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness import layout_making, layouts
from harness.clock import Clock
from harness.deliveries import body_of, drain, emptied, placed, properties_of, settlements, stored
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.operations import SendOperation
from partitionedqueue.broker.replies import SessionLock, Settlement
from partitionedqueue.model.duplicates import fingerprints
from partitionedqueue.model.errors import MessageNotFound, SessionCannotBeLocked, SessionLockLost
from partitionedqueue.model.message import Message
from partitionedqueue.model.stored_message import encode

TODAY = "today"
RELEASED = [one for one in layouts.VERSIONS if layouts.told_of(layouts.FOLDER / one).get("since layout 2")]


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fixture that a release of today would make."""
    folder = tmp_path_factory.mktemp("layouts") / TODAY
    layout_making.make(folder)
    return folder


@dataclass(frozen=True, slots=True)
class Taken:
    """An upgraded broker, and what must be in it."""

    broker: BlockingBroker
    clock: Clock
    told: dict[str, Any]


@pytest.fixture(params=[*RELEASED, TODAY])
def taken(request: pytest.FixtureRequest, today: Path, tmp_path: Path) -> Iterator[Taken]:
    fixture = today if request.param == TODAY else layouts.FOLDER / request.param
    with layouts.upgraded(fixture, tmp_path / "data") as (broker, clock):
        yield Taken(broker, clock, layouts.told_of(fixture)["since layout 2"])


def test_the_totals_are_right(taken: Taken) -> None:
    aside, totals = taken.told["aside"], taken.broker.call(calls.totals(QueueKeys("aside")))
    assert (totals.partition, totals.partitions) == (3, 16)
    assert (totals.ready, totals.locked) == (len(aside["ready"]), len(aside["locked"]))
    assert (totals.deferred, totals.scheduled) == (len(aside["deferred"]), len(aside["scheduled"]))
    assert (totals.dead_letters, totals.transfers) == (len(aside["dead_letters"]), aside["transfers"])
    held = taken.broker.call(calls.totals(QueueKeys("sessions")))
    assert (held.sessions, held.sessions_locked, held.deferred) == (1, 1, 1)
    assert taken.broker.call(calls.totals(QueueKeys("ids"))).remembered == taken.told["ids"]["messages"]


def test_ready_messages_come_in_order_under_the_queues_own_lock(taken: Taken) -> None:
    aside, keys = taken.told["aside"], QueueKeys("aside")
    received = taken.broker.call(calls.receive(keys, most=1000))
    assert [number for number, _ in placed(received.runs)] == aside["ready"]
    assert received.locked_until_ms == received.now_ms + aside["lock_ms"]
    counts = {run.first + i: run.delivery_count for run in received.runs for i in range(len(run.messages))}
    assert {n for n, count in counts.items() if count > 1} == {int(n) for n in aside["returned"]}


def test_locks_of_before_hold_and_expire(taken: Taken) -> None:
    aside, keys = taken.told["aside"], QueueKeys("aside")
    locks = [Settlement(*one) for one in aside["locked"]]
    assert taken.broker.call(calls.complete(keys, locks[:1])) == []
    taken.clock.set(aside["locked_until_ms"])
    assert taken.broker.call(calls.complete(keys, locks[1:])) == list(range(len(locks) - 1))


def test_deferred_messages_are_received_by_their_numbers(taken: Taken) -> None:
    aside, keys = taken.told["aside"], QueueKeys("aside")
    numbers = sorted(int(n) for n in aside["deferred"])
    received = taken.broker.call(calls.receive_deferred(keys, numbers))
    assert [(n, body_of(one)) for n, one in placed(received.runs)] == [(n, b"%d" % n) for n in numbers]
    assert {run.delivery_count for run in received.runs} == {1 + count for count in aside["deferred"].values()}
    assert taken.broker.call(calls.complete(keys, settlements(received))) == []


def test_scheduled_messages_come_when_they_are_due_and_can_be_cancelled(taken: Taken) -> None:
    aside, keys = taken.told["aside"], QueueKeys("aside")
    taken.broker.call(calls.cancel_scheduled(keys, aside["scheduled"][:1]))
    with pytest.raises(MessageNotFound):
        taken.broker.call(calls.cancel_scheduled(keys, aside["scheduled"][:1]))
    emptied(taken.broker, keys)
    taken.clock.set(aside["scheduled_at_ms"] - 1)
    assert b"%d" % aside["scheduled"][1] not in emptied(taken.broker, keys)
    taken.clock.set(aside["scheduled_at_ms"])
    assert emptied(taken.broker, keys) == [b"%d" % n for n in aside["scheduled"][1:]]


def test_dead_letters_keep_their_reasons_and_go_back(taken: Taken) -> None:
    aside, keys = taken.told["aside"], QueueKeys("aside")
    received = taken.broker.call(calls.receive(keys.dead_letters, most=10))
    found = {
        body_of(one).decode(): [properties_of(one)[n] for n in ("DeadLetterReason", "DeadLetterErrorDescription")]
        for _, one in placed(received.runs)
    }
    assert found == aside["dead_letters"]
    assert taken.broker.call(calls.abandon(keys.dead_letters, settlements(received))) == []
    assert taken.broker.call(calls.resubmit(keys.dead_letters)).count == len(aside["dead_letters"])
    assert taken.broker.call(calls.totals(keys)).ready == len(aside["ready"]) + len(aside["dead_letters"])


def test_expiries_of_before_dead_letter_in_time(taken: Taken) -> None:
    aside, keys = taken.told["aside"], QueueKeys("aside")
    taken.clock.set(aside["expire_at_ms"] - 1)
    drain(taken.broker, keys, taken.clock.now_ms)
    assert taken.broker.call(calls.totals(keys)).dead_letters == len(aside["dead_letters"])
    taken.clock.set(aside["expire_at_ms"])
    drain(taken.broker, keys, taken.clock.now_ms)
    dead = taken.broker.call(calls.totals(keys)).dead_letters
    assert dead == len(aside["dead_letters"]) + len(aside["expiring"])


def test_a_limit_of_deliveries_of_before_holds(taken: Taken) -> None:
    keys, before = QueueKeys("aside"), len(taken.told["aside"]["dead_letters"])
    for _ in range(2):
        (run,) = taken.broker.call(calls.receive(keys, most=1)).runs
        assert run.first == 5
        assert taken.broker.call(calls.abandon(keys, [Settlement(run.lock, 5, 5)])) == []
    assert taken.broker.call(calls.totals(keys)).dead_letters == before + 1


def test_a_transaction_of_before_is_not_carried_out_again(taken: Taken) -> None:
    aside, keys = taken.told["aside"], QueueKeys("aside")
    sender, number = aside["transaction"]
    again = calls.apply(keys, [SendOperation([stored(b"again")], target="/$Transfer")], sender=sender, number=number)
    assert taken.broker.call(again) == []
    assert taken.broker.call(calls.totals(keys)).transfers == aside["transfers"]


def test_a_session_that_is_held_stays_held(taken: Taken) -> None:
    told, keys = taken.told["sessions"], QueueKeys("sessions")
    session = SessionLock(*told["session"])
    with pytest.raises(SessionCannotBeLocked):
        taken.broker.call(calls.accept_session(keys, session.session_id))
    assert taken.broker.call(calls.get_session_state(keys, session)) == told["state"].encode()
    locks = [Settlement(*one) for one in told["locked"]]
    assert taken.broker.call(calls.complete(keys, locks[:1], session=session)) == []
    received = taken.broker.call(calls.receive(keys, most=100, session=session))
    assert [number for number, _ in placed(received.runs)] == told["ready"]
    deferred = taken.broker.call(calls.receive_deferred(keys, told["deferred"], session=session))
    assert [number for number, _ in placed(deferred.runs)] == told["deferred"]
    taken.clock.set(told["locked_until_ms"])
    with pytest.raises(SessionLockLost):
        taken.broker.call(calls.complete(keys, locks[1:], session=session))


def test_a_session_whose_lock_has_expired_comes_back_with_all_of_it(taken: Taken) -> None:
    told, keys = taken.told["sessions"], QueueKeys("sessions")
    taken.clock.set(told["locked_until_ms"])
    session = taken.broker.call(calls.accept_session(keys, told["session"][0])).session
    assert session is not None
    assert taken.broker.call(calls.get_session_state(keys, session)) == told["state"].encode()
    received = taken.broker.call(calls.receive(keys, most=100, session=session))
    assert [n for n, _ in placed(received.runs)] == [first for _, first, _ in told["locked"]] + told["ready"]


def test_a_session_that_is_free_can_be_accepted(taken: Taken) -> None:
    told, keys = taken.told["sessions"], QueueKeys("sessions")
    session = taken.broker.call(calls.accept_session(keys)).session
    assert session is not None
    assert session.session_id == "free"
    assert taken.broker.call(calls.get_session_state(keys, session)) == told["free_state"].encode()
    received = taken.broker.call(calls.receive(keys, most=100, session=session))
    assert [number for number, _ in placed(received.runs)] == told["free"]
    listed: list[str] = taken.broker.call(calls.list_sessions(keys))
    assert sorted(listed) == ["free", "held"]


def test_message_ids_of_before_are_duplicates(taken: Taken) -> None:
    told, keys = taken.told["ids"], QueueKeys("ids")
    again = [Message(body=b"again", message_id=one) for one in [*told["ids"], "new"]]
    sent = taken.broker.call(calls.send(keys, [encode(one) for one in again], fingerprints=fingerprints(again)))
    assert sent.duplicates == list(range(len(told["ids"])))
    assert taken.broker.call(calls.totals(keys)).messages == told["messages"] + 1
