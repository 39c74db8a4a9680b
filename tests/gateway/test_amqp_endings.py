"""The ends of connections over AMQP: this gateway's, a client's, and those of clients that misbehave."""

import asyncio
import gc
import socket

import pytest

from harness.amqp_client import Client, Refused, connected, message
from harness.amqp_door import Door, served
from harness.entities_in_use import until
from harness.redis_servers import Broker
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.amqp.engine.outcomes import ACCEPTED, REJECTED, RELEASED, Accepted, Rejected, Released
from partitionedqueue_gateway.amqp.engine.values import Value
from partitionedqueue_gateway.amqp.session_links import PendingSession

SESSIONS = {"requires_session": True}


async def drain(door: Door) -> None:
    """As the front door does at SIGTERM."""
    conversations = [wire.conversation for wire in door.wires]
    await asyncio.gather(*(one.drain() for one in conversations if one is not None))


def detached_with(client: Client) -> set[str]:
    return {error.condition for error in client.detached.values() if error is not None}


async def test_at_the_end_links_are_detached_and_the_connection_is_closed_so_that_clients_come_back(
    brokers: list[Broker],
) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        links = [
            await client.sender("orders"),
            await client.receiver("orders"),
            *await client.pair("orders/$management"),
        ]
        await drain(door)
        await client.over.wait()
        assert set(client.detached) == set(links)
        assert detached_with(client) == {"amqp:link:detach-forced"}
        assert client.ended is not None
        assert client.ended.condition == "amqp:connection:forced"
        await until(lambda: not door.wires)


async def test_at_the_end_what_was_sent_is_answered_first(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        sender, receiver = await client.sender("orders"), await client.receiver("orders")
        await client.send(sender, message(b""))
        brokers[0].pause()
        ids = [client.put(sender, message(b"")) for _ in range(10)]
        await asyncio.sleep(0.2)
        ending = asyncio.create_task(drain(door))
        await client.until(lambda: receiver in client.detached)
        await asyncio.sleep(0.3)
        assert not ending.done()
        brokers[0].resume()
        await ending
        assert {await client.outcome(sender, one) for one in ids} == {Accepted()}


async def test_at_the_end_what_was_settled_is_answered_first(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        sender, receiver = await client.sender("orders"), await client.receiver("orders")
        for _ in range(3):
            await client.send(sender, message(b""))
        several = await client.receive(receiver, 3)
        receiver.grant(1)
        brokers[0].pause()
        for got, state in zip(several, (ACCEPTED, RELEASED, REJECTED), strict=True):
            client.say(got, state)
        await asyncio.sleep(0.2)
        ending = asyncio.create_task(drain(door))
        await asyncio.sleep(0.2)
        brokers[0].resume()
        found = [await client.outcome(receiver, got.delivery_id) for got in several]
        assert found == [Accepted(), Released(), Rejected()]
        await ending
        assert detached_with(client) == {"amqp:link:detach-forced"}


async def test_at_the_end_questions_are_answered_first(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        await client.send(await client.sender("orders"), message(b""))
        node = await client.pair("orders/$management")
        brokers[0].pause()
        asked: dict[str, Value] = {"from-sequence-number": 0, "message-count": 1}
        asking = asyncio.create_task(client.manage(node, "peek-message", asked))
        await asyncio.sleep(0.2)
        ending = asyncio.create_task(drain(door))
        await asyncio.sleep(0.3)
        brokers[0].resume()
        assert (await asking).status == 200
        await ending


async def test_the_end_does_not_wait_for_ever(brokers: list[Broker], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DRAIN_SENDS_S_MAX", 0.5)
    async with served(brokers[:1]) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        await client.send(sender, message(b""))
        brokers[0].pause()
        client.put(sender, message(b""))
        await asyncio.sleep(0.1)
        async with asyncio.timeout(3):
            await drain(door)
            await client.over.wait()
        brokers[0].resume()


async def test_at_the_end_no_link_is_given_any_more(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        await client.send(sender, message(b""))
        brokers[0].pause()
        client.put(sender, message(b""))
        await asyncio.sleep(0.1)
        ending = asyncio.create_task(drain(door))
        await asyncio.sleep(0.1)
        with pytest.raises(Refused) as refused:
            await client.receiver("orders")
        assert refused.value.condition == "amqp:link:detach-forced"
        brokers[0].resume()
        await ending


async def test_at_the_end_sessions_are_let_go(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        await client.session_receiver("orders", "a")
        waiting = asyncio.create_task(client.session_receiver("orders", None))
        await asyncio.sleep(0.2)
        await drain(door)
        with pytest.raises(Refused) as refused:
            await waiting
        assert refused.value.condition == "amqp:link:detach-forced"
        await door.services.close()
        async with connected(door.port) as other:
            await other.session_receiver("orders", "a")


async def test_a_client_that_closes_is_answered_and_nothing_is_left_of_it(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door:
        async with connected(door.port) as client:
            await client.session_receiver("orders", "a")
            asyncio.get_running_loop().create_task(_ignored(client))
            await asyncio.sleep(0.1)
            await client.close()
        await until(lambda: not door.wires)
        gc.collect()
        assert not [one for one in gc.get_objects() if isinstance(one, PendingSession)]


async def _ignored(client: Client) -> None:
    with pytest.raises(Refused):
        await client.session_receiver("orders", None)


async def test_a_connection_that_is_cut_leaves_nothing_under_way(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door:
        async with connected(door.port) as client:
            sender = await client.sender("orders")
            brokers[0].pause()
            for _ in range(50):
                client.put(sender, message(b"x" * 1_000))
            await until(lambda: door.services.backlog.bytes > 0)
            client.cut()
            await client.over.wait()
        await until(lambda: not door.wires)
        brokers[0].resume()
        await until(lambda: door.services.backlog.bytes == 0)
        async with connected(door.port) as other:  # what was under way is stored all the same
            assert len(await other.receive(await other.receiver("orders"), 50)) == 50


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"AMQP\x00\x01\x00\x00" + b"\xff" * 64,
        b"AMQP\x03\x01\x00\x00" + b"\x00" * 64,
        b"AMQP\x00\x01\x00\x00" + b"\x00\x00\x00\x0f\x02\x00\x00\x00\x00\x53\x99\xc0\x01\x00\x45",
        b"AMQP\x00\x01\x00\x00" + b"\x7f\xff\xff\xff\x02\x00\x00\x00",
    ],
)
async def test_whoever_speaks_no_amqp_is_cut_off_and_others_are_not_bothered(
    brokers: list[Broker], said: bytes
) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        with socket.create_connection(("127.0.0.1", door.port)) as stranger:
            stranger.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(stranger, said)
            async with asyncio.timeout(5):
                while await loop.sock_recv(stranger, 4_096):
                    pass
        assert await client.send(sender, message(b"")) == Accepted()


async def test_outcomes_for_deliveries_that_never_were_change_nothing(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        await client.send(sender, message(b""))
        receiver = await client.receiver("orders")
        (got,) = await client.receive(receiver)
        receiver.settle(got.delivery_id + 1_000, ACCEPTED, settled=False)
        client.flush()
        assert await client.settle(got, ACCEPTED) == Accepted()
        client.say(got, ACCEPTED)
        assert await client.send(sender, message(b"")) == Accepted()


async def test_a_client_that_takes_no_answers_loses_its_link_for_them(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        asking, answers = await client.pair("orders/$management")
        answers.grant(0)
        client.flush()
        await asyncio.sleep(0.1)

        async def ask() -> None:
            await client.manage((asking, answers), "peek-message", {"from-sequence-number": 0, "message-count": 1})

        questions = []
        for _ in range(limits.ANSWERS_KEPT_MAX + 1):
            await client.until(lambda: asking.credit > 0 or answers in client.detached)
            questions.append(asyncio.create_task(ask()))
            await asyncio.sleep(0)
        await client.until(lambda: answers in client.detached)
        for one in await asyncio.gather(*questions, return_exceptions=True):
            assert isinstance(one, Refused)


async def test_answers_that_nobody_takes_are_few_in_bytes_too(
    brokers: list[Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ANSWERS_BYTES_MAX", 100_000)
    async with served(brokers[:1]) as door, connected(door.port) as client:
        await client.send(await client.sender("orders"), message(b"x" * 60_000))
        pairs = [await client.pair("orders/$management") for _ in range(3)]
        for _, answers in pairs:
            answers.grant(0)
        client.flush()
        await asyncio.sleep(0.1)
        asked = {"from-sequence-number": 0, "message-count": 1}
        questions = [asyncio.create_task(client.manage(pair, "peek-message", asked)) for pair in pairs]
        await client.until(lambda: any(answers in client.detached for _, answers in pairs))
        for one in questions:
            one.cancel()
        await asyncio.gather(*questions, return_exceptions=True)


async def test_many_connections_and_links_come_and_go(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door:

        async def life(number: int) -> None:
            async with connected(door.port) as client:
                sender, receiver = await client.sender("orders"), await client.receiver("orders")
                assert await client.send(sender, message(b"%d" % number)) == Accepted()
                (got,) = await client.receive(receiver)
                assert await client.settle(got, ACCEPTED) == Accepted()
                if number % 2:
                    await client.close()

        await asyncio.gather(*map(life, range(100)))
        await until(lambda: not door.wires)
