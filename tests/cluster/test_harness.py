"""What every other test here stands on: the cluster is a real one, can be hurt, and leaves nothing behind."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.cluster import choice, images, own, slots
from harness.cluster.addresses import Slot
from harness.cluster.cluster import Cluster, CommandFailed
from harness.cluster.own import OwnCluster
from harness.cluster.simulated import SELECTOR, TOLERATION
from harness.patience import eventually

SERVER = "localhost/harness-server:1"
SECONDS_MAX = 90.0

STATEFUL_SET = """
apiVersion: v1
kind: Service
metadata: {name: store}
spec: {clusterIP: None, selector: {app: store}, ports: [{port: 6379}]}
---
apiVersion: v1
kind: Service
metadata: {name: any-store}
spec: {selector: {app: store}, ports: [{port: 6379}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  serviceName: store
  podManagementPolicy: Parallel
  replicas: REPLICAS
  selector: {matchLabels: {app: store}}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain}
  template:
    metadata: {labels: {app: store}}
    spec:
      terminationGracePeriodSeconds: 1
      MORE
      securityContext: {runAsNonRoot: true, runAsUser: 10001}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: DoNotSchedule
          labelSelector: {matchLabels: {app: store}}
      containers:
        - name: server
          image: localhost/harness-server:1
          imagePullPolicy: Never
          command: [redis-server, --protected-mode, "no", --dir, /data, --appendonly, "yes", --appendfsync, always]
          volumeMounts: [{name: data, mountPath: /data}]
          readinessProbe: {tcpSocket: {port: 6379}, periodSeconds: 1}
          resources: {requests: {cpu: 10m, memory: 16Mi}}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


@pytest.fixture(scope="session")
def server_image(own_cluster: OwnCluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An image of this test's own, so that a fault of the project's images is not taken for one of the cluster."""
    folder = tmp_path_factory.mktemp("image")
    (folder / "Dockerfile").write_text(
        f"FROM {images.BASE}\n"
        "RUN apt-get update && apt-get install -y --no-install-recommends redis-server && rm -rf /var/lib/apt/lists/*\n"
    )
    own_cluster.load_images(images.from_dockerfile(folder / "Dockerfile", SERVER, folder))
    return SERVER


def stateful_set(replicas: int, **more: Any) -> str:
    """Servers with a volume each, and services; `more` goes into the pods' spec."""
    lines = "\n      ".join(f"{name}: {json.dumps(value)}" for name, value in more.items())
    return STATEFUL_SET.replace("REPLICAS", str(replicas)).replace("MORE", lines)


@contextmanager
def stores(cluster: Cluster, namespace: str, replicas: int) -> Iterator[None]:
    cluster.kubectl("-n", namespace, "apply", "-f", "-", input=stateful_set(replicas))
    cluster.kubectl("-n", namespace, "rollout", "status", "statefulset/store", "--timeout=120s")
    if isinstance(cluster, OwnCluster):  # the cluster's DNS hears of a pod a moment after it is ready
        names = [f"store-{number}.store.{namespace}.svc" for number in range(replicas)]
        eventually(lambda: all(map(cluster.resolve, names)), "the DNS does not know them", SECONDS_MAX)
    yield
    cluster.kubectl("-n", namespace, "delete", "statefulset/store")


def ask(address: str, words: str) -> str:
    """One inline command of Redis's, over a connection of its own."""
    with socket.create_connection((address, 6379), timeout=5) as connection:
        connection.sendall(f"{words}\r\n".encode())
        return connection.recv(4096).decode().strip()


def pod(cluster: Cluster, namespace: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cluster.kubectl("-n", namespace, "get", "pod", name, "-o", "json"))
    return found


def test_pods_with_volumes_run_as_nobody_in_particular_and_are_reached_from_this_machine(
    own_cluster: OwnCluster, server_image: str, namespace: str
) -> None:
    with stores(own_cluster, namespace, 4):
        nodes = {pod(own_cluster, namespace, f"store-{number}")["spec"]["nodeName"] for number in range(4)}
        by_name = own_cluster.resolve(f"store-0.store.{namespace}.svc")
        service = own_cluster.resolve(f"any-store.{namespace}.svc")
        assert nodes == {"node-1", "node-2"}
        assert by_name == [pod(own_cluster, namespace, "store-0")["status"]["podIP"]]
        assert ask(by_name[0], "SET question 42") == "+OK"
        assert ask(service[0], "PING") == "+PONG"


def test_pods_reach_each_other_across_nodes_by_name(own_cluster: OwnCluster, server_image: str, namespace: str) -> None:
    with stores(own_cluster, namespace, 2):
        # A name follows its ready pod by a moment, and that it was not there is remembered for some seconds.
        asked = f"redis-cli -h store-1.store.{namespace}.svc PING || true"
        eventually(
            lambda: own_cluster.kubectl("-n", namespace, "exec", "store-0", "--", "sh", "-c", asked).strip() == "PONG",
            "store-0 does not reach store-1 by its name",
            SECONDS_MAX,
        )


def test_a_deleted_pod_is_soon_back_with_its_volume(own_cluster: OwnCluster, server_image: str, namespace: str) -> None:
    with stores(own_cluster, namespace, 1):
        own_cluster.kubectl("-n", namespace, "exec", "store-0", "--", "redis-cli", "SET", "kept", "yes")
        own_cluster.kubectl("-n", namespace, "delete", "pod", "store-0")
        own_cluster.kubectl("-n", namespace, "rollout", "status", "statefulset/store", "--timeout=60s")
        asked = ("exec", "store-0", "--", "redis-cli", "GET", "kept")
        assert own_cluster.kubectl("-n", namespace, *asked).strip() == "yes"


def test_a_volume_goes_when_its_claim_does(own_cluster: OwnCluster, server_image: str, namespace: str) -> None:
    def folders() -> set[Path]:
        claims = own_cluster.kubectl("get", "pv", "-o", "jsonpath={.items[*].metadata.name}").split()
        every = {folder for node in own_cluster.nodes for folder in node.volumes.iterdir()}
        return {folder for folder in every if folder.name in claims} | (every & left)

    left: set[Path] = set()
    with stores(own_cluster, namespace, 2):
        left = folders()
        assert len(left) >= 2
    eventually(lambda: not any(folder.exists() for folder in left), f"they stay: {left}", SECONDS_MAX)


def test_a_lost_node_falls_silent_and_comes_back_with_its_volumes(
    own_cluster: OwnCluster, server_image: str, namespace: str
) -> None:
    def is_ready() -> str:
        ready = '{.status.conditions[?(@.type=="Ready")].status}'
        return own_cluster.kubectl("get", "node", "node-2", "-o", f"jsonpath={ready}")

    with stores(own_cluster, namespace, 2):
        lost = next(
            name for name in ("store-0", "store-1") if pod(own_cluster, namespace, name)["spec"]["nodeName"] == "node-2"
        )
        address = pod(own_cluster, namespace, lost)["status"]["podIP"]
        assert ask(address, "SET kept yes") == "+OK"
        own_cluster.remove_node("node-2")
        with pytest.raises(OSError, match=r"timed out|No route to host"):
            ask(address, "PING")
        eventually(lambda: is_ready() == "Unknown", "nobody misses the node", SECONDS_MAX)
        assert own_cluster.add_node() == "node-2"
        eventually(lambda: ask_by_exec(own_cluster, namespace, lost) == "yes", f"{lost} is not back", SECONDS_MAX)


def ask_by_exec(cluster: Cluster, namespace: str, name: str) -> str:
    try:
        return cluster.kubectl("-n", namespace, "exec", name, "--", "redis-cli", "GET", "kept").strip()
    except CommandFailed:
        return ""


def test_the_api_server_can_be_restarted_and_frozen(own_cluster: OwnCluster, namespace: str) -> None:
    own_cluster.restart_api_server()
    assert namespace in own_cluster.kubectl("get", "namespaces", "-o", "name")
    own_cluster.signal("kube-apiserver", signal.SIGSTOP)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            own_cluster.kubectl("get", "--raw", "/readyz", seconds=2)
    finally:
        own_cluster.signal("kube-apiserver", signal.SIGCONT)
    assert own_cluster.kubectl("get", "--raw", "/readyz") == "ok"


def test_rbac_and_the_pod_security_standards_are_in_force(cluster: Cluster, namespace: str) -> None:
    somebody = f"--as=system:serviceaccount:{namespace}:default"
    with pytest.raises(CommandFailed, match="no"):
        cluster.kubectl("auth", "can-i", "list", "pods", "--namespace", namespace, somebody)
    cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    with pytest.raises(CommandFailed, match="violates PodSecurity"):
        cluster.kubectl("-n", namespace, "run", "root", "--image=localhost/pause:1")


POLICY = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: store}
spec:
  podSelector: {matchLabels: {app: store}}
  policyTypes: [Ingress, Egress]
  ingress:
    - from: [{namespaceSelector: {}, podSelector: {matchLabels: {role: client}}}]
      ports: [{port: 6379}]
  egress:
    - to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}}]
      ports: [{port: 53, protocol: UDP}]
"""


def test_a_network_policy_holds_within_a_node_and_across_nodes(
    own_cluster: OwnCluster, server_image: str, namespace: str
) -> None:
    def asks(name: str, whom: str) -> bool:
        asked = ("exec", name, "--", "timeout", "3", "redis-cli", "-h", f"{whom}.store.{namespace}.svc", "PING")
        try:
            return own_cluster.kubectl("-n", namespace, *asked).strip() == "PONG"
        except CommandFailed:
            return False

    pods = ("client", "stranger")
    with stores(own_cluster, namespace, 2):
        for name in pods:
            sleeping = ("--image", server_image, "--image-pull-policy=Never", "--labels", f"role={name}", "--command")
            own_cluster.kubectl("-n", namespace, "run", name, *sleeping, "--", "sleep", "600")
        own_cluster.kubectl("-n", namespace, "wait", "--for=condition=Ready", "pod", *pods, "--timeout=60s")
        assert asks("stranger", "store-0")
        assert asks("store-0", "store-1")
        own_cluster.kubectl("-n", namespace, "apply", "-f", "-", input=POLICY)
        eventually(lambda: not asks("stranger", "store-0"), "the policy does not hold", SECONDS_MAX)
        assert not asks("stranger", "store-1")
        assert asks("client", "store-0")
        assert asks("client", "store-1")
        assert not asks("store-0", "store-1")
        address = own_cluster.resolve(f"store-1.store.{namespace}.svc")[0]
        assert ask(address, "PING") == "+PONG", "this machine is as good as a node"
        own_cluster.kubectl("-n", namespace, "delete", "networkpolicy", "store")
        eventually(lambda: asks("stranger", "store-0") and asks("store-0", "store-1"), "it still holds", SECONDS_MAX)
        own_cluster.kubectl("-n", namespace, "delete", "pod", *pods, "--grace-period=1", "--wait=false")


def test_a_process_outside_sees_the_clusters_names(own_cluster: OwnCluster) -> None:
    ask_for_it = "import socket; print(socket.gethostbyname('kubernetes.default.svc'))"
    asking = own_cluster.with_cluster_dns([sys.executable, "-c", ask_for_it])
    done = subprocess.run(asking, capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == str(own_cluster.slot.kubernetes)


def test_a_port_is_forwarded_to_a_service(cluster: Cluster) -> None:
    with (
        cluster.forwarded("service/kube-dns", 53, "kube-system") as port,
        socket.create_connection(("127.0.0.1", port), timeout=5) as connection,
    ):
        assert connection.getpeername()[1] == port


def test_two_clusters_do_not_meet_and_one_ends_with_the_process_that_made_it(own_cluster: OwnCluster) -> None:
    script = (
        "import sys; from harness.cluster import own; made, keeper = own.create(1, outlives=False);"
        "print(made.slot.number, flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**own_cluster.environment, "PYTHONPATH": str(Path(own.__file__).parents[2])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdin
    assert other.stdout
    try:
        slot = Slot(int(other.stdout.readline()))
        second = own.OwnCluster(slots.folder(slot) / "kubeconfig", slot)
        assert slot != own_cluster.slot
        assert second.kubectl("get", "nodes", "-o", "name").split() == ["node/node-1"]
        assert len(own_cluster.kubectl("get", "nodes", "-o", "name").split()) == 2
    finally:
        other.kill()  # it has no time to tidy up
        other.wait()
        other.stdin.close()
        other.stdout.close()
    eventually(lambda: not slots.folder(slot).exists() and slot not in slots.alive(), "it stays", SECONDS_MAX)
    assert not Path(f"/sys/class/net/{slot.bridge}").exists()
    assert not list(Path("/run/netns").glob(f"{slot.name}-*"))
    assert not list(Path("/sys/fs/cgroup").glob(f"**/{slot.name}-*"))


def test_pods_on_simulated_nodes_are_ready_at_once_and_nobody_is_there(own_cluster: OwnCluster, namespace: str) -> None:
    with own_cluster.simulated_nodes(2):
        own_cluster.kubectl(
            "-n", namespace, "apply", "-f", "-", input=stateful_set(40, nodeSelector=SELECTOR, tolerations=[TOLERATION])
        )
        own_cluster.kubectl("-n", namespace, "rollout", "status", "statefulset/store", "--timeout=60s")
        address = pod(own_cluster, namespace, "store-39")["status"]["podIP"]
        with pytest.raises(OSError, match="No route to host"):
            ask(address, "PING")
        own_cluster.kubectl("-n", namespace, "delete", "statefulset/store")
        eventually(
            lambda: not own_cluster.kubectl("-n", namespace, "get", "pods", "-o", "name"), "pods stay", SECONDS_MAX
        )


def test_a_kubeconfig_that_is_not_there_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    with pytest.raises(Exception, match="KUBECONFIG is /nowhere/config, which is not a file"):
        choice.given()
