"""The objects of a queue, as Kubernetes will be asked for them."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from partitionedqueue.broker import access
from partitionedqueue_operator.observed import Key, Queue
from partitionedqueue_operator.reconcile import read_spec
from partitionedqueue_operator.resources.config_map import broker_config_map
from partitionedqueue_operator.resources.disruption_budget import broker_disruption_budget
from partitionedqueue_operator.resources.network_policy import broker_network_policy
from partitionedqueue_operator.resources.pod_template import broker_pod_template
from partitionedqueue_operator.resources.secret import broker_secret, password
from partitionedqueue_operator.resources.service import broker_service
from partitionedqueue_operator.resources.stateful_set import broker_stateful_set
from partitionedqueue_operator.resources.subject import Subject
from partitionedqueue_operator.settings import Settings

BROKER_IMAGE = Path(__file__).parents[3] / "broker-image"
KEY = b"k" * 32


def subject(*, annotations: dict[str, str] | None = None, **spec: Any) -> Subject:
    queue = Queue(
        key=Key("shop", "orders"), uid="u-1", generation=1, created="", deleting=False, annotations=annotations or {},
        spec={"enablePartitioning": True, **spec}, status={},
    )  # fmt: skip
    return Subject(queue, read_spec(queue), Settings(broker_image="broker:1", namespace="system", release="pq"))


def container(of: Subject) -> dict[str, Any]:
    return dict(broker_pod_template(of)["spec"]["containers"][0])


def text(secret: dict[str, Any], name: str) -> str:
    return base64.b64decode(secret["data"][name]).decode()


def test_every_object_says_whose_it_is_and_all_but_the_workload_go_with_the_queue() -> None:
    of = subject()
    for body in (broker_service(of), broker_config_map(of), broker_secret(of, KEY), broker_disruption_budget(of),
                 broker_network_policy(of)):  # fmt: skip
        assert body["metadata"]["name"] == "orders-broker"
        assert body["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "partitionedqueue-operator"
        assert body["metadata"]["labels"]["messaging.partitionedqueue.io/queue"] == "orders"
        assert [owner["uid"] for owner in body["metadata"]["ownerReferences"]] == ["u-1"]
    assert "ownerReferences" not in broker_stateful_set(of, None)["metadata"]


def test_the_selectors_find_the_pods() -> None:
    of = subject(broker={"podLabels": {"team": "a"}})
    labels = broker_pod_template(of)["metadata"]["labels"].items()
    for selector in (
        broker_service(of)["spec"]["selector"],
        broker_disruption_budget(of)["spec"]["selector"]["matchLabels"],
        broker_network_policy(of)["spec"]["podSelector"]["matchLabels"],
        broker_stateful_set(of, None)["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels
    assert ("team", "a") in labels


def test_a_pod_has_no_more_rights_than_the_restricted_standard_gives() -> None:
    spec, inside = broker_pod_template(subject())["spec"], container(subject())
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert inside["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()


def test_what_the_pod_is_told_is_what_the_image_listens_to() -> None:
    start = (BROKER_IMAGE / "start.sh").read_text()
    for name in broker_config_map(subject())["data"]:
        assert f"{name}=" in start
    for probe in ("livenessProbe", "readinessProbe"):
        script = container(subject())[probe]["exec"]["command"][0]
        assert (BROKER_IMAGE / Path(script).name).exists()


@pytest.mark.parametrize(("durability", "torn"), [("Always", "cut"), ("EverySecond", "refuse"), ("None", "refuse")])
def test_a_torn_end_is_cut_off_only_where_it_can_hold_nothing_acknowledged(durability: str, torn: str) -> None:
    data = broker_config_map(subject(durability=durability))["data"]
    assert (data["PQ_DURABILITY"], data["PQ_TORN_END"]) == (durability, torn)


def test_an_annotation_lets_a_torn_end_be_cut_off_once_a_person_has_decided() -> None:
    for said, told in (("cut", "cut"), ("", "refuse"), ("yes", "refuse")):
        of = subject(durability="EverySecond", annotations={"messaging.partitionedqueue.io/torn-end": said})
        assert broker_config_map(of)["data"]["PQ_TORN_END"] == told


@pytest.mark.parametrize(
    ("spec", "seconds"), [({}, 720), ({"enablePartitioning": False, "sizeGB": 80}, 10_200)], ids=["small", "large"]
)
def test_a_larger_partition_is_given_longer_to_be_read_and_start_sh_gives_up_before_the_kubelet(
    spec: dict[str, Any], seconds: int
) -> None:
    of = subject(**spec)
    assert broker_config_map(of)["data"]["PQ_START_SECONDS_MAX"] == str(seconds)
    probe = container(of)["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == seconds + 180


def test_what_a_broker_reads_only_when_it_starts_stands_on_its_pod() -> None:
    """So that a change of it starts the brokers anew."""

    def annotations(**spec: Any) -> dict[str, str]:
        return dict(broker_pod_template(subject(**spec))["metadata"]["annotations"])

    assert annotations() == {
        "messaging.partitionedqueue.io/durability": "Always",
        "messaging.partitionedqueue.io/maxmemory": "1409286144",
    }
    assert annotations(durability="EverySecond") != annotations()
    assert annotations(enablePartitioning=False, sizeGB=5) != annotations(enablePartitioning=False)
    assert annotations(lockDuration="PT2M") == annotations()


@pytest.mark.parametrize(
    ("spec", "annotations", "digest"),
    [
        ({}, {}, "3024531dbfb01806"),
        ({"broker": {"image": "mine:2"}, "durability": "EverySecond"}, {}, "fe85509277a27504"),
        (
            {"enablePartitioning": False, "sizeGB": 5},
            {"messaging.partitionedqueue.io/restartedAt": "2026-01-02"},
            "3f5c56504c61fad0",
        ),
    ],
    ids=["plain", "asked for", "large and restarted"],
)
def test_what_asks_for_new_pods_has_the_same_digest_in_every_version(
    spec: dict[str, Any], annotations: dict[str, str], digest: str
) -> None:
    """Frozen: with another digest an operator's upgrade would start every broker of every queue anew."""
    body = broker_stateful_set(subject(annotations=annotations, **spec), None)
    assert json.loads(body["metadata"]["annotations"]["messaging.partitionedqueue.io/pinned"])["asked"] == digest


def test_a_broker_may_use_its_partition_and_what_a_rewrite_takes() -> None:
    assert container(subject())["resources"] == {
        "requests": {"cpu": "50m", "memory": "64Mi"},
        "limits": {"memory": "1600Mi"},
    }
    given = {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "3Gi"}}
    assert container(subject(broker={"resources": given}))["resources"] == {
        "requests": {"cpu": "1", "memory": "64Mi"},
        "limits": {"cpu": "2", "memory": "3Gi"},
    }


def test_the_owners_wishes_for_the_pods_are_passed_on() -> None:
    wishes = {
        "image": "mine:2",
        "imagePullPolicy": "Always",
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}],
        "priorityClassName": "high",
        "podAnnotations": {"note": "x"},
    }
    template, inside = broker_pod_template(subject(broker=wishes)), container(subject(broker=wishes))
    assert (inside["image"], inside["imagePullPolicy"]) == ("mine:2", "Always")
    assert template["metadata"]["annotations"]["note"] == "x"
    for name in ("imagePullSecrets", "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints",
                 "priorityClassName"):  # fmt: skip
        assert template["spec"][name] == wishes[name]


def test_nothing_is_said_of_what_nobody_wishes() -> None:
    spec = broker_pod_template(subject())["spec"]
    assert not {"imagePullSecrets", "nodeSelector", "tolerations", "affinity", "priorityClassName"} & spec.keys()
    assert {c["whenUnsatisfiable"] for c in spec["topologySpreadConstraints"]} == {"ScheduleAnyway"}


def test_passwords_come_back_the_same_and_are_each_users_own() -> None:
    once, again = broker_secret(subject(), KEY), broker_secret(subject(requiresSession=True), KEY)
    assert once["data"] == again["data"]
    words = {text(once, f"{user}-password") for user in access.USERS}
    assert len(words) == len(access.USERS)
    assert broker_secret(subject(), b"x" * 32)["data"] != once["data"]
    assert password(KEY, Key("other", "orders"), "spark") not in words


def test_passwords_that_brokers_run_with_are_kept_although_the_key_is_another() -> None:
    live = broker_secret(subject(), KEY)
    assert broker_secret(subject(), b"x" * 32, live)["data"] == live["data"]
    gone = {**live, "data": {name: value for name, value in live["data"].items() if name != "spark-password"}}
    again = broker_secret(subject(), b"x" * 32, gone)
    assert text(again, "gateway-password") == text(live, "gateway-password")
    assert text(again, "spark-password") == password(b"x" * 32, Key("shop", "orders"), "spark")


@pytest.mark.parametrize("other", ["b3RoZXI=", "no base64", "/w==", ""])
def test_a_password_that_the_file_of_users_does_not_know_is_put_right(other: str) -> None:
    live = broker_secret(subject(), KEY)
    changed = {**live, "data": {**live["data"], "operator-password": other}}
    assert broker_secret(subject(), KEY, changed)["data"] == live["data"]


def test_the_file_of_users_holds_no_password() -> None:
    secret = broker_secret(subject(), KEY)
    users = text(secret, "users.acl")
    assert [line.split()[1] for line in users.splitlines()] == list(access.USERS)
    assert not [user for user in access.USERS if text(secret, f"{user}-password") in users]


def test_only_the_release_and_labelled_pods_reach_the_brokers() -> None:
    spec = broker_network_policy(subject())["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert "egress" not in spec
    (rule,) = spec["ingress"]
    assert rule["ports"] == [{"port": 6379, "protocol": "TCP"}]
    release, clients = rule["from"]
    assert release["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "system"}
    assert release["podSelector"]["matchLabels"]["app.kubernetes.io/instance"] == "pq"
    assert clients["podSelector"]["matchLabels"] == {"messaging.partitionedqueue.io/broker-client": "true"}


def test_volumes_are_of_the_class_and_size_that_are_asked_for() -> None:
    storage = {"storageClassName": "fast", "size": "20Gi"}
    claim = broker_stateful_set(subject(storage=storage), None)["spec"]["volumeClaimTemplates"][0]
    assert claim["spec"]["storageClassName"] == "fast"
    assert claim["spec"]["resources"]["requests"]["storage"] == "20Gi"
    assert "storageClassName" not in broker_stateful_set(subject(), None)["spec"]["volumeClaimTemplates"][0]["spec"]


@pytest.mark.parametrize(("spec", "replicas"), [({}, 16), ({"sizeGB": 5}, 80), ({"enablePartitioning": False}, 1)])
def test_a_pod_is_a_partition(spec: dict[str, Any], replicas: int) -> None:
    assert broker_stateful_set(subject(**spec), None)["spec"]["replicas"] == replicas
