"""Receiving over HTTP: what a caller is shown, how soon, and what becomes of what nobody takes."""

import asyncio
import re
import socket
from email.utils import parsedate_to_datetime
from itertools import pairwise
from typing import Any

import pytest

from harness.amqp_client import connected, message
from harness.amqp_door import served
from harness.entities_in_use import put, until
from harness.redis_servers import Broker
from harness.rest_door import answering
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model import limits
from partitionedqueue.model.message import Message
from partitionedqueue.model.stored_message import encode
from partitionedqueue_gateway import limits as gateway_limits
from partitionedqueue_gateway.amqp.engine import outcomes, sections
from partitionedqueue_gateway.amqp.engine.values import Symbol
from partitionedqueue_gateway.entities.addresses import parse
from partitionedqueue_gateway.rest.data_plane import receiving

KEYS = QueueKeys("orders")
LOCK = r"http://127\.0\.0\.1:\d+/orders/messages/(\d+)/([0-9a-f-]{36})"


async def test_a_locked_message_says_all_that_is_known_of_it(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        await http.send("hello", MessageId="m")
        got = await http.lock()
        assert (got.status, got.body) == (201, b"hello")
        told = got.properties
        where = re.fullmatch(LOCK, got.headers["Location"])
        assert where is not None
        assert where.groups() == (str(told["SequenceNumber"]), told["LockToken"])
        assert told["SequenceNumber"] & (1 << limits.SEQUENCE_BITS) - 1 == 1
        assert told["EnqueuedSequenceNumber"] == told["SequenceNumber"]
        assert (told["MessageId"], told["DeliveryCount"], told["State"]) == ("m", 1, "Active")
        assert told["TimeToLive"] == 922337203685.47754
        times = [parsedate_to_datetime(told[name]) for name in ("EnqueuedTimeUtc", "LockedUntilUtc")]
        assert 59 <= (times[1] - times[0]).total_seconds() <= 61


async def test_a_deleted_message_has_no_lock(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        await http.send("hello")
        got = await http.delete()
        assert (got.status, got.body) == (200, b"hello")
        assert "Location" not in got.headers
        assert not {"LockToken", "LockedUntilUtc"} & set(got.properties)


async def test_the_time_to_live_is_no_longer_than_the_queues(brokers: list[Broker]) -> None:
    async with served(brokers, orders={"default_message_time_to_live_ms": 60_000}) as door, answering(door) as http:
        await http.send(TimeToLive=90)
        await http.send(TimeToLive=30)
        assert {(await http.lock()).properties["TimeToLive"] for _ in range(2)} == {60.0, 30.0}


async def test_nothing_is_answered_when_the_time_is_over_and_not_before(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        loop = asyncio.get_running_loop()
        for ask in (http.lock, http.delete):
            began = loop.time()
            got = await ask(within=0.4)
            assert (got.status, got.body) == (204, b"")
            assert loop.time() - began >= 0.4


async def test_a_message_in_any_partition_wakes_who_waits(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        for number in (0, 7, 15):
            waiting = asyncio.create_task(http.lock(within=60))
            await asyncio.sleep(0.2)
            put(brokers[number], f"in {number}", keys=KEYS)
            assert (await asyncio.wait_for(waiting, 10)).body == f"in {number}".encode()


async def test_all_that_is_there_is_found_without_waiting(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        for number, broker in enumerate(brokers):
            put(broker, str(number), keys=KEYS)
        got = [await http.delete(within=20) for _ in brokers]
        assert {int(one.body) for one in got} == set(range(16))
        assert (await http.delete(within=0)).status == 204


async def test_many_who_wait_have_one_message_each(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        waiting = [asyncio.create_task(http.lock(within=60)) for _ in range(40)]
        await asyncio.sleep(0.2)
        for number in range(40):
            await http.send(str(number))
        got = await asyncio.wait_for(asyncio.gather(*waiting), 20)
        assert {int(one.body) for one in got} == set(range(40))


async def _hang_up(port: int, method: str) -> None:
    """Ask for a message, and be gone."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{method} /orders/messages/head HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await writer.drain()
    await asyncio.sleep(0.2)
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_nothing_is_taken_for_a_caller_who_has_gone(brokers: list[Broker], method: str) -> None:
    async with served(brokers) as door, answering(door) as http:
        for _ in range(5):
            await _hang_up(http.port, method)
        fan_in = door.entities.open(parse("orders"))._fan_ins[method == "DELETE"]
        await until(lambda: not fan_in.wanted)
        await http.send("hello")
        got = await http.lock()
        assert (got.body, got.properties["DeliveryCount"]) == (b"hello", 1)


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_a_message_that_cannot_be_written_goes_back_at_once_and_uncounted(
    brokers: list[Broker], method: str
) -> None:
    async with served(brokers) as door, answering(door) as http:
        for broker in brokers:
            put(broker, *["x" * 250_000] * 4, keys=KEYS)
        _, writer = await asyncio.open_connection("127.0.0.1", http.port, limit=1 << 10)
        request = f"{method} /orders/messages/head HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        writer.write(request * 60)  # what they ask for is more than the sockets take, and is never read
        await writer.drain()
        entity = door.entities.open(parse("orders"))
        await until(lambda: (fan_in := entity._fan_ins.get(method == "DELETE")) is not None and not fan_in.wanted)
        await asyncio.sleep(0.3)
        writer.transport.abort()
        got = 0
        while (answer := await http.delete(within=2)).status == 200:
            got += 1
            assert answer.properties["DeliveryCount"] == 1
        assert 0 < got < 64


@pytest.mark.parametrize("how", ["FIN", "RST"])
@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_a_message_is_not_written_to_who_hung_up_as_it_came(
    brokers: list[Broker], method: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, taken = asyncio.get_running_loop(), receiving._Wait._take
    with socket.socket() as caller:

        def take(wait: Any, messages: Any) -> None:
            caller.close()  # the loop has not seen it yet
            taken(wait, messages)

        monkeypatch.setattr(receiving._Wait, "_take", take)
        async with served(brokers) as door, answering(door) as http:
            caller.setblocking(False)
            await loop.sock_connect(caller, ("127.0.0.1", http.port))
            request = f"{method} /orders/messages/head HTTP/1.1\r\nHost: x\r\n\r\n"
            await loop.sock_sendall(caller, request.encode())
            await until(lambda: http.waits)
            if how == "RST":
                caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            await http.send("hello")
            await until(lambda: caller.fileno() < 0 and not http.waits)
            got = await http.ask(method, "/orders/messages/head?timeout=10")
            assert (got.body, got.properties["DeliveryCount"]) == (b"hello", 1)


async def test_many_who_wait_leave_room_for_others(brokers: list[Broker], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_limits, "HTTP_WAITS_MAX", 2)
    async with served(brokers) as door, answering(door) as http:
        waiting = [asyncio.create_task(http.lock(within=60)) for _ in range(2)]
        await until(lambda: http.waits == 2)
        refused = await http.lock()
        assert (refused.status, refused.sub_code, refused.headers["Retry-After"]) == (503, 50002, "1")
        for number in range(2):
            assert (await http.send(str(number))).status == 201
        assert {got.body for got in await asyncio.gather(*waiting)} == {b"0", b"1"}


async def test_silent_connections_make_room_for_new_ones(
    brokers: list[Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_limits, "CONNECTIONS_MAX", 5)
    async with served(brokers) as door, answering(door) as http:
        waiting = asyncio.create_task(http.lock(within=60))
        await until(lambda: http.waits)
        silent = [await asyncio.open_connection("127.0.0.1", http.port) for _ in range(12)]
        for _, writer in silent:
            writer.write(b"POST /ord")
        for number in range(3):
            assert (await http.send(str(number), headers={"Connection": "close"})).status == 201
        assert (await asyncio.wait_for(waiting, 10)).status == 201
        for _, writer in silent:
            writer.close()


async def test_at_the_end_of_a_gateway_who_waits_is_sent_elsewhere(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        waiting = [asyncio.create_task(http.lock(within=60)) for _ in range(3)]
        await asyncio.sleep(0.2)
        http.drain()
        for got in await asyncio.wait_for(asyncio.gather(*waiting), 10):
            assert (got.status, got.headers.get("Connection")) == (204, "close")
        await http.send("still served")
        assert (await http.lock(within=60)).body == b"still served"
        assert (await asyncio.wait_for(http.lock(within=60), 10)).status == 204


async def test_the_dead_letter_queue_is_read_by_its_path(brokers: list[Broker]) -> None:
    async with served(brokers, orders={"max_delivery_count": 1}) as door, answering(door) as http:
        await http.send("bad", headers={"Own": '"kept"'})
        await http.ask("PUT", (await http.lock()).held)
        for path in ("orders/$deadletterqueue", "ORDERS/%24DeadLetterQueue"):
            got = await http.lock(path)
            assert (got.status, got.body) == (201, b"bad")
            assert got.held.startswith("/orders/$DeadLetterQueue/messages/")
            assert got.headers["DeadLetterReason"] == '"MaxDeliveryCountExceeded"'
            assert got.headers["Own"] == '"kept"'
            assert got.properties["DeadLetterSource"] == "orders"
            assert (await http.ask("PUT", got.held)).status == 200
        refused = await http.send("x", "orders/$DeadLetterQueue")
        assert (refused.status, refused.sub_code) == (400, 40000)


async def test_a_queue_with_sessions_says_that_http_has_none(brokers: list[Broker]) -> None:
    async with served(brokers, orders={"requires_session": True}) as door, answering(door) as http:
        for refused in (await http.lock(), await http.delete()):
            assert (refused.status, refused.sub_code) == (400, 40000)
            assert "AMQP" in refused.body.decode()


async def test_what_amqp_has_and_http_has_not_is_shown_as_near_as_can_be(brokers: list[Broker]) -> None:
    data = [sections.encode(sections.DATA, part) for part in (b"one ", b"two")]
    bodies = {
        b"one two": b"".join(data),
        "Größe".encode(): sections.encode(sections.VALUE, "Größe"),
        b"\x00\xff": sections.encode(sections.VALUE, b"\x00\xff"),
        b"": b"",
    }
    odd = {
        "X-Lines": "one\r\ntwo",
        "Content-Length": "999",
        "no header": "text",
        "X-Bytes": b"\x00\xff",
        "X-Not": float("nan"),
        "X-Symbol": Symbol("s"),
        "X-Nothing": None,
    }
    async with served(brokers[:1]) as door, answering(door) as http, connected(door.port) as client:
        sender = await client.sender("orders")
        front = sections.encode(sections.PROPERTIES, ["m", None, None, None, None, None, Symbol("text/\nplain")])
        front += sections.encode(sections.APPLICATION_PROPERTIES, dict(odd))
        for body in bodies.values():
            await client.send(sender, front + body)
        for expected in bodies:
            got = await http.delete()
            assert got.body == expected
            shown = {name: got.headers.get(name) for name in odd}
            assert shown == {
                "X-Lines": '"one\\r\\ntwo"',
                "Content-Length": str(len(expected)),
                "no header": None,
                "X-Bytes": '"AP8="',
                "X-Not": '"nan"',
                "X-Symbol": '"s"',
                "X-Nothing": None,
            }
            assert got.headers["Content-Type"] == "text/\\nplain"


async def test_messages_of_one_partition_keep_their_order(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        for number in range(5):
            await http.send(str(number), PartitionKey="same")
        got = [(await http.delete()).properties["SequenceNumber"] for _ in range(5)]
        assert all(two == one + 1 for one, two in pairwise(got))


async def test_what_amqp_abandoned_http_counts(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http, connected(door.port) as client:
        await client.send(await client.sender("orders"), message(b"hello"))
        (got,) = await client.receive(await client.receiver("orders"))
        await client.settle(got, outcomes.modified(outcomes.Modified()))
        assert (await http.lock()).properties["DeliveryCount"] == 2


async def test_a_message_that_cannot_be_shown_does_not_come_again_and_again(
    brokers: list[Broker], caplog: pytest.LogCaptureFixture
) -> None:
    async with served(brokers[:1]) as door, answering(door) as http:
        good = encode(Message(body=b"good"))
        with BlockingBroker(brokers[0].address) as client:
            no_ids = bytes(2 * limits.FINGERPRINT_BYTES)
            client.call(calls.send(KEYS, [good[:70], good], fingerprints=no_ids))
        failed = await http.lock()
        assert (failed.status, failed.sub_code) == (500, 50000)
        assert "cannot be shown" in caplog.text
        assert (await http.lock()).body == b"good"
