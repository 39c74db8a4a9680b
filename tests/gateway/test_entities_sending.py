"""Sending through an entity: where it goes, and what a partition that is away does to it."""

import asyncio
from collections import Counter

import pytest

from harness.entities_in_use import Hand, bench, bodies, until
from harness.redis_servers import Broker
from partitionedqueue.model.errors import (
    BatchKeyConflict,
    BrokerUnavailable,
    EntityDisabled,
    MessageNotFound,
    SessionRequired,
)
from partitionedqueue.model.identifiers import split_sequence_number
from partitionedqueue.model.limits import COMPANY_MESSAGES_MAX
from partitionedqueue.model.message import Message
from partitionedqueue.model.partitioning import partition_of
from partitionedqueue.model.queue_spec import QueueStatus
from partitionedqueue.model.storable import Storable, storable
from partitionedqueue_gateway.entities.failures import EntityNotFound, SendNotAllowed


def message(body: str = "x", **fields: object) -> Storable:
    return storable(Message(body=body.encode(), **fields))  # type: ignore[arg-type]


async def test_keyless_messages_spread_and_keyed_ones_stay_together(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        for _ in range(32):
            await one.entity.send([message()])
        assert [one.totals(n).messages for n in range(16)] == [2] * 16
        numbers = await asyncio.gather(*(one.entity.send([message(partition_key="k")]) for _ in range(20)))
        assert {each.partition for each in numbers} == {partition_of("k", 16)}
        assert [each.first for each in numbers] == list(range(3, 23))


async def test_keyless_messages_of_one_turn_go_in_companies_that_spread(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        numbers = await asyncio.gather(*(one.entity.send([message()]) for _ in range(16 * COMPANY_MESSAGES_MAX)))
        assert Counter(each.partition for each in numbers) == dict.fromkeys(range(16), COMPANY_MESSAGES_MAX)


async def test_a_batch_is_in_one_partition_and_of_one_key(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        numbers = await one.entity.send([message(str(n)) for n in range(50)])
        assert one.totals(numbers.partition).messages == 50
        with pytest.raises(BatchKeyConflict):
            await one.entity.send([message(partition_key="a"), message(partition_key="b")])


async def test_keyless_messages_avoid_a_dead_partition_and_keyed_ones_wait_for_it(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        await asyncio.gather(*(one.entity.send([message()]) for _ in range(16)))
        dead = partition_of("k", 16)
        brokers[dead].kill()
        await asyncio.sleep(0.1)  # what is under way when it dies may be stored: it has to wait
        async with asyncio.timeout(5):
            numbers = await asyncio.gather(*(one.entity.send([message()]) for _ in range(64)))
        assert dead not in {each.partition for each in numbers}
        with pytest.raises(BrokerUnavailable):
            await one.entity.send([message(partition_key="k")], within_s=1.0)
        waiting = one.entity.send([message("patient", partition_key="k")], within_s=15)
        await asyncio.sleep(0.5)
        brokers[dead].restart()
        assert (await waiting).partition == dead


async def test_scheduled_messages_have_numbers_and_may_be_cancelled(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        at_ms = one.totals(0).now_ms + 60_000
        several = [message(str(n), partition_key=f"k{n % 3}", scheduled_enqueue_time_ms=at_ms) for n in range(9)]
        numbers = await one.entity.schedule(several)
        assert [split_sequence_number(n)[0] for n in numbers] == [partition_of(f"k{n % 3}", 16) for n in range(9)]
        assert one.in_all(lambda totals: totals.scheduled) == 9
        await one.entity.cancel_scheduled(numbers[:6])
        assert one.in_all(lambda totals: totals.scheduled) == 3
        for wrong in (numbers[0], 99 << 48 | 1, 0):
            with pytest.raises(MessageNotFound):
                await one.entity.cancel_scheduled([wrong])


async def test_nobody_sends_to_a_sub_queue_or_to_what_is_not_there(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        with pytest.raises(SendNotAllowed):
            one.open("letters/$DeadLetterQueue").send([message()])
        with pytest.raises(EntityNotFound, match="'elsewhere/letters' could not be found"):
            one.open("elsewhere/letters")
        assert one.open("sb://host:5671/Default/LETTERS") is one.entity


async def test_a_session_queue_takes_no_message_without_a_session(brokers: list[Broker]) -> None:
    async with bench(brokers, requires_session=True) as one:
        with pytest.raises(SessionRequired):
            await one.entity.send([message()])
        assert (await one.entity.send([message(session_id="")])).partition == partition_of("", 16)


async def test_senders_hear_that_sending_is_disabled_or_the_queue_has_gone(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        entity, told = one.entity, list[Exception]()
        undo = entity.watch(told.append)
        changed = one.queue.spec.__class__(name="letters", enable_partitioning=True, status=QueueStatus.SEND_DISABLED)
        one.catalog.put(one.queue.__class__(spec=changed, uid="1", brokers=one.queue.brokers))
        assert [type(error) for error in told] == [EntityDisabled]
        with pytest.raises(EntityDisabled):
            entity.send([message()])
        assert one.entity is entity
        one.catalog.remove(one.queue.name)
        assert isinstance(told[1], EntityNotFound)
        undo()


async def test_a_queue_made_anew_under_its_name_is_another_one(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        before = one.entity
        sent = await before.send([message("old")])
        hand = Hand(before)
        one.catalog.put(one.queue.__class__(spec=one.queue.spec, uid="2", brokers=one.queue.brokers))
        assert len(hand.lost) == 1
        with pytest.raises(EntityNotFound):
            before.send([message()])
        after = one.entity
        assert after is not before
        found = Hand(after)
        assert bodies(await found.receive(1)) == ["old"]
        assert found.got[0].partition == sent.partition


async def test_what_is_sent_is_received_while_it_is_sent(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        hand = Hand(one.entity)
        hand.then = lambda messages: hand.receiver.want(len(messages))
        hand.receiver.want(100)
        for start in range(0, 3000, 100):
            await asyncio.gather(*(one.entity.send([message(str(n))]) for n in range(start, start + 100)))
        await until(lambda: len(hand.got) == 3000)
        assert sorted(map(int, hand.bodies)) == list(range(3000))
