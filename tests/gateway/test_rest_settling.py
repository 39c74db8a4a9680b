"""Settling over HTTP: by lock token, at whichever gateway, once."""

import uuid
from email.utils import parsedate_to_datetime

from harness.amqp_client import connected
from harness.amqp_door import served
from harness.redis_servers import Broker
from harness.rest_door import Caller, answering


async def check_lost(http: Caller, path: str) -> None:
    for method in ("DELETE", "PUT", "POST"):
        lost = await http.ask(method, path)
        assert (lost.status, lost.sub_code) == (404, 40400), method
        assert "The lock supplied is invalid." in lost.body.decode()


async def test_a_completed_message_is_gone(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        await http.send("hello")
        held = (await http.lock()).held
        done = await http.ask("DELETE", held)
        assert (done.status, done.body) == (200, b"")
        assert (await http.lock(within=0)).status == 204
        await check_lost(http, held)


async def test_an_abandoned_message_is_back_at_once_and_counted(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        await http.send("hello")
        for count in (1, 2, 3):
            got = await http.lock()
            assert got.properties["DeliveryCount"] == count
            assert (await http.ask("PUT", got.held)).status == 200
            await check_lost(http, got.held)


async def test_a_renewed_message_is_locked_for_longer(brokers: list[Broker]) -> None:
    async with served(brokers, orders={"lock_duration_ms": 5_000}) as door, answering(door) as http:
        await http.send("hello")
        got = await http.lock()
        until = [parsedate_to_datetime(got.properties["LockedUntilUtc"])]
        for _ in range(2):
            renewed = await http.ask("POST", got.held)
            assert renewed.status == 200
            until.append(parsedate_to_datetime(renewed.properties["LockedUntilUtc"]))
        assert until == sorted(until)
        assert (await http.ask("DELETE", got.held)).status == 200


async def test_the_message_id_and_a_slash_at_the_end_do_as_well(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        await http.send("hello", MessageId="a/b c?")
        token = (await http.lock()).properties["LockToken"]
        assert (await http.ask("POST", f"/orders/messages/a%2Fb%20c%3F/{token}/")).status == 200
        assert (await http.ask("DELETE", f"/orders/messages/a%2Fb%20c%3F/{token.upper()}")).status == 200


async def test_what_is_no_token_here_settles_nothing(brokers: list[Broker]) -> None:
    async with served(brokers, orders={}, others={}) as door, answering(door) as http:
        await http.send("hello")
        held = (await http.lock()).held
        for path in (
            f"/orders/messages/1/{uuid.uuid4()}",
            f"/orders/messages/1/{uuid.UUID(int=0)}",
            "/orders/messages/1/token",
            held.replace("/orders/", "/others/"),
            held.replace("/orders/", "/orders/$DeadLetterQueue/"),
        ):
            await check_lost(http, path)
        assert (await http.ask("DELETE", held)).status == 200


async def test_any_gateway_settles_what_another_has_handed_out(brokers: list[Broker]) -> None:
    async with (
        served(brokers) as door,
        served(brokers) as other_door,
        answering(door) as http,
        answering(other_door) as other,
    ):
        for method in ("DELETE", "PUT"):
            await http.send("hello")
            held = (await http.lock()).held
            assert (await other.ask("POST", held)).status == 200
            assert (await other.ask(method, held)).status == 200
            await check_lost(http, held)


async def test_what_http_holds_amqp_settles_and_the_other_way_round(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http, connected(door.port) as client:
        await http.send("hello")
        (got,) = await client.receive(await client.receiver("orders"))
        assert (await http.ask("DELETE", f"/orders/messages/1/{got.lock_token}")).status == 200
        assert (await http.lock(within=0)).status == 204
