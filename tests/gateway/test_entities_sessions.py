"""Sessions over sixteen real brokers: exclusive, in order, found wherever they are, and let go in good order."""

import asyncio
from collections.abc import Sequence

import pytest

from harness.entities_in_use import Bench, Hand, bench, bodies, until
from harness.redis_servers import Broker
from partitionedqueue.model.errors import (
    BrokerUnavailable,
    LockLost,
    SessionCannotBeLocked,
    SessionLockLost,
    SessionRequired,
    SessionsNotSupported,
)
from partitionedqueue.model.partitioning import partition_of
from partitionedqueue_gateway.entities.failures import NoSessionAvailable
from partitionedqueue_gateway.entities.taken import Taken


def fill(one: Bench, session: str, count: int, first: int = 0) -> None:
    one.put(
        partition_of(session, len(one.servers)),
        *(f"{session}/{n}" for n in range(first, first + count)),
        session_id=session,
    )


@pytest.mark.parametrize("name", ["", "orders", "ünïcode"])
async def test_a_named_session_is_received_in_order_and_by_one_only(brokers: list[Broker], name: str) -> None:
    async with bench(brokers, requires_session=True) as one:
        fill(one, name, 20)
        fill(one, "another", 3)
        session = await one.entity.accept_session(name, within_s=5)
        assert session.session_id == name
        with pytest.raises(SessionCannotBeLocked):
            await one.entity.accept_session(name, within_s=5)
        hand = Hand(one.entity, session=session)
        await hand.receive(5)
        await hand.receive(15)
        assert hand.bodies == [f"{name}/{n}" for n in range(20)]
        lost = await one.entity.complete_all([message.token for message in hand.got], session)
        assert not lost
        hand.receiver.want(1)
        fill(one, name, 1, first=20)
        await until(lambda: len(hand.got) == 21, 2)
        hand.receiver.close()
        await session.release()
        again = await one.entity.accept_session(name, within_s=5)
        (message,) = await Hand(one.entity, session=again).receive(1)
        assert (bodies([message]), message.deliveries) == ([f"{name}/20"], 1)  # uncounted: it was let go
        await again.release()


async def test_every_session_is_found_by_those_who_want_the_next_one(brokers: list[Broker]) -> None:
    async with bench(brokers, requires_session=True) as one:
        names = [f"session {n}" for n in range(60)]
        for name in names:
            fill(one, name, 10)
        seen: dict[str, list[str]] = {}

        async def work() -> None:
            while True:
                try:
                    session = await one.entity.accept_session(within_s=1.0)
                except NoSessionAvailable:
                    return
                assert session.session_id not in seen
                hand = Hand(one.entity, session=session)
                await hand.receive(10)
                seen[session.session_id] = hand.bodies
                assert not await one.entity.complete_all([m.token for m in hand.got], session)
                hand.receiver.close()
                await session.release()

        await asyncio.gather(*(work() for _ in range(8)))
        assert seen == {name: [f"{name}/{n}" for n in range(10)] for name in names}


async def test_whoever_waits_for_a_session_is_woken_by_it(brokers: list[Broker]) -> None:
    async with bench(brokers, requires_session=True) as one:
        waiting = [asyncio.create_task(one.entity.accept_session(within_s=20)) for _ in range(50)]
        await asyncio.sleep(0.5)
        before = one.calls_so_far()
        await asyncio.sleep(0.5)
        assert one.calls_so_far() == before
        fill(one, "late", 1)
        await until(lambda: any(task.done() for task in waiting), 1)
        await asyncio.sleep(0.2)
        assert one.calls_so_far() - before <= 6
        (found,) = [task.result() for task in waiting if task.done()]
        assert found.session_id == "late"
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_session_whose_taker_left_is_free_at_once(brokers: list[Broker]) -> None:
    async with bench(brokers, requires_session=True) as one:
        for round_ in range(20):
            fill(one, f"s{round_}", 1)
            task = asyncio.create_task(one.entity.accept_session(within_s=5))
            await asyncio.sleep(round_ * 0.0005)
            task.cancel()
            outcome = (await asyncio.gather(task, return_exceptions=True))[0]
            if not isinstance(outcome, BaseException):
                await outcome.release()
        for _ in range(20):
            await one.entity.accept_session(within_s=2)


async def test_none_in_time_is_told_apart_from_partitions_that_are_away(brokers: list[Broker]) -> None:
    async with bench(brokers, requires_session=True) as one:
        with pytest.raises(NoSessionAvailable):
            await one.entity.accept_session(within_s=0.3)
        fill(one, "a", 1)
        brokers[partition_of("a", 16)].kill()
        with pytest.raises(BrokerUnavailable):
            await one.entity.accept_session("a", within_s=0.5)
        with pytest.raises(NoSessionAvailable):
            await one.entity.accept_session(within_s=0.5)
        brokers[partition_of("a", 16)].restart()
        assert (await one.entity.accept_session(within_s=5)).session_id == "a"


async def test_a_lock_that_lapses_is_told_and_refuses_everything(brokers: list[Broker]) -> None:
    async with bench(brokers, requires_session=True, lock_duration_ms=5_000) as one:
        fill(one, "a", 3)
        session = await one.entity.accept_session("a", within_s=5)
        told: list[Exception] = []
        session.on_lost(told.append)
        hand = Hand(one.entity, session=session)
        first, *_ = await hand.receive(2)
        await asyncio.sleep(3)
        until_ms = await session.renew()
        assert until_ms == session.locked_until_ms
        await asyncio.sleep(3)
        assert not told  # it was renewed
        await one.entity.complete(first.token, session)
        await until(lambda: told, 4)
        assert isinstance(told[0], SessionLockLost)
        assert [type(error) for error in hand.lost] == [SessionLockLost]
        for refused in (session.renew(), session.get_state(), one.entity.complete(hand.got[1].token, session)):
            with pytest.raises(SessionLockLost):
                await refused
        other = await one.entity.accept_session("a", within_s=5)
        (message,) = await Hand(one.entity, session=other).receive(1)
        assert message.deliveries == 2


async def test_state_stays_with_the_session(brokers: list[Broker]) -> None:
    async with bench(brokers, requires_session=True) as one:
        session = await one.entity.accept_session("a", within_s=5)
        assert await session.get_state() is None
        await session.set_state(b"so far")
        await session.release()
        again = await one.entity.accept_session("a", within_s=5)
        assert await again.get_state() == b"so far"
        await again.set_state(None)
        assert await again.get_state() is None
        await again.release()


async def test_receivers_and_queues_must_both_have_sessions_or_neither(brokers: list[Broker]) -> None:
    async with bench(brokers, requires_session=True) as one:
        with pytest.raises(SessionRequired):
            Hand(one.entity)
        Hand(one.open("letters/$DeadLetterQueue"))  # is read without
        with pytest.raises(SessionsNotSupported):
            await one.open("letters/$DeadLetterQueue").accept_session("a", within_s=1)


async def test_a_queue_without_sessions_has_none_to_accept(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        with pytest.raises(SessionsNotSupported):
            await one.entity.accept_session("a", within_s=1)


async def test_sessions_of_all_partitions_are_listed_and_skipped(brokers: list[Broker]) -> None:
    async with bench(brokers, requires_session=True) as one:
        names = {f"session {n}" for n in range(50)}
        for name in names:
            fill(one, name, 1)
        every = await one.entity.list_sessions(0, 100)
        assert set(every) == names
        assert len(every) == 50
        assert await one.entity.list_sessions(20, 10) == every[20:30]
        assert await one.entity.list_sessions(50, 10) == []


async def test_receive_and_delete_in_a_session_keeps_its_order(brokers: list[Broker]) -> None:
    async with bench(brokers, requires_session=True) as one:
        fill(one, "a", 100)
        got: list[str] = []
        while len(got) < 100:
            session = await one.entity.accept_session("a", within_s=5)
            hand = Hand(one.entity, delete=True, session=session)
            hand.receiver.want(7)
            await asyncio.sleep(0.01)
            await hand.receiver.drain()
            hand.receiver.close()
            await session.release()
            got += hand.bodies
        assert got == [f"a/{n}" for n in range(100)]


async def test_sessions_of_a_queue_that_goes_are_lost(brokers: list[Broker]) -> None:
    async with bench(brokers, requires_session=True) as one:
        fill(one, "a", 1)
        session = await one.entity.accept_session("a", within_s=5)
        hand = Hand(one.entity, session=session)
        waiting = asyncio.create_task(one.entity.accept_session(within_s=20))
        await asyncio.sleep(0.1)
        one.catalog.remove(one.queue.name)
        assert session.lost is not None
        assert len(hand.lost) == 1
        with pytest.raises(type(session.lost)):
            await waiting


async def test_settling_in_a_session_is_refused_message_by_message(brokers: list[Broker]) -> None:
    async with bench(brokers, requires_session=True) as one:
        fill(one, "a", 10)
        session = await one.entity.accept_session("a", within_s=5)
        hand = Hand(one.entity, session=session)
        messages: Sequence[Taken] = await hand.receive(10)
        await one.entity.complete(messages[4].token, session)
        lost = await one.entity.complete_all([message.token for message in messages], session)
        assert {token.sequence for token in lost} == {messages[4].sequence}
        assert isinstance(next(iter(lost.values())), LockLost)
