"""Whatever is said to it, a gateway answers in HTTP's words, has no defect, and goes on serving."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from string import ascii_letters, digits
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some

from harness.amqp_door import served
from harness.redis_servers import Broker
from harness.rest_door import BATCH, Caller, answering
from partitionedqueue_gateway.rest.data_plane.broker_properties import NAMES

EXAMPLES = 80
SECONDS = 20
JSON: Any = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=40),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)
PROPERTIES = some.dictionaries(some.sampled_from(NAMES) | some.text(max_size=10), JSON, max_size=6)
LATIN = some.characters(min_codepoint=32, max_codepoint=255, blacklist_characters="\x7f")
VALUES = some.text(LATIN, max_size=60)
HEADER_NAMES = some.text(ascii_letters + digits + "!#$%&'*+-.^_`|~", min_size=1, max_size=20)
BATCHES = some.lists(
    some.fixed_dictionaries({}, optional={"Body": JSON, "BrokerProperties": JSON | PROPERTIES, "UserProperties": JSON}),
    max_size=4,
)
BOUNDED = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")


async def say(port: int, request: bytes, *, cut_short: bool = False) -> list[int]:
    """Bytes over a socket of their own; the statuses of the answers. `cut_short`: then hang up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        if cut_short:
            await asyncio.sleep(0.1)
            writer.write_eof()
        async with asyncio.timeout(SECONDS):
            return [int(status) for status in STATUS.findall(await reader.read())]
    finally:
        writer.close()


def headers_of(properties: Any, others: dict[str, str], body: bytes) -> bytes:
    told = {"Host": "x", "Content-Length": str(len(body)), "Connection": "close", **others}
    if properties is not None:
        told["BrokerProperties"] = json.dumps(properties)
    return "".join(f"{name}: {value}\r\n" for name, value in told.items()).encode("latin-1") + b"\r\n"


@pytest.fixture
async def http(brokers: list[Broker]) -> AsyncIterator[Caller]:
    async with served(brokers[:1]) as door, answering(door) as caller:
        yield caller


async def check(http: Caller, request: bytes, *, taken: bool = False) -> None:
    """It is answered, and by no defect; what was taken can be received."""
    (status,) = await say(http.port, request)
    assert 200 <= status < 500, request
    if taken and status == 201:
        assert (await http.delete()).status == 200


def _wait(loop: asyncio.AbstractEventLoop, what: Any) -> None:
    asyncio.run_coroutine_threadsafe(what, loop).result(2 * SECONDS)


async def test_any_message_is_taken_and_comes_back_or_is_refused(http: Caller) -> None:
    @BOUNDED
    @given(PROPERTIES | some.none(), some.dictionaries(HEADER_NAMES, VALUES, max_size=4), some.binary(max_size=200))
    @example({"TimeToLive": 1.7e308}, {}, b"")
    @example({"ScheduledEnqueueTimeUtc": "0001-01-01T00:00:00+23:59"}, {}, b"")
    @example({"ScheduledEnqueueTimeUtc": "Mon, 99 Jan 0000 00:00:00 GMT"}, {}, b"")
    @example(None, {"Due": '"Fri, 31 Dec 9999 23:59:59 -2359 GMT"', "Length": "1e400", "n": "9" * 19}, b"")
    def holds(properties: Any, others: dict[str, str], body: bytes) -> None:
        own = {name: value for name, value in others.items() if name.lower() not in NO_FRAMING}
        scheduled = bool(properties) and "ScheduledEnqueueTimeUtc" in properties
        told(b"POST /orders/messages HTTP/1.1\r\n" + headers_of(properties, own, body) + body, taken=not scheduled)

    told = await _checks(http)
    await asyncio.to_thread(holds)
    await _still_serves(http)


NO_FRAMING = {"content-length", "transfer-encoding", "connection", "host", "expect", "upgrade", "content-encoding"}


async def _checks(http: Caller) -> Any:
    loop = asyncio.get_running_loop()
    return lambda *rest, **more: _wait(loop, check(http, *rest, **more))


async def _still_serves(http: Caller) -> None:
    assert (await http.send("still there", MessageId="the last")).status == 201
    while (got := await http.delete()).properties["MessageId"] != "the last":
        pass
    assert got.body == b"still there"


async def test_any_batch_is_taken_or_refused(http: Caller) -> None:
    @BOUNDED
    @given((BATCHES | JSON).map(lambda one: json.dumps(one).encode()) | some.binary(max_size=100))
    def holds(body: bytes) -> None:
        told(b"POST /orders/messages HTTP/1.1\r\n" + headers_of(None, {"Content-Type": BATCH}, body) + body)

    told = await _checks(http)
    await asyncio.to_thread(holds)
    await _still_serves(http)


async def test_any_path_and_query_is_answered(http: Caller) -> None:
    paths = some.lists(
        some.sampled_from(["orders", "messages", "head", "$DeadLetterQueue", "subscriptions", "%00", "..", "", "%2f"])
        | some.text(ascii_letters + "%$.;=&?#'", max_size=8),
        max_size=6,
    ).map("/".join)
    queries = some.dictionaries(
        some.sampled_from(["api-version", "other"]) | some.text(ascii_letters, max_size=5),
        some.text(digits + "-.%abc", max_size=10),
        max_size=3,
    ).map(lambda one: "&".join(f"{name}={value}" for name, value in one.items()))

    @BOUNDED
    @given(some.sampled_from(["POST", "DELETE", "PUT", "GET", "HEAD", "PATCH", "OPTIONS", "MOVE"]), paths, queries)
    def holds(method: str, path: str, query: str) -> None:
        request = f"{method} /{path}?timeout=0&{query} HTTP/1.1\r\n".encode()
        told(request + headers_of(None, {}, b""))

    told = await _checks(http)
    await asyncio.to_thread(holds)
    await _still_serves(http)


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /orders/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf",
        b"POST /orders/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /orders/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"POST /orders/messages HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
        b"POST /orders/messages HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n",
        b"POST /orders/messages HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /orders/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /orders/messages HTTP/1.1\r\nHost: x\r\nBrokerProperties: " + b"x" * 70_000 + b"\r\n\r\n",
        b"POST /orders/messages HTTP/1.0\r\n\r\n",
        b"POST /" + b"a" * 20_000 + b"/messages HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /orders/messages/head?timeout=0 HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
        b"DELETE /orders/messages/head?timeout=0 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" * 3,
    ],
)
async def test_requests_that_are_cut_short_or_malformed_harm_nobody(
    http: Caller, request_: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    statuses = await say(http.port, request_, cut_short=True)
    assert all(200 <= status < 500 for status in statuses), statuses
    assert not caplog.records
    await _still_serves(http)
