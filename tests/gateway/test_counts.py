"""Counts, added up over real brokers that are killed, hang, come back, and are not what they should be."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.gateway_process import Gateway, manifest, write
from harness.redis_servers import Broker, running_broker
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Settlement
from partitionedqueue.model import stored_message
from partitionedqueue.model.message import Message
from partitionedqueue_gateway import limits

KEYS = QueueKeys("letters")
BODY = stored_message.encode(Message(body=b"a letter"))


def send(broker: Broker, count: int) -> None:
    with BlockingBroker(broker.address) as client:
        client.call(calls.send(KEYS, [BODY] * count))


def seen(gateway: Gateway) -> dict[str, object]:
    return dict(gateway.json("/api/v1/queues")["queues"][0])


def test_counts_of_all_partitions_are_added_up_by_state(gateway: Gateway, brokers: list[Broker]) -> None:
    for number, broker in enumerate(brokers):
        send(broker, number + 1)
    with BlockingBroker(brokers[3].address) as client:
        received = client.call(calls.receive(KEYS, most=3))
        first, second, third = (Settlement(received.runs[0].lock, n, n) for n in (1, 2, 3))
        client.call(calls.dead_letter(KEYS, [first], reason="illegible"))
        client.call(calls.defer(KEYS, [second]))
        assert third  # stays locked: it is active
    time.sleep(limits.REPORT_FRESH_S)
    found = seen(gateway)
    assert found["availability"] == "Available"
    assert found["partitions"] == {"total": 16, "ready": 16}
    assert found["messages"] == sum(range(1, 17))
    none = dict.fromkeys(("scheduled", "transfer", "transferDeadLetter", "sessions"), 0)
    assert found["counts"] == {"active": 136 - 2, "deadLetter": 1, "deferred": 1, **none}
    assert found["countsComplete"] is True
    assert found["maxSizeInMegabytes"] == 16 * 1024


def test_each_partition_is_shown_by_itself(gateway: Gateway, brokers: list[Broker]) -> None:
    send(brokers[5], 7)
    time.sleep(limits.REPORT_FRESH_S)
    each = gateway.queue("letters")["eachPartition"]
    assert [one["messages"] for one in each] == [7 if number == 5 else 0 for number in range(16)]
    assert each[5]["pod"] == "letters-broker-5"
    assert each[5]["lastSequenceNumber"] == 7
    assert each[5]["libraryVersion"]
    assert each[5]["address"] == str(brokers[5].address)


def test_a_killed_partition_makes_the_queue_limited_by_name_until_it_is_back(
    gateway: Gateway, brokers: list[Broker]
) -> None:
    for broker in brokers:
        send(broker, 1)
    gateway.until(lambda: seen(gateway)["messages"] == 16)
    brokers[9].kill()
    took = gateway.until(lambda: seen(gateway)["availability"] == "Limited")
    assert took < 5.0
    found = gateway.queue("letters")
    (sick,) = found["unavailablePartitions"]
    assert (sick["partition"], sick["pod"], sick["reason"]) == (9, "letters-broker-9", "Unreachable")
    assert str(brokers[9].address) in sick["message"]
    assert found["messages"] == 15
    assert found["countsComplete"] is False
    brokers[9].restart()
    gateway.until(lambda: seen(gateway)["availability"] == "Available")


def test_a_hanging_partition_is_named_without_keeping_the_others_waiting(
    gateway: Gateway, brokers: list[Broker]
) -> None:
    gateway.queue("letters")
    brokers[2].pause()
    try:
        time.sleep(limits.REPORT_FRESH_S)
        began = time.monotonic()
        found = gateway.queue("letters")
        assert time.monotonic() - began < limits.PARTITION_ANSWER_S_MAX + 2.0
        assert [one["partition"] for one in found["unavailablePartitions"]] == [2]
        # It is left alone for a while: whoever asks meanwhile is answered at once.
        time.sleep(limits.REPORT_FRESH_S)
        began = time.monotonic()
        assert gateway.queue("letters")["availability"] == "Limited"
        assert time.monotonic() - began < limits.PARTITION_ANSWER_S_MAX / 2
    finally:
        brokers[2].resume()
    gateway.until(lambda: gateway.queue("letters")["availability"] == "Available")


def test_all_partitions_gone_is_unavailable_and_lists_no_more_than_sixteen(
    gateway: Gateway, brokers: list[Broker]
) -> None:
    for broker in brokers:
        broker.kill()
    gateway.until(lambda: seen(gateway)["availability"] == "Unavailable")
    found = gateway.queue("letters")
    assert found["partitions"] == {"total": 16, "ready": 0}
    assert len(found["unavailablePartitions"]) == 16
    assert found["messages"] == 0


def test_a_broker_that_holds_another_partition_does_not_serve(
    gateway: Gateway, queues: Path, brokers: list[Broker]
) -> None:
    swapped = [brokers[1], brokers[0], *brokers[2:]]
    write(queues / "letters.yaml", manifest("letters", swapped))
    gateway.until(lambda: seen(gateway)["availability"] == "Limited")
    sick = gateway.queue("letters")["unavailablePartitions"]
    assert [(one["partition"], one["reason"]) for one in sick] == [(0, "Misplaced"), (1, "Misplaced")]


def test_a_broker_that_was_told_nothing_yet_does_not_serve(tmp_path: Path, gateway: Gateway, queues: Path) -> None:
    with running_broker(tmp_path / "fresh") as fresh:
        write(queues / "fresh.yaml", manifest("fresh", [fresh], enablePartitioning=False))
        gateway.until(lambda: gateway.get("/api/v1/namespaces/default/queues/fresh")[0] == 200)
        found = gateway.queue("fresh")
        assert found["availability"] == "Unavailable"
        assert found["unavailablePartitions"][0]["reason"] == "NotConfigured"


def test_many_who_ask_at_once_ask_each_broker_once(gateway: Gateway, brokers: list[Broker]) -> None:
    gateway.queue("letters")
    time.sleep(limits.REPORT_FRESH_S)
    before = calls_of(brokers[0])
    began = time.monotonic()
    with ThreadPoolExecutor(16) as many:
        for status, _ in many.map(gateway.get, ["/api/v1/queues", "/metrics"] * 50):
            assert status == 200
    most = 1 + int((time.monotonic() - began) / limits.REPORT_FRESH_S)
    assert calls_of(brokers[0]) - before <= most


def calls_of(broker: Broker) -> int:
    connection = broker.connect()
    try:
        return int(connection.info("commandstats").get("cmdstat_fcall", {"calls": 0})["calls"])
    finally:
        connection.close()


def test_connections_are_closed_when_their_queue_goes(gateway: Gateway, queues: Path, brokers: list[Broker]) -> None:
    gateway.queue("letters")
    assert connections_of(brokers[0]) == 2  # the gateway's, and the one that asks
    (queues / "letters.yaml").unlink()
    gateway.until(lambda: gateway.get("/api/v1/namespaces/default/queues/letters")[0] == 404)
    gateway.until(lambda: connections_of(brokers[0]) == 1)


def connections_of(broker: Broker) -> int:
    connection = broker.connect()
    try:
        return len(connection.client_list())
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/metrics", "/api/v1/queues"])
def test_a_queue_that_cannot_be_heard_out_does_not_hide_the_others(
    path: str, gateway: Gateway, queues: Path, brokers: list[Broker]
) -> None:
    elsewhere = manifest("elsewhere", brokers[:1], enablePartitioning=False)  # which holds letters, not elsewhere
    write(queues / "elsewhere.yaml", elsewhere)
    gateway.until(lambda: "elsewhere" in gateway.get(path)[1])
    _, body = gateway.get(path)
    assert "letters" in body
