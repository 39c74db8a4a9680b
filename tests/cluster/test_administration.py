"""Azure's administration client for Python, over TLS, to the gateways of the chart: custom resources come and go."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.management import ServiceBusAdministrationClient

from harness.cluster.cluster import Cluster
from harness.own_certificate import write_certificate
from harness.patience import eventually
from harness.release import Release
from partitionedqueue.model.entity_name import ANNOTATION, object_name

SECRET = "administration-tls"
GONE_S_MAX = 120


@pytest.fixture(scope="module")
def release(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """With a certificate of this test's; the next one installs it as it wants it."""
    installed = Release(cluster)
    if not installed.is_installed():
        installed.install()  # which makes the namespace, too
    folder = write_certificate(tmp_path_factory.mktemp("tls")).parent
    files = (f"--cert={folder}/tls.crt", f"--key={folder}/tls.key")
    made = cluster.kubectl("create", "secret", "tls", SECRET, *files, "--dry-run=client", "-o", "json")
    cluster.kubectl("apply", "-n", installed.namespace, "-f", "-", input=made)
    installed.install("--set", f"gateway.tls.secretName={SECRET}")
    yield installed
    installed.install()
    cluster.kubectl("delete", "secret", SECRET, "-n", installed.namespace)


def secret(release: Release, name: str, key: str) -> str:
    found = release.cluster.kubectl("get", "secret", name, "-n", release.namespace, "-o", "json")
    return base64.b64decode(json.loads(found)["data"][key]).decode()


@pytest.fixture(scope="module")
def connection(release: Release) -> str:
    key = yaml.safe_load(secret(release, f"{release.name}-gateway-policies", "root.yaml"))["primaryKey"]
    return f"Endpoint=sb://127.0.0.1:{{port}};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey={key}"


@pytest.fixture(scope="module")
def client(
    release: Release, connection: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServiceBusAdministrationClient]:
    certificate = tmp_path_factory.mktemp("trust") / "tls.crt"
    certificate.write_text(secret(release, SECRET, "tls.crt"))
    with (
        release.cluster.forwarded(f"service/{release.name}-gateway", 443, release.namespace) as port,
        ServiceBusAdministrationClient.from_connection_string(
            connection.format(port=port), connection_verify=str(certificate)
        ) as one,
    ):
        yield one


def found(cluster: Cluster, namespace: str, kind: str, name: str) -> Any:
    words = cluster.kubectl("get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")
    return json.loads(words) if words else None


def how_many(cluster: Cluster, namespace: str, kind: str) -> int:
    return len(json.loads(cluster.kubectl("get", kind, "-n", namespace, "-o", "json"))["items"])


def send(release: Release, connection: str, queue: str, count: int) -> None:
    with release.cluster.forwarded(f"service/{release.name}-gateway", 5672, release.namespace) as port:
        words = f"{connection.format(port=port)};UseDevelopmentEmulator=true"
        with ServiceBusClient.from_connection_string(words) as sending, sending.get_queue_sender(queue) as sender:
            for number in range(count):
                sender.send_messages(ServiceBusMessage(f"{number}"))


def test_a_queue_that_is_made_is_a_custom_resource_and_goes_with_its_messages(
    release: Release, client: ServiceBusAdministrationClient, connection: str, namespace: str
) -> None:
    cluster, queue, inside = release.cluster, f"{namespace}/My_Orders", object_name("My_Orders")
    made = client.create_queue(queue, enable_partitioning=True, max_size_in_megabytes=1024, lock_duration="PT30S")
    assert made.max_size_in_megabytes == 16 * 1024
    written = found(cluster, namespace, "pq", inside)
    assert written["metadata"]["annotations"][ANNOTATION] == "My_Orders"
    assert (written["spec"]["sizeGB"], written["spec"]["lockDuration"]) == (1, "PT30S")
    send(release, connection, queue, 3)  # at once, as on Azure
    eventually(lambda: client.get_queue_runtime_properties(queue).active_message_count == 3, "3 messages", 60)
    assert client.get_queue(queue).availability_status == "Available"
    with pytest.raises(ResourceExistsError):
        client.create_queue(queue)

    properties = client.get_queue(queue)
    properties.lock_duration = "PT45S"
    client.update_queue(properties)
    assert found(cluster, namespace, "pq", inside)["spec"]["lockDuration"] == "PT45S"
    assert queue in [one.name for one in client.list_queues()]

    client.delete_queue(queue)
    assert found(cluster, namespace, "pq", inside) is None
    with pytest.raises(ResourceNotFoundError):
        client.get_queue(queue)
    eventually(lambda: how_many(cluster, namespace, "pvc") == 0, "its volumes stay", GONE_S_MAX)


def test_what_the_operator_does_not_take_is_refused_in_its_words_and_leaves_nothing(
    release: Release, client: ServiceBusAdministrationClient, namespace: str
) -> None:
    release.cluster.kubectl("create", "service", "clusterip", "taken-broker", "--tcp=80", "-n", namespace)
    with pytest.raises(HttpResponseError, match="taken-broker is not this operator's") as refused:
        client.create_queue(f"{namespace}/taken")
    assert refused.value.status_code == 400
    assert found(release.cluster, namespace, "pq", "taken") is None


def test_a_namespace_that_is_not_there_is_named(client: ServiceBusAdministrationClient) -> None:
    with pytest.raises(HttpResponseError, match="there is no Kubernetes namespace nowhere"):
        client.create_queue("nowhere/orders")


def test_a_queue_whose_volumes_are_to_be_kept_keeps_them(
    release: Release, client: ServiceBusAdministrationClient, namespace: str
) -> None:
    queue = f"{namespace}/kept"
    client.create_queue(queue)
    patch = json.dumps({"spec": {"deletionPolicy": "Retain"}})
    release.cluster.kubectl("patch", "pq", "kept", "-n", namespace, "--type=merge", "-p", patch)

    def says_so() -> bool:
        return bool(found(release.cluster, namespace, "pq", "kept")["status"].get("deletionPolicy") == "Retain")

    eventually(says_so, "the operator has not heard of Retain", 60)
    client.delete_queue(queue)
    assert found(release.cluster, namespace, "pq", "kept") is None
    eventually(lambda: how_many(release.cluster, namespace, "statefulset") == 0, "its brokers stay", GONE_S_MAX)
    assert how_many(release.cluster, namespace, "pvc") == 1
