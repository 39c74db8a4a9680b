"""Settling, deferring, peeking and cancelling over sixteen real brokers."""

import asyncio
import uuid
from typing import TypeVar

import pytest

from harness.entities_in_use import KEYS, Hand, bench, bodies, calls_of, until
from harness.redis_servers import Broker
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.model.errors import BrokerUnavailable, LockLost, MessageNotFound
from partitionedqueue.model.identifiers import sequence_number
from partitionedqueue.model.lock_token import LockToken
from partitionedqueue.model.stored_message import decode
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.deferred import DeferredMessages
from partitionedqueue_gateway.entities.taken import Shown

T = TypeVar("T")


async def test_what_is_completed_in_one_turn_is_one_call_a_partition(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        one.put(3, *map(str, range(300)))
        hand = Hand(one.entity)
        await hand.receive(300)
        await asyncio.sleep(0.1)
        before = calls_of(brokers[3])
        await asyncio.gather(*(one.entity.complete(message.token) for message in reversed(hand.got)))
        assert calls_of(brokers[3]) - before == 1
        assert one.totals(3).messages == 0


async def test_what_is_completed_while_a_call_is_under_way_waits_for_it_and_goes_together(
    brokers: list[Broker],
) -> None:
    async with bench(brokers) as one:
        one.put(3, *map(str, range(300)))
        hand = Hand(one.entity)
        await hand.receive(300)
        await asyncio.sleep(0.1)
        before = calls_of(brokers[3])
        completing = []
        for message in hand.got:
            completing.append(one.entity.complete(message.token))
            await asyncio.sleep(0)
        await asyncio.gather(*completing)
        assert calls_of(brokers[3]) - before <= 100  # a call takes three turns of the loop at the least
        assert one.totals(3).messages == 0


async def test_tokens_that_were_never_handed_out_are_lost_by_themselves(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        one.put(3, "a")
        (message,) = await Hand(one.entity).receive(1)
        strange = [LockToken(99, 1, 1), LockToken(3, 1, 12345), LockToken(4, 77, 1)]
        lost = await one.entity.complete_all([strange[0], message.token, *strange[1:]])
        assert set(lost) == set(strange)
        assert all(isinstance(error, LockLost) for error in lost.values())


async def test_the_same_token_twice_in_one_turn_is_lost_the_second_time(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        one.put(3, "a", "b")
        first, second = await Hand(one.entity).receive(2)
        outcomes = await asyncio.gather(
            *map(one.entity.complete, (first.token, second.token, first.token)), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [type(None), type(None), LockLost]


async def test_messages_are_abandoned_released_deferred_and_dead_lettered(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        for partition in range(4):
            one.put(partition, "message")
        hand = Hand(one.entity)
        by_partition = {message.partition: message.token for message in await hand.receive(4)}
        hand.receiver.close()
        assert not await one.entity.abandon([by_partition[0]], changes={"why": "busy"})
        assert not await one.entity.abandon([by_partition[1]], counted=False)
        assert not await one.entity.defer([by_partition[2]])
        assert not await one.entity.dead_letter([by_partition[3]], reason="bad", description="very")
        again = Hand(one.entity)
        found = {message.partition: message for message in await again.receive(2)}
        assert (found[0].deliveries, found[1].deliveries) == (2, 1)
        assert decode(found[0].stored).application_properties == {"why": "busy"}
        (dead,) = await Hand(one.open("letters/$DeadLetterQueue")).receive(1)
        told = {"DeadLetterReason": "bad", "DeadLetterErrorDescription": "very"}
        assert decode(dead.stored).application_properties == told
        assert not await one.open("letters/$deadletterqueue").complete_all([dead.token])
        assert one.in_all(lambda totals: totals.dead_letters) == 0


async def test_locks_are_renewed_each_and_a_lost_one_is_told(brokers: list[Broker]) -> None:
    async with bench(brokers, lock_duration_ms=5_000) as one:
        for partition in range(3):
            one.put(partition, "a", "b")
        messages = await Hand(one.entity).receive(6)
        await asyncio.sleep(1)
        until_ms = await one.entity.renew([message.token for message in messages])
        assert all(new > message.locked_until_ms + 500 for new, message in zip(until_ms, messages, strict=True))
        await one.entity.complete(messages[2].token)
        with pytest.raises(LockLost):
            await one.entity.renew([message.token for message in messages])
        assert not await one.entity.complete_all([m.token for m in messages if m is not messages[2]])


async def test_deferred_messages_come_back_by_number_all_or_none(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        for partition in range(5):
            one.put(partition, f"{partition}")
        hand = Hand(one.entity)
        messages = await hand.receive(5)
        assert not await one.entity.defer([message.token for message in messages])
        numbers = [sequence_number(message.partition, message.sequence) for message in messages]
        for wrong in (numbers[-1] + 1, 99 << 48 | 1, 0, -1):
            with pytest.raises(MessageNotFound):
                await one.entity.receive_deferred([*numbers, wrong])
        found = await one.entity.receive_deferred([*reversed(numbers[:3])])
        assert bodies(found) == bodies(messages[2::-1])
        assert not await one.entity.abandon([found[0].token])  # which stays deferred, as in Azure
        assert not await one.entity.complete_all([message.token for message in found[1:]])
        deleted = await one.entity.receive_deferred([numbers[2], *numbers[3:]], delete=True)
        assert [message.lock for message in deleted] == [0, 0, 0]
        assert one.in_all(lambda totals: totals.messages) == 0


class Forgetful(BrokerClient):
    """Its connection breaks after a broker has completed something, and again: so often nobody hears of it."""

    losses = 0

    async def call(self, call: Call[T], *, patience_s: float = 0.0) -> T:
        reply = await super().call(call, patience_s=patience_s)
        if self.losses and "pq_complete" in call.words:
            self.losses -= 1
            raise BrokerUnavailable("the reply was lost", outcome_unknown=True)
        return reply


@pytest.mark.parametrize(("losses", "found"), [(1, 5), (1_000, 4)])
async def test_deferred_messages_that_are_deleted_are_handed_over_though_replies_are_lost(
    brokers: list[Broker], monkeypatch: pytest.MonkeyPatch, losses: int, found: int
) -> None:
    monkeypatch.setattr(limits, "DELETE_S_MAX", 1.0)
    async with bench(brokers) as one:
        for partition in range(5):
            one.put(partition, f"{partition}")
        messages = await Hand(one.entity).receive(5)
        assert not await one.entity.defer([message.token for message in messages])
        numbers = [sequence_number(message.partition, message.sequence) for message in messages]
        clients = [Forgetful(broker.address) for broker in brokers]
        clients[2].losses = losses
        deleted = await DeferredMessages(clients, KEYS).receive(numbers, delete=True, session=None)
        assert len(deleted) == found
        for client in clients:
            await client.close()


async def test_a_partition_that_is_away_is_waited_for_when_something_is_settled(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        one.put(2, *map(str, range(10)))
        messages = await Hand(one.entity).receive(10)
        brokers[2].kill()
        settling = one.entity.complete_all([message.token for message in messages])
        await asyncio.sleep(0.5)
        assert not settling.done()
        brokers[2].restart()
        assert not await asyncio.wait_for(settling, 10)
        assert one.totals(2).messages == 0


async def test_peek_shows_all_partitions_in_order_and_goes_on_from_anywhere(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        for partition in range(16):
            one.put(partition, *(f"{partition}-{n}" for n in range(30)))
        await Hand(one.entity).receive(100)  # locked ones are shown, too
        shown, at = list[Shown](), 0
        while page := (await one.entity.peek(at, 37)).messages:
            assert len(page) == 37 or page[-1].partition == 15
            shown += page
            at = sequence_number(page[-1].partition, page[-1].sequence) + 1
        assert [decode(one.stored).body.decode() for one in shown] == [f"{p}-{n}" for p in range(16) for n in range(30)]


async def test_peek_finds_what_is_far_away_and_stops_at_256_kilobytes(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        one.put(15, "far")
        (found,) = (await one.entity.peek(1, 1)).messages
        assert (found.partition, found.sequence) == (15, 1)
        for partition in (4, 5, 6):
            one.put(partition, "x" * 90_000, "y" * 90_000)
        page = (await one.entity.peek(0, 100)).messages
        assert [(message.partition, message.sequence) for message in page] == [(4, 1), (4, 2)]
        page = (await one.entity.peek(sequence_number(5, 1), 100)).messages
        assert [(message.partition, message.sequence) for message in page] == [(5, 1), (5, 2)]


async def test_peek_passes_a_dead_partition_over_and_names_it(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        for partition in range(16):
            one.put(partition, f"{partition}")
        brokers[3].kill()
        messages, missing = await one.entity.peek(0, 100)
        assert [message.partition for message in messages] == [n for n in range(16) if n != 3]
        assert [*missing] == [3]
        for broker in brokers:
            broker.kill()
        with pytest.raises(BrokerUnavailable):
            await one.entity.peek(0, 100)


async def test_peek_by_state(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        one.put(1, "now")
        one.put(1, "later", scheduled_enqueue_time_ms=one.totals(1).now_ms + 60_000)
        page = (await one.entity.peek(0, 10, states="s")).messages
        assert [decode(message.stored).body for message in page] == [b"later"]
        assert page[0].state == 2


async def test_a_batch_of_old_messages_is_deleted_wherever_they_are(brokers: list[Broker]) -> None:
    async with bench(brokers) as one:
        for partition in range(16):
            one.put(partition, *map(str, range(10)))
        held = await Hand(one.entity).receive(5)
        await asyncio.sleep(0.02)
        before_ms = one.totals(0).now_ms
        await asyncio.sleep(0.02)
        one.put(3, "new")
        assert await one.entity.delete_batch(100, before_ms) == 100
        assert await one.entity.delete_batch(100, before_ms) == 55
        assert await one.entity.delete_batch(100, before_ms) == 0
        assert not await one.entity.complete_all([message.token for message in held])
        assert one.in_all(lambda totals: totals.messages) == 1


async def test_what_a_gateway_locked_another_one_settles(brokers: list[Broker]) -> None:
    async with bench(brokers) as one, bench(brokers, told=False) as other:
        one.put(7, "a")
        (message,) = await Hand(one.entity).receive(1)
        token = LockToken.from_uuid(uuid.UUID(bytes=message.token.uuid_bytes))
        await other.entity.complete(token)
        assert one.totals(7).messages == 0
        await until(lambda: one.in_all(lambda totals: totals.locked) == 0)
