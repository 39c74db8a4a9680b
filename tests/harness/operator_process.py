"""An operator outside the cluster, with the rights that the chart gives it, and no others."""

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Self

import yaml

from harness.cluster.cluster import Cluster
from harness.cluster.machine import DIES_WITH_US
from harness.patience import eventually
from harness.resting_operators import RestingOperators

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "partitionedqueue"
_START_S = 60.0


class Installation:
    """What an operator needs around it: the custom resource, the deletion policy, a namespace, a service account.

    With `watched` it has rights in these namespaces alone, and looks after no other.
    """

    def __init__(self, cluster: Cluster, folder: Path, *, watched: tuple[str, ...] = ()) -> None:
        self.cluster = cluster
        self.folder = folder
        self.watched = watched
        self.release = f"local-{secrets.token_hex(3)}"  # its cluster roles are not those of a chart that is installed
        self.namespace = f"operator-{self.release}"
        self._resting = RestingOperators(cluster)
        self._before = "deletion.messaging" in cluster.kubectl("get", "validatingadmissionpolicies", "-o", "name")
        if not self._before:
            cluster.kubectl("apply", "--server-side", "-f", str(ROOT / "crds"))
        cluster.kubectl("wait", "--for=condition=Established", "crd/partitionedqueues.messaging.partitionedqueue.io")
        cluster.kubectl("create", "namespace", self.namespace)
        rights = cluster.helm(
            "template", self.release, str(CHART), "-n", self.namespace, "-s", "templates/operator-rbac.yaml",
            "--set-json", f"watchNamespaces={json.dumps(watched)}",
        )  # fmt: skip
        self._rights = rights
        cluster.kubectl("apply", "-f", "-", input=rights)
        account = next(d["metadata"]["name"] for d in yaml.safe_load_all(rights) if d["kind"] == "ServiceAccount")
        self.kubeconfig = folder / "operator.kubeconfig"
        token = cluster.kubectl("create", "token", account, "-n", self.namespace, "--duration=4h").strip()
        config = json.loads(cluster.kubectl("config", "view", "--raw", "--flatten", "-o", "json"))
        config["users"] = [{"name": "operator", "user": {"token": token}}]
        config["contexts"] = [
            {"name": "operator", "context": {"cluster": config["clusters"][0]["name"], "user": "operator"}}
        ]
        config["current-context"] = "operator"
        self.kubeconfig.write_text(json.dumps(config))

    def end(self) -> None:
        """Take it all away again; an operator that was there before goes on."""
        self._resting.wake()
        self.cluster.kubectl("delete", "-f", "-", "--wait=false", "--ignore-not-found", input=self._rights)
        self.cluster.kubectl("delete", "namespace", self.namespace, "--wait=false")
        if not self._before:
            self.cluster.kubectl("delete", "-f", str(ROOT / "crds"), "--wait=false")


class OperatorProcess:
    """One replica."""

    def __init__(self, installation: Installation, image: str, *, pod: str = "operator-a") -> None:
        self._installation, self._image, self._pod = installation, image, pod
        self.start()

    def start(self) -> None:
        """Start it, once more if it has ended."""
        installation = self._installation
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = installation.folder / f"{self._pod}-{self.port}.log"
        environment = {
            **os.environ,
            "KUBECONFIG": str(installation.kubeconfig),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "core"), str(ROOT / "operator")]),
            "PQ_BROKER_IMAGE": self._image,
            "PQ_OPERATOR_NAMESPACE": installation.namespace,
            "PQ_OPERATOR_POD": self._pod,
            "PQ_OPERATOR_PORT": str(self.port),
            "PQ_RELEASE": installation.release,
            "PQ_WATCH_NAMESPACES": ",".join(installation.watched),
        }
        environment.pop("KUBERNETES_SERVICE_HOST", None)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*DIES_WITH_US, sys.executable, "-m", "partitionedqueue_operator"],
                env=environment,
                stdout=log,
                stderr=log,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def ready(self) -> Self:
        """Wait until it has listed the cluster."""
        eventually(lambda: self._lives() and self.answer("/readyz")[0] == 200, f"not ready; see {self.log}", _START_S)
        return self

    def leading(self) -> Self:
        """Wait until it is the one that acts."""
        eventually(
            lambda: self._lives() and self.metric("pq_operator_leading") == 1, f"no leader; see {self.log}", _START_S
        )
        return self

    def _lives(self) -> bool:
        assert self.process.poll() is None, f"the operator has ended:\n{self.log.read_text()[-4000:]}"
        return True

    def answer(self, path: str) -> tuple[int, str]:
        """What it says over HTTP; status 0 where it says nothing."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metric(self, name: str) -> float:
        """The sum of a metric's values, of one with these labels if they are named too."""
        labels = "" if "{" in name else r"(?:{[^}]*})?"
        found = re.findall(rf"^{re.escape(name)}{labels} (\S+)$", self.answer("/metrics")[1], re.MULTILINE)
        return sum(map(float, found)) if found else -1

    def writes(self) -> dict[str, int]:
        """Requests by which it has changed the cluster, its Lease left out."""
        pattern = r'^pq_operator_api_requests_total{verb="(\w+)",kind="(\w+)",code="(\d+)"} (\d+)$'
        found = re.findall(pattern, self.answer("/metrics")[1], re.MULTILINE)
        changes = {"apply", "create", "patch", "delete", "update"}
        return {f"{verb} {kind} {code}": int(n) for verb, kind, code, n in found if verb in changes and kind != "Lease"}

    def kill(self) -> None:
        """At once: it can say nothing to anybody."""
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """In good order; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
