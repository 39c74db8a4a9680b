"""Azure's SDK for Python through the gateways of the chart: with what NOTES shows, and while they roll over."""

import json
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusAuthenticationError

from harness.cluster.cluster import Cluster
from harness.cluster.own import OwnCluster
from harness.live_queue import PARTITIONED, LiveQueue
from harness.patience import eventually
from harness.release import Release

READY_S_MAX = 240
PAUSE_S = 0.05


@pytest.fixture(scope="module")
def release(cluster: Cluster) -> Release:
    installed = Release(cluster)
    installed.install()
    return installed


@pytest.fixture(scope="module")
def orders(cluster: Cluster, release: Release) -> Iterator[LiveQueue]:
    namespace = f"amqp-{time.time_ns() % 10**9}"
    cluster.kubectl("create", "namespace", namespace)
    queue = LiveQueue(cluster, namespace)
    queue.apply(**PARTITIONED)
    queue.settled(READY_S_MAX)
    assert release.pods("gateway")
    yield queue
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="module")
def connection_string(release: Release) -> str:
    """What the command that NOTES shows prints."""
    notes = release.helm("get", "notes", release.name)
    begin = notes.index('  echo "Endpoint=')
    command = notes[begin : notes.index("')\"", begin) + 3]
    shell = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        env=release.cluster.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert shell.stdout.count("\n") == 1
    return shell.stdout.strip()


def at(connection_string: str, host: str) -> str:
    """The same, reached by another way than the Service's name."""
    endpoint, rest = connection_string.split(";", 1)
    assert endpoint == "Endpoint=sb://pq-gateway.pq-system:5672"
    return f"Endpoint=sb://{host};{rest}"


def test_an_sdk_sends_and_receives_with_what_the_notes_show(
    release: Release, orders: LiveQueue, connection_string: str
) -> None:
    name = f"{orders.namespace}/{orders.name}"
    with (
        release.cluster.forwarded(f"service/{release.name}-gateway", 5672, release.namespace) as port,
        ServiceBusClient.from_connection_string(at(connection_string, f"127.0.0.1:{port}")) as client,
    ):
        with client.get_queue_sender(name) as sender:
            for number in range(40):
                sender.send_messages(ServiceBusMessage(f"{number}"))
        assert sum(orders.totals(partition).messages for partition in range(16)) == 40
        got = list[str]()
        with client.get_queue_receiver(name, max_wait_time=20) as receiver:
            while len(got) < 40 and (batch := receiver.receive_messages(40)):
                for message in batch:
                    receiver.complete_message(message)
                    got.append(str(message))
    assert sorted(got, key=int) == [str(number) for number in range(40)]
    assert sum(orders.totals(partition).messages for partition in range(16)) == 0


def test_a_wrong_key_lets_nobody_in(release: Release, orders: LiveQueue, connection_string: str) -> None:
    wrong = connection_string.replace("SharedAccessKey=", "SharedAccessKey=x")
    with (
        release.cluster.forwarded(f"service/{release.name}-gateway", 5672, release.namespace) as port,
        ServiceBusClient.from_connection_string(at(wrong, f"127.0.0.1:{port}"), retry_total=0) as client,
        pytest.raises(ServiceBusAuthenticationError),
        client.get_queue_sender(f"{orders.namespace}/{orders.name}") as sender,
    ):
        sender.send_messages(ServiceBusMessage("no"))


def test_the_key_stays_through_an_upgrade_and_what_was_added_beside_it(release: Release) -> None:
    def found() -> dict[str, str]:
        secret = ("get", "secret", f"{release.name}-gateway-policies", "-n", release.namespace, "-o", "json")
        data: dict[str, str] = json.loads(release.cluster.kubectl(*secret))["data"]
        return data

    added = json.dumps({"stringData": {"more.yaml": "name: more\nprimaryKey: more-than-twelve\nrights: [Send]\n"}})
    patch = ("patch", "secret", f"{release.name}-gateway-policies", "-n", release.namespace, "--type=merge", "-p")
    release.cluster.kubectl(*patch, added)
    before = found()
    assert set(before) == {"root.yaml", "more.yaml"}
    release.install("--set", "gateway.service.annotations.changed=yes")
    assert found() == before


def test_rolling_gateways_over_fails_no_send(
    release: Release, own_cluster: OwnCluster, orders: LiveQueue, connection_string: str
) -> None:
    service = f"{release.name}-gateway"
    ip = own_cluster.kubectl("get", "service", service, "-n", release.namespace, "-o", "jsonpath={.spec.clusterIP}")
    name, failures, sent, done = f"{orders.namespace}/{orders.name}", list[str](), [0], threading.Event()

    def send() -> None:
        with (
            ServiceBusClient.from_connection_string(at(connection_string, f"{ip}:5672")) as client,
            client.get_queue_sender(name) as sender,
        ):
            while not done.is_set():
                try:
                    sender.send_messages(ServiceBusMessage("x"))
                    sent[0] += 1
                except Exception as error:  # noqa: BLE001 -- whatever an SDK makes of it
                    failures.append(repr(error))
                time.sleep(PAUSE_S)

    before = sum(orders.totals(partition).messages for partition in range(16))
    sending = threading.Thread(target=send)
    sending.start()
    try:
        eventually(lambda: sent[0] > 5 or failures, "nothing was sent", 30)
        own_cluster.kubectl("rollout", "restart", f"deployment/{service}", "-n", release.namespace)
        status = ("rollout", "status", f"deployment/{service}", "-n", release.namespace, f"--timeout={READY_S_MAX}s")
        own_cluster.kubectl(*status, seconds=READY_S_MAX + 20)
        eventually(lambda: len(release.pods("gateway")) == 2, "the old ones are still there", 90)
    finally:
        done.set()
        sending.join()
    assert failures == []
    assert sum(orders.totals(partition).messages for partition in range(16)) - before >= sent[0]
