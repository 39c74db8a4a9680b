"""The manifests for Spark on Kubernetes fit the operator's objects, the image, the jobs and the APIs they are for."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from partitionedqueue.broker import access
from partitionedqueue.model.placement import BROKER_CLIENT_LABEL, secret_name
from partitionedqueue_spark.options import PASSWORD_VARIABLE
from partitionedqueue_spark.sink_options import SENDER_PASSWORD_VARIABLE
from spark.jobs import loaded

ROOT = Path(__file__).parents[2] / "spark-on-k8s"
MANIFESTS = sorted((ROOT / "manifests").glob("*.yaml"))
JOB = "local:///opt/partitionedqueue/jobs/"
SPARK_VERSION = re.findall(r"^pyspark==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
KUBEFLOW = {
    "type", "pythonVersion", "sparkVersion", "mode", "image", "imagePullPolicy", "mainApplicationFile", "arguments",
    "sparkConf", "restartPolicy", "driver", "executor",
}  # fmt: skip
KUBEFLOW_POD = {"cores", "coreRequest", "memory", "memoryOverhead", "serviceAccount", "template", "instances"}
KUBEFLOW_RESTART = {
    "type", "onFailureRetries", "onFailureRetryInterval", "onSubmissionFailureRetries",
    "onSubmissionFailureRetryInterval",
}  # fmt: skip
SCHEDULED = {"schedule", "concurrencyPolicy", "successfulRunHistoryLimit", "failedRunHistoryLimit", "template"}
APACHE = {
    "pyFiles", "driverArgs", "runtimeVersions", "sparkConf", "applicationTolerations", "driverSpec", "executorSpec",
}  # fmt: skip
"""Fields of sparkoperator.k8s.io/v1beta2 and spark.apache.org/v1 that are used here, as both projects document them."""


def objects() -> list[dict[str, Any]]:
    return [one for path in MANIFESTS for one in yaml.safe_load_all(path.read_text())]


def of_kind(kind: str, group: str = "") -> list[dict[str, Any]]:
    return [one for one in objects() if one["kind"] == kind and one["apiVersion"].startswith(group)]


def kubeflow() -> list[dict[str, Any]]:
    """What an application of Kubeflow's is like, scheduled or not."""
    scheduled = [one["spec"]["template"] for one in of_kind("ScheduledSparkApplication")]
    return [one["spec"] for one in of_kind("SparkApplication", "sparkoperator.k8s.io/v1beta2")] + scheduled


def submitted() -> Iterator[tuple[str, list[str]]]:
    """Each job that is run, and its arguments."""
    for spec in kubeflow():
        yield spec["mainApplicationFile"], spec["arguments"]
    for one in of_kind("SparkApplication", "spark.apache.org/"):
        yield one["spec"]["pyFiles"], one["spec"]["driverArgs"]
    for one in of_kind("Job"):
        (container,) = one["spec"]["template"]["spec"]["containers"]
        (place,) = [n for n, word in enumerate(container["args"]) if word.startswith(JOB)]
        yield (
            container["args"][place],
            [word.replace("$(NAMESPACE)", "shop") for word in container["args"][place + 1 :]],
        )


def pods() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each pod, or template of one, and whether it is one of `brokers` or of `submit`, which does not go to them."""
    for spec in kubeflow():
        yield from (("brokers", spec[role]["template"]) for role in ("driver", "executor"))
    for one in of_kind("SparkApplication", "spark.apache.org/"):
        yield from (("brokers", one["spec"][role]["podTemplateSpec"]) for role in ("driverSpec", "executorSpec"))
    yield from (("submit", one["spec"]["template"]) for one in of_kind("Job"))
    yield from (("brokers", one) for one in of_kind("Pod"))
    for one in of_kind("ConfigMap"):
        yield "brokers", yaml.safe_load(one["data"]["pod.yaml"])


def names(kind: str) -> set[str]:
    return {one["metadata"]["name"] for one in of_kind(kind)}


def test_each_way_of_submitting_is_shown() -> None:
    kinds = {(one["apiVersion"], one["kind"]) for one in objects()}
    assert kinds >= {
        ("batch/v1", "Job"),
        ("sparkoperator.k8s.io/v1beta2", "SparkApplication"),
        ("sparkoperator.k8s.io/v1beta2", "ScheduledSparkApplication"),
        ("spark.apache.org/v1", "SparkApplication"),
    }


def test_only_documented_fields_are_set() -> None:
    for spec in kubeflow():
        assert spec.keys() <= KUBEFLOW
        assert spec["driver"].keys() | spec["executor"].keys() <= KUBEFLOW_POD
        assert spec["restartPolicy"].keys() <= KUBEFLOW_RESTART
        assert spec["restartPolicy"]["type"] in {"Always", "Never", "OnFailure"}
        assert (spec["type"], spec["mode"], spec["pythonVersion"]) == ("Python", "cluster", "3")
    for one in of_kind("ScheduledSparkApplication"):
        assert one["spec"].keys() <= SCHEDULED
        assert one["spec"]["concurrencyPolicy"] in {"Allow", "Forbid", "Replace"}
    for one in of_kind("SparkApplication", "spark.apache.org/"):
        assert one["spec"].keys() <= APACHE
        restart = one["spec"]["applicationTolerations"]["restartConfig"]
        assert restart["restartPolicy"] in {"Always", "Never", "OnFailure", "OnInfrastructureFailure"}


def test_jobs_exist_and_take_the_arguments_that_they_are_given() -> None:
    run = list(submitted())
    assert {file for file, _ in run} == {f"{JOB}{name}.py" for name in ("flights", "archive", "dead_letter_report")}
    for file, arguments in run:
        name = file.removeprefix(JOB).removesuffix(".py")
        given = loaded(name).parser().parse_args(arguments)
        assert (given.queue, given.namespace) == ("flights", "shop")


def test_the_version_of_spark_is_the_images() -> None:
    told = [spec["sparkVersion"] for spec in kubeflow()]
    told += [one["spec"]["runtimeVersions"]["sparkVersion"] for one in of_kind("SparkApplication", "spark.apache.org/")]
    assert set(told) == set(SPARK_VERSION)


def test_whoever_goes_to_brokers_has_the_label_and_the_password_of_a_user_who_may() -> None:
    secret, given = secret_name("flights"), []
    for whither, pod in pods():
        labels = pod["metadata"].get("labels", {}) if "metadata" in pod else {}
        assert (labels.get(BROKER_CLIENT_LABEL) == "true") is (whither == "brokers")
        (container,) = pod["spec"]["containers"]
        for variable in container.get("env", ()):
            if "secretKeyRef" in variable.get("valueFrom", {}):
                given.append((variable["name"], *variable["valueFrom"]["secretKeyRef"].values()))
    assert sorted(given) == [
        *[(PASSWORD_VARIABLE, secret, f"{access.SPARK}-password")] * 3,
        (SENDER_PASSWORD_VARIABLE, secret, f"{access.SPARK_SENDER}-password"),
    ]
    (flights,) = of_kind("Job")
    by_conf = f"--conf=spark.kubernetes.driver.secretKeyRef.{PASSWORD_VARIABLE}={secret}:{access.SPARK}-password"
    assert by_conf in flights["spec"]["template"]["spec"]["containers"][0]["args"]


def test_what_is_referred_to_is_there() -> None:
    accounts, claims = names("ServiceAccount"), names("PersistentVolumeClaim")
    text = "\n".join(path.read_text() for path in MANIFESTS)
    named = re.findall(r"(?:serviceAccountName:? +|serviceAccount: )(\S+)", text)
    assert set(named) == accounts == {"spark"}
    assert set(re.findall(r"claimName:? +([\w-]+)", text)) == claims
    assert set(re.findall(r"configMap: {name: ([\w-]+)}", text)) == names("ConfigMap")
    (binding,) = of_kind("RoleBinding")
    assert (binding["roleRef"]["name"], binding["subjects"][0]["name"]) == ("spark", "spark")
    assert names("Role") == {"spark"}


@pytest.mark.parametrize("number", range(len(list(pods()))))
def test_pods_are_as_restricted_as_can_be(number: int) -> None:
    _, pod = list(pods())[number]
    security = pod["spec"]["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] == 10001
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = pod["spec"]["containers"]
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
