"""Sessions over AMQP: accepting them, holding them, losing them."""

import asyncio
import time

import pytest

from harness.amqp_client import Client, Refused, connected, message
from harness.amqp_door import served
from harness.redis_servers import Broker
from partitionedqueue_gateway.amqp.engine import outcomes, sections, terminus
from partitionedqueue_gateway.amqp.engine.link import ReceivingLink
from partitionedqueue_gateway.amqp.engine.outcomes import ACCEPTED, Accepted, Modified
from partitionedqueue_gateway.amqp.engine.values import Described, Symbol, UInt, ULong, Value
from partitionedqueue_gateway.amqp.session_links import ticks

SESSIONS = {"requires_session": True}
SHORT = {"requires_session": True, "lock_duration_ms": 5_000}
FILTER = "com.microsoft:session-filter"
GO = 0x137000000C


async def put(client: Client, *sessions: str) -> None:
    sender = await client.sender("orders")
    for number, session_id in enumerate(sessions):
        await client.send(sender, message(b"%d" % number, session_id=session_id))


def accepted(link: ReceivingLink) -> Value:
    return terminus.filters_of(link.source)[FILTER]


async def test_a_session_is_held_and_its_messages_come_in_order(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        await put(client, *["a", "b"] * 10)
        receiver = await client.session_receiver("orders", "a")
        found = await client.receive(receiver, 10)
        assert [got.body for got in found] == [b"%d" % number for number in range(0, 20, 2)]
        for got in found:
            assert await client.settle(got, ACCEPTED) == Accepted()
        assert await client.drain(receiver, 1) == []


async def test_the_answer_says_which_session_and_until_when(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        await put(client, "a")
        receiver = await client.session_receiver("orders", None)
        assert accepted(receiver) == "a"
        until = receiver.properties["com.microsoft:locked-until-utc"]
        now_ms = int(time.time() * 1000)
        assert ticks(now_ms + 50_000) < until < ticks(now_ms + 70_000)


@pytest.mark.parametrize("session_id", ["a", ""])
@pytest.mark.parametrize("named", [True, False])
async def test_a_described_filter_is_answered_described(brokers: list[Broker], session_id: str, named: bool) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        await put(client, session_id)
        asked = Described(ULong(GO), session_id if named else None)
        receiver = await client.receiver("orders", filters={Symbol(FILTER): asked})
        assert accepted(receiver) == Described(ULong(GO), session_id)


async def test_the_session_without_a_name_is_one(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        await put(client, "", "a")
        receiver = await client.session_receiver("orders", "")
        assert accepted(receiver) == ""
        (got,) = await client.receive(receiver)
        assert got.section(sections.PROPERTIES)[10] == ""


async def test_a_session_that_has_nothing_yet_may_be_accepted(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        receiver = await client.session_receiver("orders", "new")
        receiver.grant(1)
        client.flush()
        await put(client, "new")
        assert len(await client.come(receiver, 1)) == 1


async def test_a_session_is_held_by_one_receiver(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        await client.session_receiver("orders", "a")
        with pytest.raises(Refused) as refused:
            await client.session_receiver("orders", "a")
        assert refused.value.condition == "com.microsoft:session-cannot-be-locked"
        words = "The requested session 'a' cannot be accepted. It may be locked by another receiver."
        assert refused.value.words == words
        async with connected(door.port) as other:
            with pytest.raises(Refused):
                await other.session_receiver("orders", "a")


async def test_a_session_is_free_as_soon_as_its_link_is_closed(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        await put(client, "a", "a")
        receiver = await client.session_receiver("orders", "a")
        await client.receive(receiver, 2)
        receiver.detach()
        client.flush()
        again = await _accept_soon(client, "a")
        found = await client.receive(again, 2)
        assert [(got.body, got.delivery_count) for got in found] == [(b"0", 0), (b"1", 0)]


async def _accept_soon(client: Client, session_id: str) -> ReceivingLink:
    for _ in range(50):
        try:
            return await client.session_receiver("orders", session_id)
        except Refused:
            await asyncio.sleep(0.05)
    raise AssertionError("the session did not become free")


async def test_a_session_is_free_as_soon_as_its_connection_is_cut(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        await put(client, "a")
        async with connected(door.port) as gone:
            await gone.receive(await gone.session_receiver("orders", "a"))
            gone.cut()
            await gone.over.wait()
        (got,) = await client.receive(await _accept_soon(client, "a"))
        assert got.delivery_count == 0


async def test_what_is_settled_just_before_a_session_is_let_go_is_settled(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        await put(client, "a")
        receiver = await client.session_receiver("orders", "a")
        (got,) = await client.receive(receiver)
        receiver.settle(got.delivery_id, ACCEPTED)
        receiver.detach()
        client.flush()
        assert await client.drain(await client.session_receiver("orders", "a"), 1) == []


async def test_the_next_session_is_waited_for(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        waiting = asyncio.create_task(client.session_receiver("orders", None))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        await put(client, "a")
        receiver = await asyncio.wait_for(waiting, 3)
        assert accepted(receiver) == "a"
        assert len(await client.receive(receiver)) == 1


async def test_waiting_for_the_next_session_ends_in_the_clients_own_time(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        began = time.monotonic()
        with pytest.raises(Refused) as refused:
            await client.session_receiver("orders", None, properties={Symbol("com.microsoft:timeout"): UInt(1_000)})
        assert refused.value.condition == "com.microsoft:timeout"
        assert "allotted timeout of 00:00:01" in refused.value.words
        assert 0.9 < time.monotonic() - began < 3


async def test_whoever_stops_waiting_for_a_session_takes_none(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        async with connected(door.port) as gone:
            waiting = asyncio.create_task(gone.session_receiver("orders", None))
            await asyncio.sleep(0.3)
            gone.cut()
            with pytest.raises(Refused):
                await waiting
        await put(client, "a")
        assert accepted(await client.session_receiver("orders", None, seconds=3)) == "a"


async def test_a_session_whose_lock_has_expired_detaches_its_link(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SHORT) as door, connected(door.port) as client:
        await put(client, "a")
        receiver = await client.session_receiver("orders", "a")
        await client.receive(receiver)
        await client.until(lambda: receiver in client.detached, seconds=8)
        error = client.detached[receiver]
        assert error is not None
        assert error.condition == "com.microsoft:session-lock-lost"
        (got,) = await client.receive(await client.session_receiver("orders", "a"))
        assert got.delivery_count == 1


async def test_all_outcomes_are_there_in_a_session(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        await put(client, *["a"] * 4)
        receiver = await client.session_receiver("orders", "a")
        found = await client.receive(receiver, 4)
        for got, state in zip(
            found,
            (
                ACCEPTED,
                outcomes.REJECTED,
                outcomes.modified(Modified(undeliverable_here=True)),
                outcomes.modified(Modified()),
            ),
            strict=True,
        ):
            assert await client.settle(got, state) == outcomes.read(state)
        (again,) = await client.receive(receiver)
        assert (again.body, again.delivery_count) == (b"3", 1)
        assert len(await client.receive(await client.receiver("orders/$DeadLetterQueue"))) == 1


async def test_a_peek_that_names_the_link_of_a_session_shows_that_session_alone(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        await put(client, "a", "b", "a")
        receiver = await client.session_receiver("orders", "a")
        node = await client.pair("orders/$management")
        asked = {"from-sequence-number": 0, "message-count": 10}
        answer = await client.manage(node, "peek-message", asked, associated_link_name=receiver.name)
        assert len(answer.body["messages"]) == 2


@pytest.mark.parametrize("asked", [5, "x" * 129, [1]])
async def test_a_session_filter_that_names_none_is_refused(brokers: list[Broker], asked: Value) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        with pytest.raises(Refused) as refused:
            await client.receiver("orders", filters={Symbol(FILTER): asked})
        assert refused.value.condition.startswith("com.microsoft:argument-")


async def test_a_queue_without_sessions_has_none_to_accept(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        for session_id in ("a", None):
            with pytest.raises(Refused) as refused:
                await client.session_receiver("orders", session_id)
            assert refused.value.condition == "amqp:not-allowed"
