"""Every documented answer to every request, as somebody with curl sees them."""

import json
import time
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
import pytest_asyncio

from harness.amqp_door import served
from harness.redis_servers import Broker
from harness.rest_door import BATCH, Caller, answering
from harness.sas_tokens import LISTENER, SENDER, access_by_policies, sas_token
from partitionedqueue.model.queue_spec import QueueStatus

HOUR = time.time() + 3600
ROOT = sas_token("http://127.0.0.1/", expires_s=HOUR)
SEND, HEAD, HELD = "/orders/messages", "/orders/messages/head?timeout=0", "/orders/messages/1/no-token"
TOKEN = f"/orders/messages/1/{'0' * 8}-0000-0000-0000-{'0' * 12}"
NESTED = "[" * 60_000


class Case(NamedTuple):
    """One request, and what is answered to it."""

    request: str
    status: int
    sub_code: int = 0
    words: str = ""
    token: str | None = ROOT
    properties: str | None = None
    body: str = ""
    headers: tuple[tuple[str, str], ...] = ()


def properties(header: str, words: str) -> Case:
    return Case(f"POST {SEND}", 400, 40000, words, properties=header)


def batch(body: str, words: str) -> Case:
    return Case(f"POST {SEND}", 400, 40000, words, body=body, headers=(("Content-Type", BATCH),))


ANYWHERE = [f"POST {SEND}", f"POST {HEAD}", f"DELETE {HEAD}", f"DELETE {TOKEN}", f"PUT {TOKEN}", f"POST {TOKEN}"]
WRONG_KEY = sas_token("http://127.0.0.1/", expires_s=HOUR, key="bm90LXRoZS1yaWdodC1rZXk=")
TOKENS = {
    None: (40102, "MissingToken"),
    "Bearer eyJhbGciOi": (40105, "MalformedToken"),
    "SharedAccessSignature nonsense": (40105, "MalformedToken"),
    WRONG_KEY: (40103, "InvalidSignature"),
    sas_token("http://127.0.0.1/", expires_s=HOUR, name="Nobody"): (40103, "InvalidSignature"),
    sas_token("http://127.0.0.1/others", expires_s=HOUR): (40104, "InvalidAudience"),
    sas_token("http://127.0.0.1/", expires_s=1_000): (40100, "ExpiredToken"),
}
LISTENS = sas_token("http://127.0.0.1/orders", expires_s=HOUR, name=LISTENER)
SENDS = sas_token("http://127.0.0.1/orders", expires_s=HOUR, name=SENDER)
# Another queue, said so that it might be taken for orders, or for something inside it.
OTHERS_IN_DISGUISE = [
    "/x://h/others",
    "/x:%2F%2Fh%2Fothers",
    "/default/others",
    "/DEFAULT%2Fothers",
    "//others",
    "/./others",
    "/%6Fthers",
    "/%256Fthers",
]
CASES = [
    # Documented successes; what comes before a request is in its queue.
    Case(f"POST {SEND}", 201, body="hello"),
    Case(f"POST {SEND}/", 201, token=SENDS),
    Case(f"POST {SEND}?timeout=60&api-version=2013-10", 201),
    Case(f"POST {SEND}?api-version=2021-05", 201),
    Case(f"POST {SEND}?api-version=2024-05-01", 201),
    Case(f"POST {SEND}", 201, properties='{"TimeToLive": 1.3e308}'),
    Case(f"POST {SEND}", 201, properties='{"TimeToLive": 1' + "0" * 4_000 + "}"),
    Case(f"POST {SEND}", 201, properties='{"TimeToLive": 1e-300}'),
    Case(f"POST {HEAD}", 204),
    Case("POST /orders/messages/head/?timeout=0", 204, token=LISTENS),
    Case(f"DELETE {HEAD}", 204),
    Case(f"DELETE {HEAD}&api-version=2015-01", 204),
    # Who asks.
    *(Case(one, 401, code, words, token=token) for one in ANYWHERE for token, (code, words) in TOKENS.items()),
    Case(f"POST {SEND}", 401, 40100, "'Send' claim(s) are required", token=LISTENS),
    *(Case(one, 401, 40100, "'Listen' claim(s) are required", token=SENDS) for one in ANYWHERE[1:]),
    Case("POST /nowhere/messages", 401, 40104, token=SENDS),
    *(Case(f"POST {path}/messages", 401, 40104, token=SENDS) for path in OTHERS_IN_DISGUISE),
    # What they ask for.
    *(Case(one.replace("orders", "nowhere"), 410, 41000, "'nowhere' could not be found") for one in ANYWHERE),
    Case("POST /team/orders/messages", 410, 41000, "'team/orders'"),
    Case("POST /orders/$management/messages", 410, 41000),
    Case("POST /$default", 404, 40400),
    Case("POST /orders%0A/messages", 410, 41000),
    Case("PATCH /orders/messages", 405, 40500),
    Case("POST /orders%252F$1x://h/others/messages", 410, 41000, token=SENDS),
    Case("POST /topic/subscriptions/one/messages/head", 410, 41000),
    *(Case(f"{method} {path}", 404, 40400, "lock") for method in ("DELETE", "PUT", "POST") for path in (TOKEN, HELD)),
    *(
        Case(f"POST {SEND}?api-version={version}", 400, 40000, "api-version")
        for version in ("2013-08", "2012-03", "1.0", "2021-13", "", "2021-05x", "%00", "2021-05%0a")
    ),
    *(
        Case(f"POST {path}{mark}timeout={seconds}", 400, 40000, "timeout")
        for path, mark in ((SEND, "?"), ("/orders/messages/head", "?"))
        for seconds in ("-1", "soon", "", "1e9", "nan", "%D9%A1")
    ),
    # What they say of a message.
    properties("{", "no JSON at character 1"),
    properties("[]", "no JSON object"),
    properties("3", "no JSON object"),
    properties("", "no JSON"),
    properties('{"MessageId": 3}', "MessageId that is no text"),
    properties('{"MessageId": "%s"}' % ("x" * 129), "at most 128"),
    properties('{"MessageId": "\\ud800"}', "surrogate"),
    properties('{"SessionId": "a", "PartitionKey": "b"}', "differ"),
    properties('{"TimeToLive": "soon"}', "TimeToLive that is no number"),
    properties('{"TimeToLive": 0}', "TimeToLive"),
    properties('{"TimeToLive": -1}', "TimeToLive"),
    properties('{"TimeToLive": true}', "TimeToLive"),
    properties('{"TimeToLive": NaN}', "no JSON"),
    properties('{"TimeToLive": 1e999}', "TimeToLive"),
    properties('{"TimeToLiveTimeSpan": "soon"}', "TimeToLiveTimeSpan"),
    properties('{"ScheduledEnqueueTimeUtc": "soon"}', "ScheduledEnqueueTimeUtc"),
    properties('{"ScheduledEnqueueTimeUtc": 3}', "ScheduledEnqueueTimeUtc"),
    properties('{"ViaPartitionKey": "%s"}' % ("x" * 129), "at most 128"),
    properties('{"Label": ' + NESTED[:5_000], "nested too deep"),
    properties('{"TimeToLive": %s}' % ("9" * 5_000), "no JSON"),
    Case(f"POST {SEND}", 400, 40000, "comes twice", headers=(("Own", "1"), ("Own", "2"))),
    batch("", "no JSON"),
    batch("{}", "no JSON array"),
    batch(NESTED, "nested too deep"),
    batch("\udcff", "no JSON"),
    Case(f"POST {SEND}", 403, 40300, "at most 262,144", body="x" * 262_145),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http(standing_brokers: list[Broker]) -> AsyncIterator[Caller]:
    """A queue behind policies, for all cases together: none of them leaves anything locked."""
    access = access_by_policies()
    async with served(standing_brokers, access, orders={}, others={}) as door, answering(door, access) as caller:
        yield caller


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.request[:40]} {case.status} {case.words[:20]}")
async def test_each_request_has_its_answer(http: Caller, case: Case) -> None:
    method, _, path = case.request.partition(" ")
    headers = [*case.headers]
    if case.token is not None:
        headers.append(("Authorization", case.token))
    if case.properties is not None:
        headers.append(("BrokerProperties", case.properties))
    got = await http.ask(method, path, case.body.encode(errors="surrogateescape"), headers)
    assert (got.status, got.sub_code) == (case.status, case.sub_code), got.body
    if got.status >= 400:
        assert got.headers["Content-Type"].startswith("application/xml")
        error = ET.fromstring(got.body)
        assert (error.tag, error.findtext("Code")) == ("Error", str(case.status))
        detail = error.findtext("Detail") or ""
        assert case.words in detail
        assert all(word in detail for word in ("TrackingId:", "SystemTracker:", "Timestamp:"))
    if got.status == 401:
        assert got.headers["WWW-Authenticate"] == "SharedAccessSignature"
    while case.status == 201 and (await http.ask("DELETE", HEAD, headers={"Authorization": ROOT})).status == 200:
        pass


@pytest.mark.parametrize(
    ("status", "refused"),
    [
        (QueueStatus.DISABLED, {"POST", "DELETE", "send"}),
        (QueueStatus.SEND_DISABLED, {"send"}),
        (QueueStatus.RECEIVE_DISABLED, {"POST", "DELETE"}),
    ],
)
async def test_a_disabled_queue_is_forbidden(brokers: list[Broker], status: QueueStatus, refused: set[str]) -> None:
    async with served(brokers, orders={"status": status}) as door, answering(door) as http:
        answers = {"send": await http.send("x")}
        answers |= {method: await http.ask(method, HEAD) for method in ("POST", "DELETE")}
        assert {name for name, got in answers.items() if (got.status, got.sub_code) == (403, 40301)} == refused


async def test_a_queue_that_goes_while_somebody_waits_is_gone(brokers: list[Broker]) -> None:
    async with served(brokers) as door, answering(door) as http:
        door.catalog.remove(next(iter(door.catalog.queues)))
        assert (await http.lock()).status == 410


async def test_no_key_and_no_token_is_ever_shown(brokers: list[Broker]) -> None:
    access = access_by_policies()
    async with served(brokers, access) as door, answering(door, access) as http:
        got = await http.ask("POST", f"{SEND}?api-version={json.dumps(1)}", headers={"Authorization": WRONG_KEY})
        assert got.status == 401
        assert b"sig=" not in got.body
