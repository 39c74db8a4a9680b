"""Receiving over AMQP: credit, outcomes and their answers, and what becomes of messages whose receiver leaves."""

import asyncio
import dataclasses

import pytest

from harness.amqp_client import SETTLED, Client, Got, Refused, batch, connected, message
from harness.amqp_door import Door, served
from harness.redis_servers import Broker
from partitionedqueue.broker import calls
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model.amqp_message import BATCH_FORMAT
from partitionedqueue.model.lock_token import LockToken
from partitionedqueue.model.queue_spec import QueueStatus
from partitionedqueue_gateway.amqp.engine import outcomes, sections
from partitionedqueue_gateway.amqp.engine.encoding import encode
from partitionedqueue_gateway.amqp.engine.link import ReceivingLink
from partitionedqueue_gateway.amqp.engine.outcomes import ACCEPTED, RELEASED, Accepted, Modified, Outcome, Rejected
from partitionedqueue_gateway.amqp.engine.performatives import AmqpError
from partitionedqueue_gateway.amqp.engine.values import Described, Int, Symbol, ULong, Value
from partitionedqueue_gateway.entities import addresses

SHORT = {"lock_duration_ms": 5_000}
DEAD_LETTER = outcomes.rejected(
    AmqpError(
        "com.microsoft:dead-letter",
        None,
        {Symbol("DeadLetterReason"): "broken", Symbol("DeadLetterErrorDescription"): "it fell", Symbol("mine"): 1},
    )
)


def condition_of(outcome: Outcome | None) -> str:
    assert isinstance(outcome, Rejected)
    assert outcome.error is not None
    return outcome.error.condition


async def put(client: Client, count: int = 1, *, size: int = 0) -> None:
    sender = await client.sender("orders")
    step = 100 if not size else max(1, 200_000 // size)
    for at in range(0, count, step):
        several = [message(b"%d" % number + b" " * size) for number in range(at, min(at + step, count))]
        await client.send(sender, batch(*several), message_format=BATCH_FORMAT)


async def one(client: Client, receiver: ReceivingLink | None = None) -> Got:
    (got,) = await client.receive(receiver or await client.receiver("orders"))
    return got


async def test_a_delivery_says_what_sdks_read_from_it(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client)
        got = await one(client)
        seal = door.entities.open(addresses.parse("orders")).seal
        token = LockToken.from_tag(got.tag, seal)
        assert got.lock_token == token.sealed(seal).uuid
        assert got.sequence_number == token.partition << 48 | token.sequence
        assert got.delivery_count == 0
        assert {
            "x-opt-sequence-number",
            "x-opt-enqueued-time",
            "x-opt-locked-until",
            "x-opt-message-state",
        } <= got.annotations.keys()
        assert got.annotations["x-opt-locked-until"] > got.annotations["x-opt-enqueued-time"]


async def test_completing_is_answered_and_the_message_is_gone(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SHORT) as door, connected(door.port) as client:
        await put(client)
        receiver = await client.receiver("orders")
        assert await client.settle(await one(client, receiver), ACCEPTED) == Accepted()
        await asyncio.sleep(5.5)
        assert await client.drain(receiver, 1) == []


async def test_completing_after_the_lock_has_expired_is_refused_with_azures_words(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SHORT) as door, connected(door.port) as client:
        await put(client)
        receiver = await client.receiver("orders")
        got = await one(client, receiver)
        again = await one(client, receiver)
        assert again.delivery_count == 1
        outcome = await client.settle(got, ACCEPTED)
        assert condition_of(outcome) == "com.microsoft:message-lock-lost"
        assert isinstance(outcome, Rejected)
        assert "Either the lock expired, or the message has already been removed from the queue" in str(outcome.error)
        assert await client.settle(again, ACCEPTED) == Accepted()


@pytest.mark.parametrize(
    ("state", "deliveries"),
    [
        (outcomes.modified(Modified()), 1),
        (outcomes.modified(Modified(delivery_failed=True)), 1),
        (RELEASED, 0),
    ],
)
async def test_what_is_given_back_comes_again(brokers: list[Broker], state: bytes, deliveries: int) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client)
        receiver = await client.receiver("orders")
        answer = await client.settle(await one(client, receiver), state)
        assert answer == outcomes.read(state)
        assert (await one(client, receiver)).delivery_count == deliveries


async def test_abandoning_may_change_properties(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        await client.send(sender, message(b"", application={"a": 1, "b": 2}))
        receiver = await client.receiver("orders")
        changes = {Symbol("b"): Int(3), Symbol("c"): "new"}
        await client.settle(await one(client, receiver), outcomes.modified(Modified(annotations=changes)))
        found = (await one(client, receiver)).application_properties
        assert found == {"a": 1, "b": 3, "c": "new"}
        assert (type(found["a"]), type(found["b"])) == (int, Int)


async def test_a_change_that_cannot_be_is_refused_and_the_message_stays_locked(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client)
        got = await one(client)
        state = outcomes.modified(Modified(annotations={Symbol("a"): [1, 2]}))
        assert condition_of(await client.settle(got, state)) == "com.microsoft:argument-error"


async def test_a_dead_letter_is_answered_without_an_error_and_says_why(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client)
        assert await client.settle(await one(client), DEAD_LETTER) == Rejected(None)
        got = await one(client, await client.receiver("orders/$DeadLetterQueue"))
        assert got.application_properties == {
            "DeadLetterReason": "broken",
            "DeadLetterErrorDescription": "it fell",
            "mine": 1,
        }
        assert got.annotations["x-opt-deadletter-source"] == "orders"
        assert await client.settle(got, ACCEPTED) == Accepted()


async def test_a_message_that_was_delivered_too_often_is_dead_lettered(brokers: list[Broker]) -> None:
    async with served(brokers, orders={"max_delivery_count": 2}) as door, connected(door.port) as client:
        await put(client)
        receiver = await client.receiver("orders")
        for _ in range(2):
            await client.settle(await one(client, receiver), outcomes.modified(Modified()))
        got = await one(client, await client.receiver("orders/$deadletterqueue"))
        assert got.application_properties["DeadLetterReason"] == "MaxDeliveryCountExceeded"


async def test_a_deferred_message_does_not_come_by_itself(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client)
        receiver = await client.receiver("orders")
        state = outcomes.modified(Modified(undeliverable_here=True))
        assert await client.settle(await one(client, receiver), state) == Modified(undeliverable_here=True)
        assert await client.drain(receiver, 1) == []


@pytest.mark.parametrize("state", [ACCEPTED, RELEASED, DEAD_LETTER, outcomes.modified(Modified())])
async def test_a_range_of_deliveries_is_settled_at_once(brokers: list[Broker], state: bytes) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client, 40)
        receiver = await client.receiver("orders")
        found = await client.receive(receiver, 40)
        for got in found:  # the engine joins them into one frame
            got.link.settle(got.delivery_id, state, settled=False)
        client.flush()
        answers = [await client.outcome(receiver, got.delivery_id) for got in found]
        answer = Rejected(None) if state == DEAD_LETTER else outcomes.read(state)
        assert answers == [answer] * 40


async def test_what_the_client_settles_by_itself_is_not_answered(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SHORT) as door, connected(door.port) as client:
        await put(client, 10)
        receiver = await client.receiver("orders")
        for got in await client.receive(receiver, 10):
            client.say(got, ACCEPTED, settled=True)
        await asyncio.sleep(6)
        assert await client.drain(receiver, 10) == []
        assert (receiver, 0) not in client.outcomes


async def test_an_outcome_of_a_transaction_is_refused(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client)
        state = encode(Described(ULong(0x34), [b"txn", Described(ULong(0x24), [])]))
        assert condition_of(await client.settle(await one(client), state)) == "amqp:not-implemented"


async def test_receive_and_delete_needs_no_settling(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client, 30)
        receiver = await client.receiver("orders", snd_settle_mode=SETTLED)
        found = await client.receive(receiver, 30)
        assert all(got.settled for got in found)
        assert sections.DELIVERY_ANNOTATIONS not in found[0].sections
        assert await client.drain(receiver, 5) == []


async def test_no_more_comes_than_there_is_credit_for(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client, 200)
        receiver = await client.receiver("orders")
        assert len(await client.receive(receiver, 7)) == 7
        await asyncio.sleep(0.3)
        assert not client.got.get(receiver)
        assert await _locked(door) == 7


async def _locked(door: Door) -> int:
    found = 0
    (queue,) = door.catalog.queues.values()
    for address in queue.brokers:
        client = BrokerClient(address)
        found += (await client.call(calls.totals(QueueKeys("orders")))).locked
        await client.close()
    return found


async def test_a_drain_gives_what_is_there_and_the_rest_of_the_credit_back(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        receiver = await client.receiver("orders")
        assert await client.drain(receiver, 10) == []
        await put(client, 5)
        assert len(await client.drain(receiver, 10)) == 5
        assert receiver.credit == 0
        await put(client, 1)
        assert await client.settle(await one(client, receiver), ACCEPTED) == Accepted()


async def test_credit_that_is_withdrawn_brings_nothing(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        receiver = await client.receiver("orders")
        receiver.grant(10)
        client.flush()
        await asyncio.sleep(0.1)
        receiver.grant(0)
        client.flush()
        await asyncio.sleep(0.1)
        await put(client, 3)
        await asyncio.sleep(0.5)
        assert not client.got.get(receiver)
        assert len(await client.receive(await client.receiver("orders"), 3)) == 3


async def test_credit_lasts_until_it_is_used(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        receiver = await client.receiver("orders")
        receiver.grant(10)
        client.flush()
        await put(client, 4)
        await client.come(receiver, 4)
        await put(client, 6)
        await client.come(receiver, 6)


async def test_messages_larger_than_a_frame_come_whole(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port, max_frame_size=4_096) as client:
        sender = await client.sender("orders")
        body = bytes(range(256)) * 800
        assert await client.send(sender, message(body)) == Accepted()
        assert (await one(client)).body == body


async def test_the_clients_window_is_kept_to_and_what_waits_for_it_is_not_lost(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port, incoming_window=5) as client:
        await put(client, 60)
        receiver = await client.receiver("orders")
        found = await client.receive(receiver, 60, seconds=20)
        for got in found:
            assert await client.settle(got, ACCEPTED) == Accepted()


async def test_what_was_deleted_for_a_client_that_left_before_its_window_opened_goes_to_the_next(
    brokers: list[Broker],
) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        async with connected(door.port, incoming_window=2) as gone:
            await put(client, 20)
            receiver = await gone.receiver("orders", snd_settle_mode=SETTLED)
            assert gone.transport is not None
            gone.transport.pause_reading()
            receiver.grant(20)
            gone.flush()
            await asyncio.sleep(0.5)
            gone.cut()
            await gone.over.wait()
        await client.receive(await client.receiver("orders", snd_settle_mode=SETTLED), 18)


async def test_what_was_delivered_stays_locked_when_the_link_goes(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SHORT) as door, connected(door.port) as client:
        await put(client, 2)
        receiver = await client.receiver("orders")
        await client.receive(receiver, 2)
        receiver.detach()
        client.flush()
        other = await client.receiver("orders")
        assert await client.drain(other, 2) == []
        found = await client.receive(other, 2)
        assert {got.delivery_count for got in found} == {1}


async def test_what_a_receiver_had_asked_for_goes_to_another_when_its_connection_is_cut(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        async with connected(door.port) as gone:
            receiver = await gone.receiver("orders")
            receiver.grant(100)
            gone.flush()
            await asyncio.sleep(0.2)
            gone.cut()
            await gone.over.wait()
        await put(client, 20)
        found = await client.receive(await client.receiver("orders"), 20)
        assert {got.delivery_count for got in found} == {0}


async def test_a_client_that_does_not_read_holds_no_more_than_a_bound_and_bothers_nobody(
    brokers: list[Broker],
) -> None:
    async with served(brokers) as door, connected(door.port) as client, connected(door.port) as deaf:
        await put(client, 500, size=50_000)
        receiver = await deaf.receiver("orders")
        assert deaf.transport is not None
        receiver.grant(500)
        deaf.flush()
        deaf.transport.pause_reading()
        await asyncio.sleep(1.5)
        locked = await _locked(door)
        assert 0 < locked < 450
        others = await client.receive(await client.receiver("orders"), 20)
        assert len(others) == 20
        deaf.transport.resume_reading()
        await deaf.come(receiver, 480, seconds=30)


async def test_a_receiver_without_a_session_is_refused_where_the_queue_has_sessions(brokers: list[Broker]) -> None:
    async with served(brokers, orders={"requires_session": True}) as door, connected(door.port) as client:
        with pytest.raises(Refused) as refused:
            await client.receiver("orders")
        assert refused.value.condition == "amqp:not-allowed"
        assert "requires sessions" in refused.value.words
        await client.receiver("orders/$DeadLetterQueue")


@pytest.mark.parametrize("status", [QueueStatus.DISABLED, QueueStatus.RECEIVE_DISABLED])
async def test_nobody_receives_from_a_disabled_queue(brokers: list[Broker], status: QueueStatus) -> None:
    async with served(brokers[:1], orders={"status": status}) as door, connected(door.port) as client:
        with pytest.raises(Refused) as refused:
            await client.receiver("orders")
        assert refused.value.condition == "com.microsoft:entity-disabled"


async def test_a_queue_that_is_disabled_or_deleted_detaches_its_receivers(brokers: list[Broker]) -> None:
    async with served(brokers[:1], orders={}, parcels={}) as door, connected(door.port) as client:
        links = {name: await client.receiver(name) for name in ("orders", "parcels")}
        orders, parcels = door.catalog.queues.values()
        disabled = dataclasses.replace(orders.spec, status=QueueStatus.RECEIVE_DISABLED)
        door.catalog.put(dataclasses.replace(orders, spec=disabled))
        door.catalog.remove(parcels.name)
        await client.until(lambda: len(client.detached) == 2)
        conditions = {name: (client.detached[link] or AmqpError("")).condition for name, link in links.items()}
        assert conditions == {"orders": "com.microsoft:entity-disabled", "parcels": "amqp:not-found"}


async def test_a_message_is_found_promptly_by_a_receiver_that_waits(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        receiver = await client.receiver("orders")
        receiver.grant(1)
        client.flush()
        await asyncio.sleep(0.5)
        sender = await client.sender("orders")
        began = asyncio.get_running_loop().time()
        await client.send(sender, message(b""))
        await client.come(receiver, 1)
        assert asyncio.get_running_loop().time() - began < 1.0


async def test_annotations_and_bodies_of_the_sender_come_through(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        mine: dict[Symbol, Value] = {Symbol("x-opt-mine"): [1, "two"]}
        body = sections.encode(sections.SEQUENCE, [1, 2]) + sections.encode(sections.SEQUENCE, [3])
        await client.send(sender, sections.encode(sections.MESSAGE_ANNOTATIONS, mine) + body)
        got = await one(client)
        assert got.annotations["x-opt-mine"] == [1, "two"]


async def test_locks_and_receivers_of_several_links_do_not_mix(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client, 10)
        session = client.begin()
        several = [await client.receiver("orders", session=session) for _ in range(5)]
        found = [got for link in several for got in await client.receive(link, 2)]
        assert len({got.tag for got in found}) == 10
        for got in found:
            got.link.settle(got.delivery_id, ACCEPTED, settled=False)
        client.flush()
        for got in found:
            assert await client.outcome(got.link, got.delivery_id) == Accepted()
