from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.atom_documents import entry
from partitionedqueue.model.errors import InvalidManifest
from partitionedqueue.model.queue_spec import QueueSpec
from partitionedqueue_gateway.entities.changes import ChangeRefused
from partitionedqueue_gateway.entities.queue import QueueName
from partitionedqueue_gateway.rest.administration import atom, queue_properties
from partitionedqueue_gateway.rest.refusals import InvalidRequest

NAME = QueueName("default", "orders")
REFUSALS = (InvalidRequest, ChangeRefused, InvalidManifest)
NAMES = st.sampled_from(
    ("LockDuration", "Status", "ForwardTo", "UserMetadata", "EnablePartitioning", "MaxSizeInMegabytes", "New")
)


def read(**values: object) -> atom.Description:
    return atom.read(entry(values=values).encode())


def made(**values: object) -> dict[str, Any]:
    spec: dict[str, Any] = queue_properties.manifest(NAME, "orders", read(**values))["spec"]
    return spec


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_whatever_comes_is_read_or_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        atom.read(body)


@given(st.dictionaries(NAMES, st.from_regex(r"\A[A-Za-z0-9.:/ -]{0,20}\Z")))
def test_whatever_is_said_of_a_queue_makes_one_or_is_refused(values: dict[str, str]) -> None:
    try:
        spec = made(**values)
    except REFUSALS:
        return
    manifest = {"apiVersion": "messaging.partitionedqueue.io/v1alpha1", "kind": "PartitionedQueue"}
    QueueSpec.from_manifest({**manifest, "metadata": {"name": "orders"}, "spec": spec}, source="orders")


@given(st.text(max_size=50))
def test_any_text_can_be_written_and_read(words: str) -> None:
    document = atom.entry(atom.Entry("a", words, "QueueDescription", "", "", [("UserMetadata", words)]), "host")
    assert set(atom.read(document.encode(errors="surrogatepass")).values) == {"UserMetadata"}


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        ("PT30S", "PT30S"),
        ("PT0.5M", None),
        ("P10675199DT2H48M5.4775807S", "for ever"),
        ("PT256204778H48M5.4775807S", "for ever"),  # the same as Java writes it
        ("P10675199DT2H48M5.477581S", "for ever"),  # and Python
        ("PT336H", "P14D"),
        ("P", None),
        ("PT", None),
        ("-PT1M", None),
    ],
)
def test_durations_are_read_as_each_sdk_writes_them(given_: str, kept: str | None) -> None:
    if kept is None:
        with pytest.raises(InvalidRequest):
            made(DefaultMessageTimeToLive=given_)
    elif kept == "for ever":
        assert "defaultMessageTimeToLive" not in made(DefaultMessageTimeToLive=given_)
    else:
        assert made(DefaultMessageTimeToLive=given_)["defaultMessageTimeToLive"] == kept


@pytest.mark.parametrize(
    ("megabytes", "size_gb"), [(1024, 1), (5120, 5), (16384, 1), (81920, 5), (6144, None), (10240, None), (0, None)]
)
def test_the_size_of_a_partitioned_queue_is_that_of_one_of_sixteen_partitions(
    megabytes: int, size_gb: int | None
) -> None:
    if size_gb is None:
        with pytest.raises(ChangeRefused):
            made(MaxSizeInMegabytes=megabytes, EnablePartitioning="true")
    else:
        assert made(MaxSizeInMegabytes=megabytes, EnablePartitioning="true")["sizeGB"] == size_gb


def test_a_name_that_kubernetes_does_not_allow_is_kept_in_an_annotation() -> None:
    manifest = queue_properties.manifest(QueueName("default", "my-queue-4uleqrrw4y"), "My_Queue", read())
    annotations = {"messaging.partitionedqueue.io/entity-name": "My_Queue"}
    assert manifest["metadata"] == {
        "name": "my-queue-4uleqrrw4y",
        "namespace": "default",
        "annotations": annotations,
    }


def test_an_update_says_everything_of_what_azure_knows_and_nothing_of_the_rest() -> None:
    queue = QueueSpec(name="orders", user_metadata="words", lock_duration_ms=30_000, max_delivery_count=3)
    wanted = queue_properties.changes(queue, read(LockDuration="PT30S"))
    assert wanted.pop("lockDuration") == "PT30S"  # though it is so already, as far as this gateway knows
    assert set(wanted.values()) == {None}
    assert {"userMetadata", "maxDeliveryCount", "status"} < set(wanted)
    assert not {"sizeGB", "durability", "storage", "broker", "deletionPolicy", "enablePartitioning"} & set(wanted)
