"""`kubectl pq` against an API server of a few lines: what it shows, and in which words it fails."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.redis_servers import free_port
from partitionedqueue_cli import plugin_pods, plugin_queues

GROUP = "/apis/messaging.partitionedqueue.io/v1alpha1"
ORDERS = f"{GROUP}/namespaces/shop/partitionedqueues/orders"
PODS = "/api/v1/namespaces/shop/pods?labelSelector=messaging.partitionedqueue.io%2Fqueue%3Dorders"
_GATEWAYS = "app.kubernetes.io%2Fname%3Dpartitionedqueue%2Capp.kubernetes.io%2Fcomponent%3Dgateway"
SERVICES = f"/api/v1/services?labelSelector={_GATEWAYS}&limit=20"


def queue(status: dict[str, Any] | None = None, **metadata: object) -> dict[str, Any]:
    told = {"name": "orders", "namespace": "shop", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z"}
    kind = {"apiVersion": "messaging.partitionedqueue.io/v1alpha1", "kind": "PartitionedQueue"}
    found = {**kind, "metadata": {**told, **metadata}, "spec": {"enablePartitioning": True}}
    return found if status is None else {**found, "status": status}


def well(**more: object) -> dict[str, Any]:
    counts = {"active": 7, "deadLetter": 1, "scheduled": 0, "deferred": 2}
    status = {"observedGeneration": 2, "readyPartitions": "16/16", "availability": "Available", "counts": counts}
    return {**status, "partitions": {"total": 16, "ready": 16}, "messages": 10, "countsComplete": True, **more}


def limited() -> dict[str, Any]:
    sick = {"partition": 3, "pod": "orders-broker-3", "reason": "CrashLoopBackOff", "message": "back-off 40s"}
    ready = {"type": "Ready", "status": "False", "reason": "PartitionsUnavailable", "message": "partition 3 ..."}
    counted = {"readyPartitions": "15/16", "partitions": {"total": 16, "ready": 15}, "countsComplete": False}
    return well(availability="Limited", unavailablePartitions=[sick], conditions=[ready], **counted)


def pod(name: str = "orders-broker-0", *, ready: bool = True, **status: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}, *status.pop("conditions", [])]
    container = {"name": "broker", "restartCount": 0, "state": {"running": {}}, **status.pop("container", {})}
    told = {"conditions": conditions, "containerStatuses": [container], **status}
    return {"metadata": {"name": name}, "spec": {"nodeName": "node-1"}, "status": told}


class FakeApiServer:
    """Answers by path and query; whatever it was not told is 404 in plain text, as a real one's."""

    def __init__(self, folder: Path) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        answers = self.answers

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = answers.get(self.path, (404, None))
                data = b"404 page not found" if body is None else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                del format, args

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.kubeconfig = kubeconfig(folder, f"http://127.0.0.1:{self.server.server_address[1]}")
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def kubeconfig(folder: Path, url: str) -> Path:
    path = folder / "kubeconfig"
    context = {"cluster": "here", "user": "me", "namespace": "shop"}
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "here", "cluster": {"server": url}}],
                "users": [{"name": "me", "user": {"token": "sesame"}}],
                "contexts": [{"name": "here", "context": context}],
                "current-context": "here",
            }
        )
    )
    return path


@pytest.fixture
def api(tmp_path: Path) -> Iterator[FakeApiServer]:
    one = FakeApiServer(tmp_path)
    yield one
    one.server.shutdown()
    one.server.server_close()


def run(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KUBECONFIG": str(path), "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-m", "partitionedqueue_cli.plugin", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_status_shows_figures_and_exits_0_where_all_is_well(api: FakeApiServer) -> None:
    api.answers[f"{GROUP}/namespaces/shop/partitionedqueues?limit=500"] = (
        200,
        {"items": [queue(well())], "metadata": {}},
    )
    done = run(api.kubeconfig, "status")
    assert done.returncode == 0, done.stderr
    headings, row = done.stdout.splitlines()
    assert headings.split()[3:8] == ["ACTIVE", "DEAD-LETTERS", "SCHEDULED", "DEFERRED", "MESSAGES"]
    assert row.split()[:8] == ["orders", "16/16", "Available", "7", "1", "0", "2", "10"]


def test_status_names_the_sick_partition_once_and_exits_1(api: FakeApiServer) -> None:
    api.answers[ORDERS] = (200, queue(limited()))
    done = run(api.kubeconfig, "status", "orders")
    assert done.returncode == 1
    assert "orders: partition 3 (orders-broker-3) does not serve: CrashLoopBackOff: back-off 40s\n" in done.stdout
    assert done.stdout.count("partition 3") == 1
    assert "there may be more messages than it says" in done.stdout


def test_status_of_a_full_page_goes_on_to_the_next(api: FakeApiServer) -> None:
    first = f"{GROUP}/partitionedqueues?limit=500"
    api.answers[first] = (200, {"items": [queue(well())], "metadata": {"continue": "more"}})
    api.answers[f"{first}&continue=more"] = (200, {"items": [queue(well(), name="letters")], "metadata": {}})
    done = run(api.kubeconfig, "status", "-A", "--json")
    assert [one["name"] for one in json.loads(done.stdout)] == ["letters", "orders"]


def test_partitions_take_their_counts_from_the_first_gateway_that_knows_the_queue(api: FakeApiServer) -> None:
    api.answers[ORDERS] = (200, queue(well()))
    api.answers[PODS] = (200, {"items": [pod(f"orders-broker-{n}") for n in range(16)]})
    ports = {"ports": [{"name": "http"}]}
    names = [{"metadata": {"namespace": where, "name": "pq-gateway"}, "spec": ports} for where in ("one", "two")]
    api.answers[SERVICES] = (200, {"items": names})
    path = "/api/v1/namespaces/{}/services/pq-gateway:http/proxy/api/v1/namespaces/shop/queues/orders"
    no = {"error": {"reason": "NoSuchQueue", "message": "this gateway knows no queue orders"}}
    api.answers[path.format("one")] = (404, no)
    each = [{"partition": n, "up": True, "counts": {"active": n}, "messages": n, "sizeInBytes": 9} for n in range(16)]
    api.answers[path.format("two")] = (200, {"eachPartition": each})
    done = run(api.kubeconfig, "partitions", "orders")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.splitlines()[6].split()[:5] == ["5", "orders-broker-5", "node-1", "yes", "5"]
    assert (
        json.loads(run(api.kubeconfig, "partitions", "orders", "--json").stdout)["countsFrom"]
        == "gateway two/pq-gateway"
    )


def test_partitions_without_a_gateway_show_what_the_pods_and_the_operator_say(api: FakeApiServer) -> None:
    api.answers[ORDERS] = (200, queue(limited()))
    api.answers[SERVICES] = (403, {"kind": "Status", "message": "services is forbidden", "code": 403})
    api.answers[PODS] = (403, {"kind": "Status", "message": "pods is forbidden", "code": 403})
    done = run(api.kubeconfig, "partitions", "orders")
    assert done.returncode == 1
    assert "no counts by partition, as the Services of gateways cannot be listed" in done.stderr
    assert "the pods cannot be listed: the cluster answers 403: pods is forbidden" in done.stderr
    assert done.stdout.splitlines()[4].split()[:5] == ["3", "orders-broker-3", "-", "no", "CrashLoopBackOff"]
    assert done.stdout.splitlines()[5].split()[:4] == ["4", "orders-broker-4", "-", "yes"]


def test_what_is_not_there_is_said_in_words(api: FakeApiServer) -> None:
    done = run(api.kubeconfig, "status")
    assert done.returncode == 1
    assert "this cluster knows no PartitionedQueue; install the chart first" in done.stderr
    missing = {"kind": "Status", "message": "not found", "code": 404, "details": {"name": "orders"}}
    api.answers[ORDERS] = (404, missing)
    assert "there is no queue orders in namespace shop" in run(api.kubeconfig, "status", "orders").stderr
    api.answers[ORDERS] = (401, {"kind": "Status", "message": "Unauthorized", "code": 401})
    assert "the cluster does not know you" in run(api.kubeconfig, "status", "orders").stderr
    api.answers[ORDERS] = (403, {"kind": "Status", "message": "you may not", "code": 403})
    assert "the cluster answers 403: you may not" in run(api.kubeconfig, "status", "orders").stderr


def test_a_cluster_that_cannot_be_reached_is_said_in_words(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = run(kubeconfig(tmp_path, url), "status")
    assert done.returncode == 1
    assert done.stderr.startswith(f"kubectl pq: the cluster at {url} cannot be reached: ")
    done = run(tmp_path / "missing", "status")
    assert done.returncode == 1
    assert "no cluster is known" in done.stderr
    for one in (done.stderr,):
        assert "Traceback" not in one


@pytest.mark.parametrize(
    "words",
    [
        ["status", "orders", "-A"],
        ["status", "--timeout", "0"],
        ["partitions"],
        ["partitions", "x", "--gateway", "y"],
        [],
    ],
)
def test_what_cannot_be_right_is_refused_before_anything_is_asked(tmp_path: Path, words: list[str]) -> None:
    assert run(tmp_path / "missing", *words).returncode == 2


BACKING_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
NOWHERE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}
ENDED = {"terminated": {"exitCode": 78, "message": "start.sh: the file is\n damaged"}}


@pytest.mark.parametrize(
    ("manifest", "reason", "message"),
    [
        (pod(), "", ""),
        (
            pod(ready=False, container={"state": BACKING_OFF, "lastState": ENDED}),
            "CrashLoopBackOff",
            "back-off; its last run ended with exit code 78: start.sh: the file is damaged",
        ),
        (pod(ready=False), "NotReady", "its readiness probe says no"),
        (
            pod(ready=False, container={"state": {"terminated": {"signal": 9, "reason": "OOMKilled"}}}),
            "OOMKilled",
            "its last run ended with signal 9",
        ),
        (
            pod(
                ready=False,
                container={"state": {}},
                conditions=[NOWHERE],
            ),
            "Unschedulable",
            "no node",
        ),
        (pod(ready=False, container={"state": {}}, reason="Evicted", message="disk"), "Evicted", "disk"),
    ],
)  # fmt: skip
def test_a_pod_says_in_a_few_words_what_keeps_it(manifest: dict[str, Any], reason: str, message: str) -> None:
    found = plugin_pods.pod_of(manifest)
    assert (found.reason, found.message) == (reason, message)
    assert found.ready is (reason == "")


def test_a_pod_that_is_being_ended_is_not_ready() -> None:
    manifest = pod()
    manifest["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert plugin_pods.pod_of(manifest).reason == "Terminating"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (None, "the operator has not said anything about it yet; does it run?"),
        (well(observedGeneration=1), "the operator has not seen its last change yet"),
        (
            well(conditions=[{"type": "Accepted", "status": "False", "reason": "NameConflict", "message": "a Secret"}]),
            "not accepted: NameConflict: a Secret",
        ),
        ({**limited(), "partitions": {"total": 80, "ready": 60}}, "19 more partitions do not serve"),
    ],
)
def test_troubles_are_told_in_words(status: dict[str, Any] | None, words: str) -> None:
    assert words in plugin_queues.troubles(queue(status))


def test_a_queue_that_is_well_has_no_troubles() -> None:
    assert plugin_queues.troubles(queue(well())) == []
