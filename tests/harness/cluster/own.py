"""A cluster of our own from Kubernetes' real parts, in network namespaces of this machine."""

import json
import signal
import string
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from harness.cluster import binaries, images, links, machine, names, roots, simulated, slots
from harness.cluster.addresses import NODES_MAX, Slot
from harness.cluster.certificates import Authority
from harness.cluster.cluster import Cluster, CommandFailed
from harness.cluster.images import Image
from harness.cluster.keeper import Keeper
from harness.cluster.node import Node, system_images
from harness.cluster.progress import timed

_READY_SECONDS_MAX: Final = 300.0  # ten by itself; this is for a machine with much else to do
_KEPT: Final = "kept"
_INSTANCES_WANTED: Final = 1024  # kubelet and containerd watch files by inotify; Linux gives root 128 by default
_INSTANCES: Final = Path("/proc/sys/fs/inotify/max_user_instances")


@dataclass(frozen=True)
class OwnCluster(Cluster):
    """All of it can be lost and brought back: the nodes, the API server, and in the end the cluster."""

    slot: Slot

    @property
    def folder(self) -> Path:
        return slots.folder(self.slot)

    @property
    def reaches_pods(self) -> bool:
        return True

    @property
    def nodes(self) -> list[Node]:
        """Those that run."""
        every = (Node(self.folder, self.slot, number) for number in range(1, NODES_MAX + 1))
        return [node for node in every if node.running]

    def load(self, *names: str, version: str) -> list[str]:
        """Build these images of the project (images.DOCKERFILES), give them to every node; how pods name them."""
        built = [images.build(name, version) for name in names]
        self.load_images(*built)
        images.prune({image.archive for cluster in _running() for image in cluster._images().values()})
        return [image.reference for image in built]

    def load_images(self, *wanted: Image) -> None:
        """Make images known to every node, now and to come."""
        known = self._images()
        known.update({image.reference: image for image in wanted})
        self._remember(known)
        for image in wanted:
            with timed(f"loading {image.reference} on {len(self.nodes)} nodes"):
                _all_at_once([partial(node.load, image) for node in self.nodes])

    def add_node(self) -> str:
        """Bring up the first node that does not run; its name, once Ready. A lost one has its volumes again."""
        running = {node.number for node in self.nodes}
        node = Node(self.folder, self.slot, next(n for n in range(1, NODES_MAX + 1) if n not in running))
        since = int(time.time())
        node.start()
        for image in self._images().values():
            node.load(image)
        node.serve()
        self._await_ready(node, since)
        return node.name

    def remove_node(self, name: str) -> None:
        """Lose a node, all at once: nobody is told, its addresses fall silent. Not the first: it has the API server."""
        node = next((node for node in self.nodes if node.name == name), None)
        if node is None or node.number == 1:
            can = ", ".join(node.name for node in self.nodes[1:]) or "none"
            raise ValueError(f"{name} cannot be removed; these can: {can}")
        node.kill()

    def signal(self, program: str, which: signal.Signals, node: str = "node-1") -> None:
        """SIGKILL ends a node's program, which then starts again; SIGSTOP freezes it until SIGCONT."""
        next(each for each in self.nodes if each.name == node).signal(program, which)

    def restart_api_server(self) -> None:
        """Kill it; returns when it serves again."""
        self.signal("kube-apiserver", signal.SIGKILL)
        time.sleep(0.2)
        self._await(self._api_is_ready, "the API server")

    def simulated_nodes(self, count: int) -> AbstractContextManager[None]:
        """So many nodes more, by kwok: their pods are Ready at once and consist of nothing. See `simulated`."""
        return simulated.nodes(self, self.slot, count)

    def resolve(self, name: str) -> list[str]:
        """The IPv4 addresses that pods get for a name, `broker-0.broker.space.svc`; empty where there is none."""
        return names.resolve(str(self.slot.dns), name)

    def with_cluster_dns(self, command: list[str]) -> list[str]:
        """`command`, changed so that its process asks the cluster's DNS: for an operator that runs outside."""
        servers = self.folder / "resolv.conf"
        script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", script, str(servers), *command]

    def _create(self, count: int) -> None:
        Authority(self.folder / "pki", self.slot).create()
        self.kubeconfig.write_bytes((self.folder / "pki" / "admin.conf").read_bytes())
        self.kubeconfig.chmod(0o600)
        search = "svc.cluster.local cluster.local"
        (self.folder / "resolv.conf").write_text(f"nameserver {self.slot.dns}\nsearch {search}\noptions ndots:5\n")
        links.create_network(self.slot)
        since = int(time.time())
        nodes = [Node(self.folder, self.slot, number + 1) for number in range(count)]
        for node in nodes:
            node.start()
        self.load_images(*system_images())
        for node in nodes:
            node.serve()
        self._await(self._api_is_ready, "the API server")
        system = (Path(__file__).parent / "files" / "system.yaml").read_text()
        self._await(self._namespaces_are_there, "the first namespaces")
        self.kubectl("apply", "-f", "-", input=string.Template(system).substitute(DNS=str(self.slot.dns)))
        for node in nodes:
            self._await_ready(node, since)
        self.kubectl("label", "node", "node-1", "node-role.kubernetes.io/control-plane=")
        self._await(lambda: bool(self.resolve("kubernetes.default.svc")), "cluster DNS")

    def _images(self) -> dict[str, Image]:
        try:
            known = json.loads((self.folder / "images.json").read_text())
        except FileNotFoundError:
            return {}
        return {name: Image(name, Path(archive), key) for name, (archive, key) in known.items()}

    def _remember(self, known: dict[str, Image]) -> None:
        plain = {name: (str(image.archive), image.key) for name, image in known.items()}
        (self.folder / "images.json").write_text(json.dumps(plain))

    def _api_is_ready(self) -> bool:
        return self.kubectl("get", "--raw", "/readyz", seconds=10) == "ok"

    def _namespaces_are_there(self) -> bool:
        return bool(self.kubectl("get", "namespace", "kube-system", "default", "-o", "name"))

    def _await_ready(self, node: Node, since: int) -> None:
        """Not what the API server still believes of a lost node: its kubelet must have said so `since` then."""

        def is_ready() -> bool:
            ready = '{range .status.conditions[?(@.type=="Ready")]}{.status} {.lastHeartbeatTime}{end}'
            status, _, said = self.kubectl("get", "node", node.name, "-o", f"jsonpath={ready}").partition(" ")
            return status == "True" and datetime.fromisoformat(said).timestamp() >= since

        self._await(is_ready, node.name)

    def _await(self, is_there: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _READY_SECONDS_MAX
        said = ""
        while time.monotonic() < deadline:
            try:
                if is_there():
                    return
            except (CommandFailed, machine.NoClusterHere, subprocess.TimeoutExpired) as error:
                said = str(error)
            time.sleep(0.3)
        raise machine.NoClusterHere(
            f"{what} was not there after {_READY_SECONDS_MAX:.0f} s ({said}); logs: {self.folder}/nodes/*/logs"
        )


def create(nodes: int, *, outlives: bool) -> tuple[OwnCluster, Keeper]:
    """A new cluster in a free slot. It ends with this process, or, if it `outlives` it, by `keeper.end`."""
    machine.prepare()
    for make in (roots.node_root, partial(binaries.programs, binaries.KUBERNETES), system_images):
        make()  # minutes the first time; from here on they are there
    if int(_INSTANCES.read_text()) < _INSTANCES_WANTED:
        _INSTANCES.write_text(str(_INSTANCES_WANTED))
    slot, lock = slots.claim()
    kept = Keeper(slot, lock, outlives=outlives)
    cluster = OwnCluster(slots.folder(slot) / "kubeconfig", slot)
    try:
        with timed(f"starting a cluster of {nodes} nodes in {cluster.folder}"):
            cluster._create(nodes)
    except BaseException:
        kept.end()
        raise
    if outlives:
        (cluster.folder / _KEPT).touch()
    return cluster, kept


def kept() -> OwnCluster | None:
    """The cluster that outlived its maker, if there is one."""
    return next((each for each in _running() if (each.folder / _KEPT).exists()), None)


def by_kubeconfig(kubeconfig: Path) -> OwnCluster | None:
    """One of ours, given by its kubeconfig: more can be done with it than with a stranger."""
    return next((each for each in _running() if each.kubeconfig == kubeconfig), None)


def _running() -> list[OwnCluster]:
    return [OwnCluster(slots.folder(slot) / "kubeconfig", slot) for slot in slots.alive()]


def _all_at_once(actions: list[Callable[[], None]]) -> None:
    with ThreadPoolExecutor(max_workers=len(actions) or 1) as pool:
        for outcome in [pool.submit(action) for action in actions]:
            outcome.result()
