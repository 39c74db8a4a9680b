"""Sending over AMQP: what is answered, when, and what is refused."""

import asyncio
import dataclasses
import time
from functools import partial

import pytest

from harness.amqp_client import Client, Refused, batch, connected, message
from harness.amqp_door import served
from harness.entities_in_use import until
from harness.redis_servers import Broker
from partitionedqueue.model.amqp_message import BATCH_FORMAT
from partitionedqueue.model.queue_spec import QueueStatus
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.amqp.backlog import Backlog
from partitionedqueue_gateway.amqp.engine import sections
from partitionedqueue_gateway.amqp.engine.link import ReceivingLink, SendingLink
from partitionedqueue_gateway.amqp.engine.outcomes import Accepted, Outcome, Rejected
from partitionedqueue_gateway.amqp.engine.values import Described, Symbol, Timestamp, UInt, ULong, Value

COORDINATOR = Described(ULong(0x30), [[Symbol("amqp:local-transactions")]])


def condition_of(outcome: Outcome | None) -> str:
    assert isinstance(outcome, Rejected)
    assert outcome.error is not None
    return outcome.error.condition


async def all_of(client: Client, link: ReceivingLink, count: int) -> list[bytes]:
    return sorted(got.body for got in await client.receive(link, count))


async def test_a_message_is_accepted_and_received(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        assert await client.send(sender, message(b"hello", message_id="1")) == Accepted()
        (got,) = await client.receive(await client.receiver("orders"))
        assert (got.body, got.delivery_count) == (b"hello", 0)
        assert got.section(sections.PROPERTIES)[0] == "1"


async def test_a_message_is_accepted_only_once_it_is_stored(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        for broker in brokers:
            broker.pause()
        try:
            sent = client.put(sender, message(b"hello"))
            await asyncio.sleep(0.3)
            assert (sender, sent) not in client.outcomes
        finally:
            for broker in brokers:
                broker.resume()
        assert await client.outcome(sender, sent) == Accepted()


async def test_a_message_without_an_id_is_given_one(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        for _ in range(2):
            await client.send(sender, message(b""))
        found = await client.receive(await client.receiver("orders"), 2)
        ids = {got.section(sections.PROPERTIES)[0] for got in found}
        assert len(ids) == 2
        assert all(isinstance(one, str) and len(one) == 32 for one in ids)


async def test_many_sends_at_once_are_each_answered(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        ids = []
        for number in range(2_500):  # more than there is credit for
            await client.until(lambda: sender.credit > 0)
            ids.append(client.put(sender, message(b"%d" % number)))
        assert {await client.outcome(sender, one) for one in ids} == {Accepted()}


async def test_a_batch_is_one_delivery_and_its_messages_are_many(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        several = batch(*(message(b"%d" % number) for number in range(10)))
        assert await client.send(sender, several, message_format=BATCH_FORMAT) == Accepted()
        receiver = await client.receiver("orders")
        found = await client.receive(receiver, 10)
        assert sorted(got.body for got in found) == [b"%d" % number for number in range(10)]
        assert len({got.sequence_number >> 48 for got in found}) == 1


async def test_a_batchs_own_partition_key_is_that_of_its_messages(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        for _ in range(3):
            several = batch(message(b"a"), message(b"b"), annotations={"x-opt-partition-key": "k"})
            await client.send(sender, several, message_format=BATCH_FORMAT)
        found = await client.receive(await client.receiver("orders"), 6)
        assert len({got.annotations["x-opt-partition-id"] for got in found}) == 1
        assert {got.annotations["x-opt-partition-key"] for got in found} == {"k"}


async def test_a_batch_with_several_keys_is_refused(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        one, other = (message(b"", annotations={"x-opt-partition-key": key}) for key in "ab")
        outcome = await client.send(sender, batch(one, other), message_format=BATCH_FORMAT)
        assert condition_of(outcome) == "amqp:not-allowed"


async def test_two_keys_that_differ_are_refused(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        wrong = message(b"", session_id="a", annotations={"x-opt-partition-key": "b"})
        assert condition_of(await client.send(sender, wrong)) == "amqp:not-allowed"


async def test_a_message_that_is_none_is_refused_and_the_link_goes_on(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        for wrong in (b"\x00", b"\x00\x53\x99\xa0\x01a", b"hello"):
            assert condition_of(await client.send(sender, wrong)) == "com.microsoft:argument-error"
        assert await client.send(sender, message(b"hello")) == Accepted()


async def test_another_message_format_is_refused(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        assert condition_of(await client.send(sender, message(b""), message_format=7)) == "amqp:not-implemented"


async def test_a_message_that_is_too_large_is_refused_and_the_link_goes_on(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        assert sender.max_message_size == 256 * 1024
        outcome = await client.send(sender, message(b"x" * 262_144))
        assert condition_of(outcome) == "amqp:link:message-size-exceeded"
        assert await client.send(sender, message(b"x" * 260_000)) == Accepted()


async def test_a_message_that_is_much_too_large_is_not_kept(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        outcome = await client.send(sender, message(b"x" * 20_000_000))
        assert condition_of(outcome) == "amqp:link:message-size-exceeded"
        assert await client.send(sender, message(b"")) == Accepted()


async def test_what_is_sent_settled_is_stored_and_not_answered(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        sender = await client.sender("orders", snd_settle_mode=1)
        for number in range(20):
            client.put(sender, message(b"%02d" % number), settled=True)
        receiver = await client.receiver("orders")
        assert await all_of(client, receiver, 20) == [b"%02d" % number for number in range(20)]
        assert not client.outcomes


async def test_a_message_with_a_time_comes_at_that_time(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        sender, receiver = await client.sender("orders"), await client.receiver("orders")
        at_ms = int(time.time() * 1000) + 1_500
        later = message(b"later", annotations={"x-opt-scheduled-enqueue-time": Timestamp(at_ms)})
        assert await client.send(sender, later) == Accepted()
        assert await client.drain(receiver, 1) == []
        (got,) = await client.receive(receiver)
        assert got.annotations["x-opt-enqueued-time"] >= at_ms


async def test_an_entity_that_is_not_there_is_not_found(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        for address in ("parcels", "team-a/orders", "$cbs/orders", "a/b/c", ""):
            with pytest.raises(Refused) as refused:
                await client.sender(address)
            assert refused.value.condition == "amqp:not-found", address
            assert "The messaging entity '" in refused.value.words
            assert "could not be found" in refused.value.words


@pytest.mark.parametrize(
    "address",
    [
        "orders",
        "ORDERS",
        "/orders",
        "amqps://localhost:5671/orders",
        "sb://localhost/orders/",
        "%6Frders",
        "default/orders",
    ],
)
async def test_an_entity_is_found_by_all_its_names(brokers: list[Broker], address: str) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        sender = await client.sender(address)
        assert await client.send(sender, message(b"")) == Accepted()


async def test_source_and_target_come_back_as_they_were_asked_for(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        target = Described(ULong(0x29), ["amqps://h:1/orders", UInt(2), Symbol("never")])
        sender = await client.sender("", target=target)
        assert sender.target == target


@pytest.mark.parametrize("sub_queue", ["$DeadLetterQueue", "$Transfer/$DeadLetterQueue"])
async def test_nobody_sends_to_a_sub_queue(brokers: list[Broker], sub_queue: str) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        with pytest.raises(Refused) as refused:
            await client.sender(f"orders/{sub_queue}")
        assert refused.value.condition == "amqp:not-allowed"


@pytest.mark.parametrize(
    ("target", "properties", "condition"),
    [
        (COORDINATOR, {}, "amqp:not-implemented"),
        (Described(ULong(0x29), [None]), {}, "com.microsoft:argument-error"),
        (Described(ULong(0x29), [5]), {}, "com.microsoft:argument-error"),
        (
            Described(ULong(0x29), ["orders"]),
            {Symbol("com.microsoft:transfer-destination-address"): "x"},
            "amqp:not-implemented",
        ),
    ],
)
async def test_what_is_not_served_is_refused_and_others_are_not_bothered(
    brokers: list[Broker], target: Described, properties: dict[Symbol, Value], condition: str
) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        other = await client.sender("orders")
        with pytest.raises(Refused) as refused:
            await client.sender("", target=target, properties=properties)
        assert refused.value.condition == condition
        assert await client.send(other, message(b"")) == Accepted()


async def test_a_message_without_a_session_is_refused_where_the_queue_has_sessions(brokers: list[Broker]) -> None:
    async with served(brokers, orders={"requires_session": True}) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        assert condition_of(await client.send(sender, message(b""))) == "amqp:not-allowed"
        assert await client.send(sender, message(b"", session_id="")) == Accepted()


@pytest.mark.parametrize("status", [QueueStatus.DISABLED, QueueStatus.SEND_DISABLED])
async def test_nobody_sends_to_a_disabled_queue(brokers: list[Broker], status: QueueStatus) -> None:
    async with served(brokers[:1], orders={"status": status}) as door, connected(door.port) as client:
        with pytest.raises(Refused) as refused:
            await client.sender("orders")
        assert refused.value.condition == "com.microsoft:entity-disabled"


async def test_a_queue_that_is_disabled_or_deleted_detaches_its_senders(brokers: list[Broker]) -> None:
    async with served(brokers[:1], orders={}, parcels={}) as door, connected(door.port) as client:
        links: dict[str, SendingLink] = {name: await client.sender(name) for name in ("orders", "parcels")}
        (orders, parcels) = door.catalog.queues.values()
        door.catalog.put(
            dataclasses.replace(orders, spec=dataclasses.replace(orders.spec, status=QueueStatus.SEND_DISABLED))
        )
        door.catalog.remove(parcels.name)
        await client.until(lambda: len(client.detached) == 2)
        conditions = {name: client.detached[link] for name, link in links.items()}
        assert conditions["orders"] is not None
        assert conditions["orders"].condition == "com.microsoft:entity-disabled"
        assert conditions["parcels"] is not None
        assert conditions["parcels"].condition == "amqp:not-found"


async def test_a_dead_partition_stops_keyless_sends_not_at_all(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        brokers[5].kill()
        sender = await client.sender("orders")
        ids = [client.put(sender, message(b"")) for _ in range(64)]
        assert {await client.outcome(sender, one) for one in ids} == {Accepted()}


async def test_a_keyed_send_to_a_dead_partition_fails_in_the_clients_own_time(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        brokers[0].kill()
        timeout = {Symbol("com.microsoft:timeout"): UInt(1_000)}
        sender = await client.sender("orders", properties=timeout)
        keyed = message(b"", annotations={"x-opt-partition-key": "k"})
        assert condition_of(await client.send(sender, keyed)) == "com.microsoft:server-busy"


async def test_a_client_that_sends_faster_than_brokers_store_is_not_read_from(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        brokers[0].pause()
        try:
            ids = [client.put(sender, message(b"x" * 200_000)) for _ in range(250)]
            backlog = door.services.backlog
            await until(lambda: backlog.bytes >= limits.CONNECTION_SENDS_BYTES_MAX)
            await asyncio.sleep(0.3)
            assert backlog.bytes <= limits.CONNECTION_SENDS_BYTES_MAX + (1 << 20)
        finally:
            brokers[0].resume()
        assert {await client.outcome(sender, one, seconds=30) for one in ids} == {Accepted()}
        await until(lambda: backlog.bytes == 0)


def _holds(backlog: Backlog, least: int) -> bool:
    return backlog.bytes >= least


async def test_what_clients_that_have_gone_sent_takes_its_room_until_it_is_stored(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door:
        backlog = door.services.backlog
        brokers[0].pause()
        try:
            for most in (2_000_000, 4_000_000, 6_000_000):
                async with connected(door.port) as client:
                    sender = await client.sender("orders")
                    for _ in range(10):
                        client.put(sender, message(b"x" * 200_000))
                    await until(partial(_holds, backlog, most))
                    client.cut()
                    await client.over.wait()
        finally:
            brokers[0].resume()
        await until(lambda: backlog.bytes == 0)
