"""Receiving from sixteen real brokers through one hand: promptly, exactly, fairly, and with nothing left locked."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from functools import partial

import pytest

from harness.entities_in_use import Bench, Hand, bench, bodies, until
from harness.redis_servers import Broker
from partitionedqueue.model.errors import EntityDisabled, LockLost
from partitionedqueue.model.queue_spec import QueueStatus
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.failures import EntityNotFound, QueueGone
from partitionedqueue_gateway.entities.taken import Taken


def locked(one: Bench) -> int:
    return one.in_all(lambda totals: totals.locked)


async def test_one_message_in_any_of_sixteen_partitions_is_found_promptly(brokers: list[Broker]) -> None:
    for partition in (0, 7, 15):
        async with bench(brokers) as one:
            one.put(partition, f"in {partition}")
            hand = Hand(one.entity)
            hand.receiver.want(1)
            took = await hand.has(1)
            assert hand.bodies == [f"in {partition}"]
            assert took < 1.0
            await one.entity.complete(hand.got[0].token)
            assert one.in_all(lambda totals: totals.messages) == 0


async def test_whoever_waits_is_woken_and_does_not_poll(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        hand = Hand(one.entity)
        hand.receiver.want(5)
        await asyncio.sleep(0.5)
        before = one.calls_so_far()
        await asyncio.sleep(1.0)
        assert one.calls_so_far() == before
        one.put(9, "news")
        assert await until(lambda: hand.got) < 0.3
        assert hand.bodies == ["news"]


async def test_credit_for_one_never_locks_two(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        for partition in range(16):
            one.put(partition, *(f"{partition}-{n}" for n in range(3)))
        hand = Hand(one.entity)
        for count in range(1, 20):
            (message,) = await hand.receive(1)
            await asyncio.sleep(0.01)
            assert len(hand.got) == count
            assert locked(one) == 1
            await one.entity.complete(message.token)
        assert one.in_all(lambda totals: totals.messages) == 48 - 19


async def test_no_more_is_locked_than_many_want_together(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        for partition in range(16):
            one.put(partition, *(f"{partition}-{n}" for n in range(100)))
        hands = [Hand(one.entity) for _ in range(20)]
        wants = [random.randrange(1, 30) for _ in hands]
        for hand, count in zip(hands, wants, strict=True):
            hand.receiver.want(count)
        await until(lambda: all(len(hand.got) == count for hand, count in zip(hands, wants, strict=True)))
        await asyncio.sleep(0.1)
        assert [len(hand.got) for hand in hands] == wants
        assert locked(one) == sum(wants)
        everything = [body for hand in hands for body in hand.bodies]
        assert len(set(everything)) == len(everything)


async def test_ten_thousand_messages_reach_eight_receivers_once_each(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        for partition in range(16):
            one.put(partition, *(f"{partition}-{n}" for n in range(625)))
        entity = one.entity
        seen: Counter[str] = Counter()

        def settle(hand: Hand, messages: Sequence[Taken]) -> None:
            seen.update(bodies(messages))
            for message in messages:
                entity.complete(message.token)
            hand.receiver.want(len(messages))

        hands = [Hand(entity) for _ in range(8)]
        for hand, most in zip(hands, (1, 1, 10, 10, 50, 100, 300, 1000), strict=True):
            hand.then = partial(settle, hand)
            hand.receiver.want(most)
        await until(lambda: sum(seen.values()) >= 10_000, 60)
        await until(lambda: one.in_all(lambda totals: totals.messages) == 0)
        assert max(seen.values()) == 1
        assert len(seen) == 10_000
        assert min(len(hand.got) for hand in hands) > 20  # nobody starves


async def test_two_hundred_who_wait_and_one_message_make_one_lock_and_few_calls(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        hands = [Hand(one.entity) for _ in range(200)]
        for hand in hands:
            hand.receiver.want(1)
        await asyncio.sleep(0.5)
        before = one.calls_so_far()
        one.put(4, "the only one")
        await until(lambda: any(hand.got for hand in hands))
        await asyncio.sleep(0.3)
        assert one.calls_so_far() - before <= 6
        assert sum(len(hand.got) for hand in hands) == 1
        assert locked(one) == 1


async def test_everybody_has_a_turn(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        one.put(3, *map(str, range(3000)))
        greedy, modest = Hand(one.entity), Hand(one.entity)
        greedy.then = lambda messages: greedy.receiver.want(len(messages))
        greedy.receiver.want(100)
        for _ in range(5):
            await modest.receive(1, seconds=2.0)


async def test_large_messages_all_come_though_each_reply_holds_few(
    brokers: list[Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RECEIVED_BYTES_MAX", 16 * 300_000)
    async with bench(brokers) as one:
        for partition in range(16):
            one.put(partition, *("x" * 200_000 for _ in range(5)))
        hand = Hand(one.entity)
        await hand.receive(80)
        assert locked(one) == 80


async def test_drain_hands_over_what_is_ready_and_nothing_later(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        for partition in range(16):
            one.put(partition, f"{partition}")
        hand = Hand(one.entity)
        hand.receiver.want(100)
        await hand.receiver.drain()
        assert len(hand.got) == 16
        assert hand.receiver.wanted == 0
        one.put(1, "late")
        await asyncio.sleep(0.2)
        assert len(hand.got) == 16
        hand.receiver.want(100)
        await hand.receiver.drain()
        assert hand.bodies[16:] == ["late"]


async def test_drain_of_an_empty_queue_is_prompt(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        hand = Hand(one.entity)
        hand.receiver.want(10)
        await asyncio.sleep(0.3)
        async with asyncio.timeout(0.5):
            await hand.receiver.drain()
        assert not hand.got


async def test_what_comes_for_somebody_who_left_goes_back_at_once_and_uncounted(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        for partition in range(16):
            one.put(partition, *(f"{partition}-{n}" for n in range(50)))
        for delay in (0.0, 0.0, 0.001, 0.002, 0.003, 0.005):
            hand = Hand(one.entity)
            hand.receiver.want(800)
            await asyncio.sleep(delay)
            hand.receiver.close()
            got = len(hand.got)
            await asyncio.sleep(0.05)
            assert len(hand.got) == got
            await one.entity.abandon([message.token for message in hand.got], counted=False)
        await until(lambda: locked(one) == 0)
        last = Hand(one.entity)
        await last.receive(800)
        assert {message.deliveries for message in last.got} == {1}


async def test_locks_of_a_gateway_that_died_come_back_when_they_expire(brokers: list[Broker]) -> None:
    async with bench(brokers, lock_duration_ms=5_000) as dead:
        dead.put(6, "a", "b")
        await Hand(dead.entity).receive(2)  # and nobody ever settles them
    async with bench(brokers, told=False) as one:
        hand = Hand(one.entity)
        await hand.receive(2, seconds=12)
        assert {(message.deliveries, message.partition) for message in hand.got} == {(2, 6)}


async def test_a_scheduled_message_comes_at_its_time(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        hand = Hand(one.entity)
        hand.receiver.want(1)
        await asyncio.sleep(0.3)
        due_ms = one.totals(2).now_ms + 1500
        one.put(2, "later", scheduled_enqueue_time_ms=due_ms)
        await asyncio.sleep(0.5)
        assert not hand.got
        await until(lambda: hand.got, 4)
        assert due_ms <= hand.got[0].enqueued_time_ms < due_ms + 500


# ---- receive and delete


async def test_receive_and_delete_leaves_nothing_and_hands_over_each_once(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        for partition in range(16):
            one.put(partition, *(f"{partition}-{n}" for n in range(200)))
        hands = [Hand(one.entity, delete=True) for _ in range(4)]
        for hand in hands:
            hand.receiver.want(800)
        await until(lambda: sum(len(hand.got) for hand in hands) == 3200)
        assert len({body for hand in hands for body in hand.bodies}) == 3200
        assert one.in_all(lambda totals: totals.messages) == 0
        assert {message.lock for hand in hands for message in hand.got} == {0}


async def test_receive_and_delete_loses_nothing_that_came_for_those_who_left(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        for partition in range(16):
            one.put(partition, *(f"{partition}-{n}" for n in range(40)))
        got: list[str] = []
        for _ in range(60):
            hand = Hand(one.entity, delete=True)
            hand.receiver.want(random.randrange(1, 30))
            await asyncio.sleep(random.random() * 0.006)
            hand.receiver.close()
            got += hand.bodies
    # The gateway has ended: whatever it had for nobody is in the queue again.
    async with bench(brokers, told=False) as other:
        rest = Hand(other.entity, delete=True)
        rest.receiver.want(1000)
        await rest.receiver.drain()
        everything = Counter([*got, *rest.bodies])
        assert len(everything) == 640
        assert max(everything.values()) == 1


async def test_what_was_deleted_for_those_who_left_is_put_back_when_nobody_comes(
    brokers: list[Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "DELETED_KEPT_S", 0.2)
    async with bench(brokers, requires_duplicate_detection=True) as one:
        for partition in range(16):
            one.put(partition, *(f"{partition}-{n}" for n in range(40)))
        got: list[str] = []
        for _ in range(40):
            hand = Hand(one.entity, delete=True)
            hand.receiver.want(random.randrange(1, 30))
            await asyncio.sleep(random.random() * 0.006)
            hand.receiver.close()
            got += hand.bodies
        await until(lambda: one.in_all(lambda totals: totals.ready) == 640 - len(got), 5)
        rest = Hand(one.entity)
        rest.receiver.want(1000)
        await rest.receiver.drain()
        assert len({*got, *rest.bodies}) == 640


# ---- partitions that die


async def test_a_dead_partition_keeps_nobody_from_receiving(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        for partition in range(16):
            one.put(partition, f"{partition}")
        brokers[5].kill()
        hand = Hand(one.entity)
        assert len(await hand.receive(15, seconds=3)) == 15
        hand.receiver.want(1)
        one.put(8, "another")
        assert await until(lambda: len(hand.got) == 16) < 1.0


async def test_a_partition_that_comes_back_is_received_from(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        one.put(5, "kept")
        hand = Hand(one.entity)
        await hand.receive(1)
        await one.entity.complete(hand.got[0].token)
        brokers[5].kill()
        hand.receiver.want(1)
        await asyncio.sleep(0.5)
        brokers[5].restart()
        one.put(5, "new")
        await until(lambda: hand.bodies[1:] == ["new"], 6)


async def test_a_partition_that_hangs_keeps_nobody_waiting_long(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        for partition in range(16):
            one.put(partition, f"{partition}")
        hand = Hand(one.entity)
        await hand.receive(1)
        hangs = (hand.got[0].partition + 1) % 16
        brokers[hangs].pause()
        try:
            for _ in range(14):
                await hand.receive(1, seconds=2.5)
            assert hangs not in {message.partition for message in hand.got}
        finally:
            brokers[hangs].resume()


async def test_a_partition_that_hangs_keeps_a_drain_waiting_once(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        one.put(3, "a")
        hand = Hand(one.entity)
        hand.receiver.want(10)
        await hand.receiver.drain()
        assert hand.bodies == ["a"]
        brokers[7].pause()
        try:
            hand.receiver.want(10)
            async with asyncio.timeout(limits.FAN_IN_DRAIN_S_MAX + 0.5):
                await hand.receiver.drain()
            for _ in range(3):
                hand.receiver.want(10)
                async with asyncio.timeout(0.5):
                    await hand.receiver.drain()
        finally:
            brokers[7].resume()


# ---- the queue changes


async def test_receivers_hear_that_their_queue_has_gone(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        entity = one.entity
        hand = Hand(entity)
        hand.receiver.want(1)
        await asyncio.sleep(0.1)
        one.catalog.remove(one.queue.name)
        assert [type(error) for error in hand.lost] == [QueueGone]
        with pytest.raises(EntityNotFound, match=r"The messaging entity 'letters' could not be found"):
            entity.receiver(lambda _: None)
        with pytest.raises(EntityNotFound):
            one.open()


async def test_receivers_hear_that_receiving_is_disabled(brokers: list[Broker]) -> None:
    async with bench(brokers, status=QueueStatus.RECEIVE_DISABLED) as one:
        one.put(1, "kept")
        with pytest.raises(EntityDisabled):
            Hand(one.entity)
        entity = one.entity
        entity.spec = one.queue.spec.__class__(name="letters", enable_partitioning=True)  # it has not heard yet
        hand = Hand(entity)
        hand.receiver.want(1)
        await until(lambda: hand.lost)
        assert isinstance(hand.lost[0], EntityDisabled)


async def test_a_lost_lock_is_told_of_the_one_message_only(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        one.put(11, *map(str, range(100)))
        hand = Hand(one.entity)
        messages = await hand.receive(100)
        await one.entity.complete(messages[50].token)
        outcomes = await asyncio.gather(*(one.entity.complete(m.token) for m in messages), return_exceptions=True)
        assert [place for place, outcome in enumerate(outcomes) if outcome is not None] == [50]
        assert isinstance(outcomes[50], LockLost)
        assert one.in_all(lambda totals: totals.messages) == 0
