"""Who may do what over AMQP: tokens for $cbs, SASL, and links whose claims lapse."""

import asyncio
import base64
import time

import pytest

from harness.amqp_client import Answered, Client, Refused, connected, message
from harness.amqp_door import Door, served
from harness.redis_servers import Broker
from harness.sas_tokens import KEY, LISTENER, ROOT, SENDER, access_by_policies, sas_token
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.amqp.engine import terminus
from partitionedqueue_gateway.amqp.engine.outcomes import Accepted
from partitionedqueue_gateway.amqp.engine.values import ULong, Value

QUEUE = "sb://localhost:5672/orders"
SAS_TYPE = "servicebus.windows.net:sastoken"


async def put_token(
    client: Client,
    *,
    uri: str = QUEUE,
    lasts_s: float = 60,
    name: str = ROOT,
    key: str = KEY,
    kind: str = SAS_TYPE,
    audience: str | None = None,
) -> Answered:
    node = await client.pair("$cbs")
    token = sas_token(uri, expires_s=time.time() + lasts_s, name=name, key=key)
    return await client.ask(node, token, operation="put-token", name=audience or uri, type=kind)


@pytest.mark.parametrize("kind", [SAS_TYPE, "jwt"])
async def test_a_token_lets_in(brokers: list[Broker], kind: str) -> None:
    async with served(brokers[:1], access_by_policies()) as door, connected(door.port) as client:
        answer = await put_token(client, kind=kind)
        assert (answer.status, answer.words) == (202, "Accepted")
        sender = await client.sender("orders")
        assert await client.send(sender, message(b"")) == Accepted()
        await client.receive(await client.receiver("orders"))
        await client.pair("orders/$management")
        await client.receiver("orders/$DeadLetterQueue")


async def test_nobody_comes_in_without_a_token(brokers: list[Broker]) -> None:
    async with served(brokers[:1], access_by_policies()) as door, connected(door.port) as client:
        for attach, claim in (
            (client.sender("orders"), "Send"),
            (client.receiver("orders"), "Listen"),
            (client.sender("orders/$management"), "Listen"),
            (client.sender("nowhere"), "Send"),  # nobody learns what there is
        ):
            with pytest.raises(Refused) as refused:
                await attach
            assert refused.value.condition == "amqp:unauthorized-access"
            words = f"Unauthorized access. '{claim}' claim(s) are required to perform this operation"
            assert words in refused.value.words


async def test_a_claim_that_is_too_weak_is_named(brokers: list[Broker]) -> None:
    async with served(brokers[:1], access_by_policies()) as door, connected(door.port) as client:
        await put_token(client, name=LISTENER)
        await client.receiver("orders")
        with pytest.raises(Refused, match="'Send' claim"):
            await client.sender("orders")
        node = await client.pair("orders/$management")
        asked: dict[str, Value] = {"messages": [{"message": message(b"")}]}
        answer = await client.manage(node, "schedule-message", asked)
        assert (answer.status, answer.condition) == (401, "amqp:unauthorized-access")
        assert (
            await client.manage(node, "peek-message", {"from-sequence-number": 0, "message-count": 1})
        ).status == 204


async def test_a_token_for_a_management_node_lets_to_it_and_no_further(brokers: list[Broker]) -> None:
    async with served(brokers[:1], access_by_policies()) as door, connected(door.port) as client:
        await put_token(client, uri=f"{QUEUE}/$management")  # as JavaScript does
        node = await client.pair("orders/$management")
        assert (
            await client.manage(node, "peek-message", {"from-sequence-number": 0, "message-count": 1})
        ).status == 204
        with pytest.raises(Refused):
            await client.receiver("orders")


async def test_whoever_may_send_only_reads_nothing_by_the_management_node(brokers: list[Broker]) -> None:
    async with served(brokers[:1], access_by_policies()) as door, connected(door.port) as client:
        await put_token(client, name=SENDER)
        node = await client.pair("orders/$management")
        answer = await client.manage(node, "peek-message", {"from-sequence-number": 0, "message-count": 1})
        assert (answer.status, answer.condition) == (401, "amqp:unauthorized-access")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"lasts_s": -10}, "ExpiredToken: The token is expired. Expiration time:"),
        ({"key": "wrong"}, "InvalidSignature"),
        ({"name": "nobody"}, "InvalidSignature"),
        ({"audience": "sb://localhost:5672/parcels"}, "InvalidAudience"),
    ],
)
async def test_a_token_that_is_not_good_is_refused_with_azures_words(
    brokers: list[Broker], told: dict[str, object], words: str
) -> None:
    async with served(brokers[:1], access_by_policies()) as door, connected(door.port) as client:
        answer = await put_token(client, **told)  # type: ignore[arg-type]
        assert answer.status == 401
        assert words in answer.words
        with pytest.raises(Refused):
            await client.sender("orders")


@pytest.mark.parametrize(
    ("body", "properties"),
    [
        (5, {"operation": "put-token", "name": QUEUE}),
        ("SharedAccessSignature", {"operation": "put-token", "name": QUEUE}),
        ("", {"operation": "put-token"}),
        ("", {"operation": "delete-everything", "name": QUEUE}),
        ("eyJhbGciOi", {"operation": "put-token", "name": QUEUE, "type": "jwt"}),
        (None, {}),
    ],
)
async def test_what_is_no_token_is_refused(brokers: list[Broker], body: Value, properties: dict[str, Value]) -> None:
    async with served(brokers[:1], access_by_policies()) as door, connected(door.port) as client:
        answer = await client.ask(await client.pair("$cbs"), body, **properties)
        assert answer.status in (400, 401, 501)
        assert answer.words


async def test_an_answer_finds_its_way_without_a_reply_address(brokers: list[Broker]) -> None:
    async with served(brokers[:1], access_by_policies()) as door, connected(door.port) as client:
        session = client.begin()  # as Python does
        asking = await client.sender("$cbs", session=session)
        answers = await client.receiver("$cbs", session=session, target=terminus.target("$cbs"))
        answers.grant(10)
        token = sas_token(QUEUE, expires_s=time.time() + 60)
        answer = await client.ask(
            (asking, answers), token, reply_to=False, operation="put-token", name=QUEUE, message_id=ULong(3)
        )
        assert answer.status == 202


async def test_an_answer_finds_its_way_by_the_name_of_a_link(brokers: list[Broker]) -> None:
    async with served(brokers[:1], access_by_policies()) as door, connected(door.port) as client:
        asking = await client.sender("$cbs")  # as JavaScript does
        other = await client.receiver("$cbs", name="another", target=terminus.target(None))
        other.grant(10)
        answers = await client.receiver("$cbs", name="mine", target=terminus.target(None))
        answers.grant(10)
        last = await client.receiver("$cbs", name="last", target=terminus.target(None))
        last.grant(10)
        token = sas_token(QUEUE, expires_s=time.time() + 60)
        answer = await client.ask((asking, answers), token, reply_to="mine", operation="put-token", name=QUEUE)
        assert answer.status == 202


async def test_links_are_dropped_when_their_claims_lapse(brokers: list[Broker]) -> None:
    async with served(brokers[:1], access_by_policies()) as door, connected(door.port) as client:
        await put_token(client, lasts_s=3)
        sender, receiver = await client.sender("orders"), await client.receiver("orders")
        await client.until(lambda: sender in client.detached and receiver in client.detached, seconds=6)
        error = client.detached[sender]
        assert error is not None
        assert error.condition == "amqp:unauthorized-access"
        assert "ExpiredToken" in str(error.description)
        await put_token(client)
        assert await client.send(await client.sender("orders"), message(b"")) == Accepted()


async def test_links_stay_when_a_new_token_comes_in_time(brokers: list[Broker]) -> None:
    async with served(brokers[:1], access_by_policies()) as door, connected(door.port) as client:
        await put_token(client, lasts_s=2)
        sender = await client.sender("orders")
        await put_token(client, lasts_s=60)
        await asyncio.sleep(3)
        assert await client.send(sender, message(b"")) == Accepted()


async def test_claims_are_a_connections_own(brokers: list[Broker]) -> None:
    async with served(brokers[:1], access_by_policies()) as door, connected(door.port) as client:
        await put_token(client)
        async with connected(door.port) as other:
            with pytest.raises(Refused):
                await other.sender("orders")


async def test_whoever_shows_no_token_does_not_stay(brokers: list[Broker], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STRANGERS_S_MAX", 0.5)
    async with served(brokers[:1], access_by_policies()) as door, connected(door.port) as client:
        await put_token(client)
        async with connected(door.port) as stranger:
            await put_token(stranger, key="wrong" * 9)
            async with asyncio.timeout(5):
                await stranger.over.wait()
            assert stranger.ended is not None
            assert stranger.ended.condition == "amqp:connection:forced"
        assert await client.send(await client.sender("orders"), message(b"")) == Accepted()


@pytest.mark.parametrize("mechanism", ["ANONYMOUS", "EXTERNAL", "MSSBCBS"])
async def test_each_mechanism_leads_to_the_tokens(brokers: list[Broker], mechanism: str) -> None:
    access = access_by_policies()
    async with served(brokers[:1], access) as door, connected(door.port, mechanisms=(mechanism,)) as client:
        assert (await put_token(client)).status == 202


async def _send_plainly(door: Door, response: bytes, *, encrypted: bool = True) -> bool:
    door.encrypted = encrypted
    async with connected(door.port, mechanisms=("PLAIN",), sasl_response=response) as client:
        return await client.send(await client.sender("orders"), message(b"")) == Accepted()


async def test_a_policys_name_and_key_log_in_plainly(brokers: list[Broker]) -> None:
    async with served(brokers[:1], access_by_policies()) as door:
        assert await _send_plainly(door, b"\0" + ROOT.encode() + b"\0" + KEY.encode())
        assert await _send_plainly(door, b"anything\0" + ROOT.encode() + b"\0" + KEY.encode())


async def test_nobody_is_asked_for_a_key_that_others_could_read(brokers: list[Broker]) -> None:
    async with served(brokers[:1], access_by_policies()) as door:
        with pytest.raises(Refused):
            await _send_plainly(door, b"\0" + ROOT.encode() + b"\0" + KEY.encode(), encrypted=False)


@pytest.mark.parametrize(
    "response",
    [b"", b"\0", b"\0a\0b\0c", b"\0RootManageSharedAccessKey\0wrong", b"\0\xff\0\xff", base64.b64encode(b"a")],
)
async def test_another_name_or_key_does_not(brokers: list[Broker], response: bytes) -> None:
    async with served(brokers[:1], access_by_policies()) as door:
        with pytest.raises(Refused):
            await _send_plainly(door, response)
