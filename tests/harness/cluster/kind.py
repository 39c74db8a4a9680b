"""A cluster made by kind, where a Docker daemon answers: what a user's own machine takes."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.cluster import build_context, images
from harness.cluster.cache import FOLDER
from harness.cluster.cluster import Cluster
from harness.cluster.machine import NoClusterHere
from harness.cluster.progress import timed

CONTEXT_PREFIX: Final = "kind-"
_SECONDS_MAX: Final = 1800.0


def is_possible() -> bool:
    """Whether kind is installed and a Docker daemon answers."""
    if not shutil.which("kind") or not shutil.which("docker"):
        return False
    return subprocess.run(["docker", "info"], capture_output=True, check=False, timeout=60).returncode == 0


@dataclass(frozen=True)
class KindCluster(Cluster):
    """`name` is kind's name for it. Its nodes are containers named `<name>-control-plane`, `<name>-worker`, …"""

    name: str

    @property
    def reaches_pods(self) -> bool:
        return False  # on Linux it could be done by routes; elsewhere Docker runs in a machine of its own

    def load(self, *names: str, version: str) -> list[str]:
        """Build these images of the project (images.DOCKERFILES), give them to every node; how pods name them."""
        references = []
        for name in names:
            reference = images.reference(name, version)
            dockerfile = images.REPOSITORY / images.DOCKERFILES[name]
            version_label = f"--build-arg=VERSION={version}"
            with timed(f"building {reference}"), build_context.of(dockerfile, images.REPOSITORY).copied() as context:
                _run("docker", "build", version_label, "--tag", reference, "--file", str(dockerfile), str(context))
            with timed(f"loading {reference}"):
                _run("kind", "load", "docker-image", "--name", self.name, reference)
            references.append(reference)
        return references

    def remove_node(self, name: str) -> None:
        """Lose a node, all at once."""
        _run("docker", "kill", name)

    def add_node(self) -> str:
        """Bring back a node that was lost. Its name."""
        lost = _run(
            "docker",
            "ps",
            "--all",
            "--filter",
            f"name=^{self.name}-",
            "--filter",
            "status=exited",
            "--format",
            "{{.Names}}",
        )
        if not lost.strip():
            raise NoClusterHere("kind cannot add a node to a cluster that runs, only bring back one that was lost")
        name = lost.split()[0]
        _run("docker", "start", name)
        self.kubectl("wait", "--for=condition=Ready", f"node/{name}", "--timeout=120s")
        return name

    def delete(self) -> None:
        _run("kind", "delete", "cluster", "--name", self.name)
        self.kubeconfig.unlink(missing_ok=True)


def create(name: str, nodes: int) -> KindCluster:
    """A cluster of that name; the one that is there, if there is one."""
    if there := existing(name):
        return there
    roles = ["control-plane", *["worker"] * nodes]
    config = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes:\n" + "".join(
        f"- role: {each}\n" for each in roles
    )
    cluster = KindCluster(_kubeconfig(name), name)
    command = ["kind", "create", "cluster", "--name", name, "--config", "-", "--wait", "180s"]
    with timed(f"kind creates the cluster {name}"):
        _run(*command, "--kubeconfig", str(cluster.kubeconfig), given=config)
    return cluster


def existing(name: str) -> KindCluster | None:
    """kind's cluster of that name."""
    if not is_possible() or name not in _run("kind", "get", "clusters").split():
        return None
    cluster = KindCluster(_kubeconfig(name), name)
    _run("kind", "export", "kubeconfig", "--name", name, "--kubeconfig", str(cluster.kubeconfig))
    return cluster


def _kubeconfig(name: str) -> Path:
    FOLDER.mkdir(parents=True, exist_ok=True)
    return FOLDER / f"kind-{name}.kubeconfig"


def _run(*command: str, given: str = "") -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=_SECONDS_MAX)
    if done.returncode:
        raise NoClusterHere(f"{' '.join(command)} failed:\n{done.stdout[-1500:]}{done.stderr[-3000:]}")
    return done.stdout
