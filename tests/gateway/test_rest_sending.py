"""Sending over HTTP: what an AMQP receiver has of it, what comes back over HTTP, and what is stored all or none."""

import asyncio
import base64
from contextlib import closing
from typing import Any

import pytest

from harness.amqp_client import Client, Got, connected
from harness.amqp_door import served
from harness.entities_in_use import until
from harness.redis_servers import Broker
from harness.rest_door import BATCH, Answer, answering
from partitionedqueue.model import limits
from partitionedqueue_gateway import limits as gateway_limits
from partitionedqueue_gateway.amqp.engine import sections
from partitionedqueue_gateway.amqp.engine.values import Timestamp

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
DATE_MS = 784_111_777_000
EVERYTHING: dict[str, Any] = {
    "MessageId": "m-1",
    "PartitionKey": "key",
    "Label": "greeting",
    "CorrelationId": "c-1",
    "To": "them",
    "ReplyTo": "us",
    "ReplyToSessionId": "s-9",
    "TimeToLive": 90.5,
    "ViaPartitionKey": "via",
    "SequenceNumber": 12345,
    "NobodyKnowsThis": [1, 2],
}
HEADERS = {
    "Content-Type": "text/plain; charset=utf-8",
    "Priority": '"High"',
    "Price": "12.5",
    "Count": "-7",
    "Huge": "9223372036854775808",
    "Urgent": "True",
    "Due": f'"{DATE}"',
    "Quoted": '"say \\"hello\\""',
    "Bare": "no quotation marks",
    "X-Umlaut": '"Größe"',
    "User-Agent": "nobody's property",
    "X-Forwarded-For": "10.1.2.3",
}
PROPERTIES = {
    "Priority": "High",
    "Price": 12.5,
    "Count": -7,
    "Huge": 9.223372036854775808e18,
    "Urgent": True,
    "Due": Timestamp(DATE_MS),
    "Quoted": 'say "hello"',
    "Bare": "no quotation marks",
    "X-Umlaut": "Größe",
}


async def received(client: Client, count: int = 1, queue: str = "orders") -> list[Got]:
    return await client.receive(await client.receiver(queue), count)


async def test_an_amqp_receiver_has_a_message_exactly_as_it_was_sent(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http, connected(door.port) as client:
        sent = await http.send(b"hello \x00\xff", headers=HEADERS, **EVERYTHING)
        assert (sent.status, sent.body) == (201, b"")
        (got,) = await received(client)
        assert got.body == b"hello \x00\xff"
        assert got.section(sections.PROPERTIES)[:7] == [
            "m-1", None, "them", "greeting", "us", "c-1", "text/plain; charset=utf-8",
        ]  # fmt: skip
        assert got.section(sections.PROPERTIES)[12] == "s-9"
        assert got.section(sections.HEADER)[2] == 90_500
        assert got.annotations["x-opt-partition-key"] == "key"
        assert got.application_properties == PROPERTIES


async def test_what_was_sent_over_http_comes_back_over_http(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        await http.send(b"hello", headers=HEADERS, **EVERYTHING)
        got = await http.lock()
        told = got.properties
        expected = {name: value for name, value in EVERYTHING.items() if name in told and name != "SequenceNumber"}
        assert {name: told[name] for name in expected} == expected
        assert len(expected) == 8
        assert got.headers["Content-Type"] == "text/plain; charset=utf-8"
        shown = {**HEADERS, "Huge": "9.223372036854776e+18", "Urgent": "true", "Bare": '"no quotation marks"'}
        for name in PROPERTIES:
            assert got.headers[name] == shown[name]
        assert "User-Agent" not in got.headers


async def test_a_message_without_anything_is_given_an_id_which_is_no_key(brokers: list[Broker]) -> None:
    async with served(brokers, orders={"requires_duplicate_detection": True}) as door, answering(door) as http:
        for _ in range(2):
            assert (await http.send()).status == 201
        ids = {(await http.delete()).properties["MessageId"] for _ in range(2)}
        assert len(ids) == 2
        assert all(len(one) == 32 for one in ids)


async def test_a_duplicate_is_accepted_and_dropped(brokers: list[Broker]) -> None:
    async with served(brokers, orders={"requires_duplicate_detection": True}) as door, answering(door) as http:
        for _ in range(2):
            assert (await http.send("same", MessageId="same")).status == 201
        assert (await http.delete()).status == 200
        assert (await http.delete(within=0)).status == 204


async def test_a_scheduled_message_comes_at_its_time(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        await http.send("later", ScheduledEnqueueTimeUtc="Fri, 31 Dec 9999 23:59:59 GMT")
        await http.send("earlier", ScheduledEnqueueTimeUtc=DATE)
        assert (await http.delete()).body == b"earlier"
        assert (await http.delete(within=0)).status == 204


async def test_a_message_of_a_session_goes_to_it(brokers: list[Broker]) -> None:
    async with (
        served(brokers, orders={"requires_session": True}) as door,
        answering(door) as http,
        connected(door.port) as client,
    ):
        assert (await http.send("one", SessionId="s")).status == 201
        refused = await http.send("none")
        assert (refused.status, refused.sub_code) == (400, 40000)
        link = await client.session_receiver("orders", "s")
        assert [got.body for got in await client.receive(link)] == [b"one"]


async def test_a_batch_is_stored_together_with_all_its_properties(brokers: list[Broker]) -> None:
    messages = [
        {"Body": "one", "BrokerProperties": {"Label": "M1", "TimeToLiveTimeSpan": "0.00:00:40", "ContentType": "a/b"}},
        {"Body": "two", "BrokerProperties": {"Label": "M2"}, "UserProperties": {"Priority": "Low", "N": 1, "B": False}},
        {"Body": base64.b64encode(b"\x00\xff").decode(), "IsBodyBase64Encoded": True},
    ]
    async with served(brokers) as door, answering(door) as http, connected(door.port) as client:
        assert (await http.batch(messages)).status == 201
        one, two, three = await received(client, 3)
        assert [got.body for got in (one, two, three)] == [b"one", b"two", b"\x00\xff"]
        assert len({got.sequence_number >> limits.SEQUENCE_BITS for got in (one, two, three)}) == 1
        assert one.section(sections.HEADER)[2] == 40_000
        assert one.section(sections.PROPERTIES)[6] == "a/b"
        assert two.application_properties == {"Priority": "Low", "N": 1, "B": False}


NO_BATCHES: list[Any] = [
    [{"Body": "1", "BrokerProperties": {"PartitionKey": key}} for key in "ab"],
    [{"Body": "1"}, {"Body": 2}],
    [{"Body": "1"}, {}],
    [{"Body": "1"}, {"Body": "2", "Bodies": "3"}],
    [{"Body": "1"}, {"Body": "2", "UserProperties": {"list": []}}],
    [{"Body": "1"}, {"Body": "2", "UserProperties": {"number": 2**70}}],
    [{"Body": "1"}, {"Body": "2", "BrokerProperties": 3}],
    [{"Body": "1"}, {"Body": "2", "BrokerProperties": {"MessageId": 3}}],
    [{"Body": "1"}, {"Body": "\ud800"}],
    [{"Body": "1"}, {"Body": "?", "IsBodyBase64Encoded": True}],
    [{"Body": "1"}] * 4_001,
    [],
    {"Body": "1"},
    "text",
    None,
]


async def test_nothing_of_a_batch_is_stored_that_cannot_be(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        for messages in NO_BATCHES:
            refused = await http.batch(messages)
            assert (refused.status, refused.sub_code) == (400, 40000), str(messages)[:100]
        assert (await http.delete(within=0)).status == 204


async def test_what_is_too_large_is_refused_and_what_just_fits_is_taken(brokers: list[Broker]) -> None:
    most = limits.MESSAGE_BYTES_MAX
    many = [{"Body": "x" * (most // 4)}] * 5
    async with served(brokers) as door, answering(door) as http:
        refusals: list[Answer] = [
            await http.send(bytes(most + 1)),
            await http.send(bytes(most)),  # with its properties
            await http.batch(many),
            await http.batch([{"Body": "x" * (2 * most)}]),
            await http.send("", headers={f"P{number}": '"' + "x" * 8000 + '"' for number in range(9)}),
        ]
        assert [(one.status, one.sub_code) for one in refusals] == [(403, 40300)] * 5
        assert (await http.send(bytes(most - 1_000))).status == 201
        assert len((await http.delete()).body) == most - 1_000
        assert (await http.delete(within=0)).status == 204


def _limit(brokers: list[Broker], memory: int) -> None:
    for broker in brokers:
        with closing(broker.connect()) as connection:
            connection.config_set("maxmemory", memory)


async def test_a_full_queue_is_refused_with_a_time_to_try_again(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        _limit(brokers, 1)
        try:
            refused = await http.send("no room")
            assert (refused.status, refused.sub_code) == (403, 40300)
            assert int(refused.headers["Retry-After"]) > 0
        finally:
            _limit(brokers, 0)


async def test_an_answer_waits_for_the_message_to_be_stored(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        for broker in brokers:
            broker.pause()
        try:
            answer = await http.ask("POST", "/orders/messages?timeout=1", "hello", {"Content-Type": "a/b"})
            assert (answer.status, answer.sub_code) == (503, 50002)
            assert int(answer.headers["Retry-After"]) > 0
            assert str(brokers[0].address) not in answer.body.decode()
        finally:
            for broker in brokers:
                broker.resume()


async def test_a_content_type_of_batches_may_have_parameters(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        headers = {"Content-Type": BATCH.upper() + "; charset=utf-8"}
        assert (await http.ask("POST", "/orders/messages", '[{"Body":"1"}]', headers)).status == 201
        assert (await http.delete()).body == b"1"


async def test_a_connection_is_kept(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        for _ in range(3):
            await http.send("hello")
            await http.delete()
        assert http.session.connector is not None
        await until(lambda: len(http.session.connector._conns) == 1)  # type: ignore[union-attr]


async def test_many_large_bodies_at_once_are_too_many(brokers: list[Broker], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_limits, "BODIES_BYTES_MAX", 400_000)
    async with served(brokers) as door, answering(door) as http:
        for broker in brokers:
            broker.pause()
        try:
            waiting = asyncio.create_task(http.send(bytes(200_000)))
            await until(lambda: http.bodies_bytes == 200_000)
            refused = await http.send(bytes(250_000))
            assert (refused.status, refused.sub_code) == (503, 50002)
            assert int(refused.headers["Retry-After"]) > 0
        finally:
            for broker in brokers:
                broker.resume()
        assert (await waiting).status == 201
        assert not http.bodies_bytes
        assert (await http.send(bytes(250_000))).status == 201


async def test_a_sender_who_hangs_up_harms_nobody(brokers: list[Broker], caplog: pytest.LogCaptureFixture) -> None:
    async with served(brokers) as door, answering(door) as http:
        for broker in brokers:
            broker.pause()
        try:
            for body in (b"hello", b"hel"):
                _, writer = await asyncio.open_connection("127.0.0.1", http.port)
                writer.write(b"POST /orders/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n" + body)
                await until(lambda: http.bodies_bytes)
                writer.transport.abort()
                await until(lambda: not http.bodies_bytes)
        finally:
            for broker in brokers:
                broker.resume()
        assert (await http.send("next", PartitionKey="k")).status == 201
        assert not caplog.records
