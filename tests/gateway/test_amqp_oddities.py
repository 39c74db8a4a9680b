"""What no SDK says over AMQP: it is refused, and neither the connection nor the others come to harm."""

import asyncio
import contextlib
import random
from collections.abc import Iterator
from uuid import UUID

import pytest

from harness.amqp_client import Client, Refused, connected, message
from harness.amqp_door import served
from harness.entities_in_use import until
from harness.redis_servers import Broker
from partitionedqueue_gateway.amqp.engine import outcomes, sections
from partitionedqueue_gateway.amqp.engine.encoding import encode
from partitionedqueue_gateway.amqp.engine.frequent_reading import Flow
from partitionedqueue_gateway.amqp.engine.frequent_writing import flow
from partitionedqueue_gateway.amqp.engine.outcomes import Accepted
from partitionedqueue_gateway.amqp.engine.values import Array, Described, Int, Symbol, Timestamp, UInt, ULong, Value

ADDRESSES: list[Value] = [
    *("orders", "parcels", "orders/$management", "$cbs", "orders/$DeadLetterQueue", "", "/", "//", "%", "%zz", "://"),
    *("$management", "$deadletterqueue", "sb://", "a" * 5_000, "\u2603/\u2603", None, 5, b"orders", Symbol("orders")),
]
ODD: list[Value] = [None, True, 0, -1, 1.5, "a", "", b"\xff", Symbol("s"), UInt(7), Timestamp(5), UUID(int=1), [], [1]]
ODD += [{}, {"a": 1}, {Symbol("b"): [None]}, Described(ULong(0x137000000C), "x"), Array.of_symbols(["a"]), Int(-5)]
NAMES = ("com.microsoft:timeout", "com.microsoft:transfer-destination-address", "com.microsoft:entity-type", "other")
WORDS: list[Value] = [None, True, {"a": 1}, {Symbol("a"): {}}, "w", 5]
STATES = [
    *(outcomes.ACCEPTED, outcomes.RELEASED, outcomes.REJECTED, b""),
    *(encode(Described(ULong(code), told)) for code in (0x23, 0x24, 0x25, 0x26, 0x27, 0x34) for told in ([], [None])),
    *(encode(Described(ULong(0x27), [word, word, word])) for word in WORDS),
    *(encode(Described(ULong(0x25), [Described(ULong(0x1D), [Symbol("c"), word, word])])) for word in WORDS),
    *(encode(Described(ULong(99), [])), encode(5), encode(Described(Symbol("amqp:accepted:list"), []))),
]


@pytest.fixture(autouse=True)
def _no_defect(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert not [record for record in caplog.records if record.exc_info], caplog.text


async def _is_served(client: Client) -> None:
    assert await client.send(await client.sender("orders"), message(b"")) == Accepted()


@pytest.mark.parametrize("seed", range(4))
async def test_odd_links_are_refused_one_by_one(brokers: list[Broker], seed: int) -> None:
    chance = random.Random(seed)
    async with served(brokers[:1]) as door:
        for _ in range(6):
            async with connected(door.port) as client:
                for _ in range(10):
                    with contextlib.suppress(Refused, TimeoutError):
                        async with asyncio.timeout(1):
                            await _attach(client, chance)
        async with connected(door.port) as client:
            await _is_served(client)


async def _attach(client: Client, chance: random.Random) -> None:
    address = chance.choice(ADDRESSES)
    odd = Described(ULong(0x28), [address, *chance.choices(ODD, k=chance.randrange(8))])
    filters: dict[Value, Value] = {Symbol("com.microsoft:session-filter"): chance.choice(ODD)}
    properties = {Symbol(name): chance.choice(ODD) for name in chance.sample(NAMES, 2)}
    attach = client.receiver if chance.random() < 0.5 else client.sender
    more: dict[str, Value] = {"properties": properties, "snd_settle_mode": chance.choice([0, 1, 2])}
    if attach == client.receiver and chance.random() < 0.5:
        more["filters"] = filters
    if chance.random() < 0.5:
        more["target"] = chance.choice([odd, Described(ULong(0x30), []), Described(ULong(0x29), [address])])
    await attach(address if isinstance(address, str) else "orders", **more)


async def test_odd_outcomes_are_answered_or_end_the_connection_cleanly(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door:
        for state in STATES:
            async with connected(door.port) as client:
                await _is_served(client)
                receiver = await client.receiver("orders")
                (got,) = await client.receive(receiver)
                client.say(got, state)
                with contextlib.suppress(TimeoutError, Refused):
                    await client.outcome(receiver, got.delivery_id, seconds=0.3)
        async with connected(door.port) as client:
            await _is_served(client)


async def test_odd_messages_are_answered(brokers: list[Broker]) -> None:
    chance = random.Random(5)
    codes = (*range(0x70, 0x79), 0x79, 0x24, 0)
    async with served(brokers[:1]) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        for _ in range(300):
            several = [sections.encode(chance.choice(codes), chance.choice(ODD)) for _ in range(chance.randrange(4))]
            payload = b"".join(several)[: chance.choice([1_000, 1_000, 7])]
            sent = client.put(sender, payload, message_format=chance.choice([0, 0x80013700]))
            assert await client.outcome(sender, sent) is not None
        receiver = await client.receiver("orders")
        await client.drain(receiver, 1_000)  # those that were taken can be shown
        await _is_served(client)


@pytest.mark.parametrize("node", ["$cbs", "orders/$management"])
async def test_odd_questions_are_answered_or_refused(brokers: list[Broker], node: str) -> None:
    chance = random.Random(6)
    codes = (0x70, 0x72, 0x73, 0x74, 0x75, 0x77)
    async with served(brokers[:1]) as door, connected(door.port) as client:
        asking, answers = await client.pair(node)
        for _ in range(150):
            several = [sections.encode(chance.choice(codes), chance.choice(ODD)) for _ in range(chance.randrange(4))]
            await client.until(lambda: asking.credit > 0)
            assert await client.outcome(asking, client.put(asking, b"".join(several))) is not None
        assert answers not in client.detached
        await _is_served(client)


async def test_a_client_that_asks_and_never_listens_is_not_heard_either(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client, connected(door.port) as deaf:
        asking, answers = await deaf.pair("orders/$management")
        assert deaf.transport is not None
        deaf.transport.pause_reading()
        question = flow(answers.session.channel, Flow(answers.session.incoming.next_id, 5_000, 0, 5_000, echo=True))
        for _ in range(400):
            deaf.transport.write(question * 1_000)
            await asyncio.sleep(0)
        await asyncio.sleep(0.5)
        assert deaf.transport.get_write_buffer_size() > 0  # it is not read from
        assert max(wire.transport.get_write_buffer_size() for wire in door.wires) < 4 << 20
        deaf.transport.resume_reading()
        await until(lambda: deaf.transport is not None and not deaf.transport.get_write_buffer_size())
        assert asking not in deaf.detached
        await _is_served(client)
