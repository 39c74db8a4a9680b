"""The administration API as curl sees it: what it answers, and what it makes of bodies that nobody should send."""

import contextlib
import gzip
import time
from pathlib import Path

import pytest
import yaml

from harness.atom_documents import ATOM, SERVICE_BUS, Answer, ask, entry
from harness.gateway_process import Gateway, manifest, running, write
from harness.redis_servers import Broker
from harness.sas_tokens import KEY, sas_token
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model.message import Message
from partitionedqueue.model.stored_message import encode

BIG = 10 << 20


def put(gateway: Gateway, path: str, body: "str | bytes", **more: str) -> Answer:
    return ask(gateway.port, "PUT", path, body, **more)


def test_a_queue_is_shown_with_what_all_of_its_partitions_hold(gateway: Gateway, brokers: list[Broker]) -> None:
    for partition in (3, 11):
        with BlockingBroker(brokers[partition].address) as broker:
            broker.call(calls.send(QueueKeys("letters"), [encode(Message(body=b"x"))] * 2))

    def shown() -> dict[str, str]:
        return ask(gateway.port, "GET", "/Letters?api-version=2021-05&enrich=false").values

    gateway.until(lambda: shown()["MessageCount"] == "4")
    found = shown()
    assert found["ActiveMessageCount"] == "4"
    assert found["MaxSizeInMegabytes"] == str(16 * 1024)
    assert found["EntityAvailabilityStatus"] == "Available"
    assert found["DefaultMessageTimeToLive"] == "P10675199DT2H48M5.4775807S"
    assert int(found["SizeInBytes"]) > 0
    brokers[5].kill()
    gateway.until(lambda: shown()["EntityAvailabilityStatus"] == "Limited")


def test_what_is_not_there_is_an_empty_feed_and_cannot_be_changed_or_deleted(gateway: Gateway) -> None:
    for path in ("/nowhere", "/team-a/nowhere", "/letters/Subscriptions/s", "/letters/Subscriptions/s/Rules/r", "/a+b"):
        missing = ask(gateway.port, "GET", path)
        assert (missing.status, missing.titles) == (200, [])
        assert missing.root.findtext(f"{ATOM}title") == "Publicly Listed Services"
    for answer in (put(gateway, "/nowhere", entry(), If_Match="*"), ask(gateway.port, "DELETE", "/nowhere")):
        assert answer.status == 404
        assert "<Code>404</Code><Detail>SubCode=40400. " in answer.body


def test_lists_come_in_pages_and_say_where_the_next_one_is(
    gateway: Gateway, brokers: list[Broker], queues: Path
) -> None:
    names = [f"page-{number:02}" for number in range(5)]
    more = [manifest(name, brokers) for name in names]
    write(queues / "more.yaml", *more, manifest("elsewhere", brokers, namespace="team-b"))
    everything = ["letters", *names, "team-b/elsewhere"]

    def listed(query: str = "", kind: str = "queues") -> Answer:
        return ask(gateway.port, "GET", f"/$Resources/{kind}{query}")

    gateway.until(lambda: listed().titles == everything)
    page = listed("?$skip=2&$top=2&api-version=2021-05", "Queues")
    assert page.titles == everything[2:4]
    links = [(one.get("rel"), one.get("href")) for one in page.root.findall(f"{ATOM}link")]
    here = f"https://127.0.0.1:{gateway.port}/$Resources/Queues?$skip={{}}&$top=2&api-version=2021-05"
    assert links == [("self", here.format(2)), ("next", here.format(4))]
    last = listed("?$skip=6")
    assert [one.get("rel") for one in last.root.findall(f"{ATOM}link")] == ["self"]
    assert listed("?$skip=100").titles == []
    assert len(listed("?$top=100000").titles) == len(everything)
    assert listed(kind="topics").titles == []
    for query in ("?$skip=-1", "?$top=x", "?$skip=99999999999", "?$top=%D9%A3"):
        assert listed(query).status == 400
    assert listed(kind="rules").status == 501


BOMB = "".join(
    ['<!DOCTYPE x [<!ENTITY a0 "aaaaaaaaaa">', *(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)), "]>"]
)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"this is no XML",
        b"<entry",
        entry().replace("http://www.w3.org/2005/Atom", "http://www.w3.org/2006/Atom").encode(),
        entry().replace("2010/10/servicebus/connect", "2011/10/servicebus/connect").encode(),
        entry().replace("<QueueDescription ", "<QueueDescription xmlns:x='y' x:").encode(),
        entry(inside='<LockDuration xmlns="urn:other">PT1M</LockDuration>').encode(),
        f'<entry xmlns="{ATOM[1:-1]}"/>'.encode(),
        f'<feed xmlns="{ATOM[1:-1]}"/>'.encode(),
        entry(inside="<Status>Active</Status><Status>Disabled</Status>").encode(),
        (BOMB + entry(values={"UserMetadata": "&a9;"})).encode(),
        ('<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>' + entry(values={"UserMetadata": "&f;"})).encode(),
        ('<!DOCTYPE x SYSTEM "http://127.0.0.1:1/x.dtd">' + entry()).encode(),
        ("<a>" * 20_000).encode(),
        entry(values={"UserMetadata": "\x00"}).encode(),
        b'<?xml version="1.0" encoding="no-such-encoding"?>' + entry().encode(),
        entry().encode("utf-16")[:-3],
        b"\xff" * 1000,
    ],
    ids=[
        "nothing", "text", "cut-off", "another-atom", "another-service-bus", "prefix", "foreign-property", "no-content",
        "feed", "twice", "bomb", "external-entity", "external-dtd", "deep", "nul", "encoding", "utf-16-cut", "bytes",
    ],
)  # fmt: skip
def test_a_body_that_makes_no_sense_is_refused_at_once(gateway: Gateway, body: bytes) -> None:
    began = time.monotonic()
    answer = put(gateway, "/new", body)
    assert answer.status == 400, answer.body
    assert "SubCode=40000. " in answer.body
    assert "root:" not in answer.body
    assert time.monotonic() - began < 10


def test_ten_megabytes_are_not_read(gateway: Gateway) -> None:
    with contextlib.suppress(OSError):  # it was answered and closed while the client still wrote
        assert put(gateway, "/new", entry(values={"UserMetadata": "a" * BIG})).status == 413
    assert put(gateway, "/new", entry(values={"UserMetadata": "a" * 70_000})).status == 413
    packed = gzip.compress(entry(values={"UserMetadata": "a" * BIG}).encode())
    assert put(gateway, "/new", packed, Content_Encoding="gzip").status == 400
    assert ask(gateway.port, "GET", "/letters").status == 200


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"LockDuration": "PT10M"}, "LockDuration is 'PT10M'"),
        ({"LockDuration": "a minute"}, "LockDuration is 'a minute'"),
        ({"LockDuration": "P10675199DT2H48M5.4775807S", "MaxDeliveryCount": 0}, "MaxDeliveryCount is 0"),
        ({"MaxDeliveryCount": 2001}, "MaxDeliveryCount is 2001"),
        ({"MaxDeliveryCount": "٣"}, "write a whole number"),
        ({"RequiresSession": "maybe"}, "RequiresSession is 'maybe'"),
        ({"Status": "Deleting"}, "Status is 'Deleting'"),
        ({"UserMetadata": "a" * 1025}, "UserMetadata must be text of at most 1,024 characters"),
        ({"MaxSizeInMegabytes": 1000}, "The allowed values are: 1024;2048;3072;4096;5120;10240;20480;40960;81920."),
        ({"MaxSizeInMegabytes": 10240, "EnablePartitioning": "true"}, "are: 1024;2048;3072;4096;5120."),
        ({"ForwardTo": "sb://host/letters"}, "ForwardTo is not served yet"),
        ({"ForwardDeadLetteredMessagesTo": "letters"}, "ForwardDeadLetteredMessagesTo is not served yet"),
        ({"EnableExpress": "true"}, "EnableExpress is true; it can only be false"),
        ({"IsAnonymousAccessible": "True"}, "IsAnonymousAccessible is True"),
        ({"MaxMessageSizeInKilobytes": 102400}, "MaxMessageSizeInKilobytes is 102400; it is 1024"),
        ({"AuthorizationRules": "<AuthorizationRule/>"}, "policies are kept in Secrets"),
        ({"AutoDeleteOnIdle": "PT1M"}, "AutoDeleteOnIdle is 'PT1M'"),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_a_property_that_cannot_be_is_named(gateway: Gateway, values: dict[str, object], words: str) -> None:
    answer = put(gateway, "/new", entry(values=values))
    assert (answer.status, words in answer.body) == (400, True), answer.body


def test_what_may_not_change_of_a_queue_does_not(gateway: Gateway) -> None:
    fixed: list[dict[str, object]] = [
        {"EnablePartitioning": "false"},
        {"RequiresSession": "true"},
        {"RequiresDuplicateDetection": "true"},
        {"MaxSizeInMegabytes": 2048},
        {"MaxSizeInMegabytes": 32768},
    ]
    for values in fixed:
        answer = put(gateway, "/letters", entry(values=values), If_Match="*")
        assert (answer.status, "property of an existing" in answer.body) == (400, True), answer.body
    for size in (1024, 16384):  # what a queue was made with, and what it says of itself
        own: dict[str, object] = {"MaxSizeInMegabytes": size, "EnablePartitioning": "true"}
        # It would be written, if this gateway could.
        assert put(gateway, "/letters", entry(values=own), If_Match="*").status == 501


def test_names_that_are_taken_or_none_are_refused(gateway: Gateway) -> None:
    taken = put(gateway, "/LETTERS", entry())
    assert (taken.status, "SubCode=40900. Conflict." in taken.body) == (409, True)
    for path in (
        "/health",
        "/Metrics",
        "/-a",
        "/a-",
        "/a%20b",
        "/a//-b",
        "/gr%C3%B6sse",
        f"/{'a' * 261}",
        "/letters/$DeadLetterQueue",
        "/letters/$management",
    ):
        assert put(gateway, path, entry()).status == 400, path
    for path in ("/letters/$management", "/letters/$cbs", "/letters/$DeadLetterQueue"):
        assert put(gateway, path, entry()).status == 400
        assert ask(gateway.port, "DELETE", path).status == 404
        assert ask(gateway.port, "GET", path).titles == []
    assert put(gateway, "/t/Subscriptions/s", entry()).status == 400
    for kind in ("TopicDescription", "SubscriptionDescription", "RuleDescription"):
        later = put(gateway, "/t", entry(kind))
        assert (later.status, f"A {kind} is not served yet" in later.body) == (501, True)


def test_queues_that_are_written_by_hand_are_not_written_here(gateway: Gateway) -> None:
    changed = put(gateway, "/letters", entry(values={"MaxDeliveryCount": 3}), If_Match="*")
    for answer in (put(gateway, "/new", entry()), changed, ask(gateway.port, "DELETE", "/letters")):
        assert (answer.status, "SubCode=50100. " in answer.body) == (501, True)
        assert "written down in a folder, by hand" in answer.body


def test_the_namespace_and_its_health_are_told(gateway: Gateway) -> None:
    told = ask(gateway.port, "GET", "/$namespaceinfo")
    assert told.root.findtext(f".//{SERVICE_BUS}Name") == "default"
    assert told.root.findtext(f".//{SERVICE_BUS}MessagingSKU") == "Standard"
    health = ask(gateway.port, "GET", "/health")
    assert (health.status, health.body) == (200, '{"status": "healthy", "message": "Service is healthy."}')
    assert ask(gateway.port, "POST", "/letters").status == 405


POLICIES: dict[str, dict[str, object]] = {
    "root": {"rights": ["Manage", "Send", "Listen"]},
    "worker": {"rights": ["Send", "Listen"]},
    "owner": {"rights": ["Manage", "Send", "Listen"], "entity": "letters"},
    "team": {"rights": ["Manage", "Send", "Listen"], "entity": "team-b/*"},
}


def test_only_who_may_manage_may_administer(tmp_path: Path, brokers: list[Broker]) -> None:
    queues = [manifest("letters", brokers), manifest("parcels", brokers), manifest("own", brokers, namespace="team-b")]
    write(tmp_path / "queues" / "all.yaml", *queues)
    for name, policy in POLICIES.items():
        file = tmp_path / "policies" / f"{name}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(yaml.safe_dump({"name": name, "primaryKey": KEY, **policy}))
    folders = {"PQ_GATEWAY_FOLDER": str(tmp_path / "queues"), "PQ_GATEWAY_POLICIES": str(tmp_path / "policies")}
    with running(tmp_path, PQ_GATEWAY_ANONYMOUS="false", **folders) as gateway:
        gateway.wait_ready()

        def answered(method: str, path: str, who: str | None, *, key: str = KEY, lasts_s: float = 60) -> Answer:
            resource = f"https://127.0.0.1:{gateway.port}"
            token = who and sas_token(resource, expires_s=time.time() + lasts_s, name=who, key=key)
            body = entry(values={"MaxDeliveryCount": 3}) if method == "PUT" else None
            answer = ask(gateway.port, method, path, body, token=token, If_Match="*")
            assert answer.status != 401 or "SubCode=401" in answer.body
            return answer

        def status(method: str, path: str, who: str | None, *, key: str = KEY, lasts_s: float = 60) -> int:
            return answered(method, path, who, key=key, lasts_s=lasts_s).status

        everything = [("GET", "/letters"), ("PUT", "/letters"), ("DELETE", "/letters"), ("GET", "/$Resources/queues")]
        for method, path in [*everything, ("GET", "/$namespaceinfo"), ("GET", "/nowhere")]:
            allowed = 501 if method in {"PUT", "DELETE"} else 200
            assert status(method, path, "root") == allowed
            for wrong in (
                status(method, path, None),
                status(method, path, "worker"),
                status(method, path, "nobody"),
                status(method, path, "root", key="d3Jvbmcgd3Jvbmcgd3Jvbmc="),
                status(method, path, "root", lasts_s=-60),
                status(method, path, "team"),
            ):
                assert wrong == 401
        assert status("GET", "/letters", "owner") == 200
        assert status("GET", "/parcels", "owner") == 401
        assert status("GET", "/$Resources/queues", "owner") == 401
        for other in ("/letters%252F$1x://h/parcels", "/letters/$1x:%2F%2Fh/parcels", "/x://letters/parcels"):
            for method in ("GET", "PUT", "DELETE"):
                found = answered(method, other, "owner")
                assert found.status in {400, 401, 404} or found.titles == []
        assert status("GET", "/team-b/own", "team") == 200
        assert status("GET", "/health", None) == 200
