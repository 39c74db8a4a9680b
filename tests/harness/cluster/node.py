"""One node: a Debian in namespaces of its own, with containerd, kubelet and kube-proxy; the first has the rest too."""

import os
import shutil
import signal
import string
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.cluster import binaries, cgroups, images, links, roots
from harness.cluster.addresses import NodeAddress, Slot
from harness.cluster.cache import FOLDER as CACHE
from harness.cluster.certificates import Authority
from harness.cluster.images import Image

_FILES: Final = Path(__file__).parent / "files"
_LOST_WITH_POWER: Final = ("changes", "work", "root", "containerd", "kubelet")  # the rest is what a disk keeps
_IMPORT_SECONDS_MAX: Final = 300.0
_START_SECONDS_MAX: Final = 60.0


@dataclass(frozen=True, slots=True)
class Node:
    """`number` counts from 1; the first carries the control plane. `cluster` is the cluster's folder."""

    cluster: Path
    slot: Slot
    number: int

    @property
    def address(self) -> NodeAddress:
        return self.slot.node(self.number)

    @property
    def name(self) -> str:
        return self.address.name

    @property
    def folder(self) -> Path:
        return self.cluster / "nodes" / self.name

    @property
    def volumes(self) -> Path:
        """What the node calls /var/lib/volumes."""
        return self.folder / "volumes"

    @property
    def running(self) -> bool:
        return Path(f"/run/netns/{self.address.netns}").exists()

    def start(self) -> None:
        """Begin; the node is Ready some seconds later. A node that was killed finds its volumes again."""
        authority = Authority(self.cluster / "pki", self.slot)
        authority.add_node(self.address)
        self._lay_out()
        links.attach(self.slot, self.address)
        groups = cgroups.create(self.address.cgroup)
        environment = {
            "PATH": os.environ["PATH"],
            "FILES": str(_FILES),
            "IMAGES": str(CACHE),
            "LIFELINE": str(self.cluster / "lifeline"),
            "NODE": str(self.folder),
            "NODE_NAME": self.name,
            "PKI": str(authority.folder),
            "PROGRAMS": str(binaries.programs(binaries.KUBERNETES)),
            "ROOT": str(roots.node_root()),
        }
        # `sh` moves itself into the groups before it becomes the node, so that nothing of the node is outside them.
        enter = "".join(f"echo $$ >{group}/cgroup.procs; " for group in groups)
        command = [
            "nsenter",
            f"--net=/run/netns/{self.address.netns}",
            "sh",
            "-c",
            f'{enter}exec bash "$FILES/outer.sh"',
        ]
        with (self.folder / "logs" / "node.log").open("a") as log:
            # Nobody's child: it lives for as long as the keeper does, whoever asked for it.
            subprocess.run(
                ["setsid", "--fork", *command],
                env=environment,
                check=True,
                timeout=30,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
            )

    def serve(self) -> None:
        """Let pods begin: the images that they need are there. Before that they would fail, and wait ever longer."""
        (self.folder / "etc" / "images-are-there").touch()

    def kill(self) -> None:
        """All of it at once, as when the power goes."""
        links.detach(self.address)
        cgroups.remove(self.address.cgroup)
        for name in _LOST_WITH_POWER:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        (self.folder / "images").unlink(missing_ok=True)

    def load(self, image: Image) -> None:
        """Give the node an image; it is not asked twice for the same one."""
        loaded = self.folder / "images"
        mark = f"{image.reference} {image.key}\n"
        if loaded.exists() and mark in loaded.read_text():
            return
        self._await_containerd()
        inside = f"/images/{image.archive.relative_to(CACHE)}"
        done = self.run("ctr", "-n", "k8s.io", "images", "import", inside, seconds=_IMPORT_SECONDS_MAX)
        assert done.returncode == 0, f"{image.reference} could not be loaded on {self.name}: {done.stderr[-2000:]}"
        self._forget_replaced()
        with loaded.open("a") as marks:
            marks.write(mark)

    def run(self, *command: str, input: str = "", seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run something inside the node, as its root."""
        enter = ["nsenter", f"--target={self._process_1()}", "--mount", "--pid", "--net", "--uts", "--root", "--wd"]
        return subprocess.run(
            [*enter, *command],
            input=input,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin:/k8s/bin"},
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )

    def signal(self, program: str, which: signal.Signals) -> None:
        """Send a signal to one of the node's programs, by its name (kube-apiserver, kubelet, …)."""
        done = self.run("pkill", f"-{which.value}", "-x", program[:15])  # as long as the kernel remembers a name
        assert done.returncode == 0, f"no {program} runs on {self.name}"

    def _process_1(self) -> int:
        """The node's first process as the host numbers it: the one whose own number in the node is 1."""
        pids = subprocess.run(
            ["ip", "netns", "pids", self.address.netns], capture_output=True, text=True, check=True, timeout=60
        )
        for pid in pids.stdout.split():
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
            if len(numbers) == 2 and numbers[1] == "1":
                return int(pid)
        raise AssertionError(f"{self.name} does not run; see {self.folder}/logs/node.log")

    def _forget_replaced(self) -> None:
        """Images that lost their name to a newer one are still known by their number, and keep their gigabytes."""
        listed = self.run("ctr", "-n", "k8s.io", "images", "ls").stdout.splitlines()[1:]
        digests = {line.split()[0]: line.split()[2] for line in listed}
        named = {digest for name, digest in digests.items() if not name.startswith("sha256:")}
        if nameless := [name for name, digest in digests.items() if digest not in named]:
            self.run("ctr", "-n", "k8s.io", "images", "rm", *nameless)

    def _await_containerd(self) -> None:
        deadline = time.monotonic() + _START_SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                if self.run("ctr", "version").returncode == 0:
                    return
            except AssertionError:  # the node is only just beginning
                pass
            time.sleep(0.2)
        raise AssertionError(f"containerd does not answer on {self.name}; see {self.folder}/logs")

    def _lay_out(self) -> None:
        for name in (*_LOST_WITH_POWER, "etc", "etcd", "logs", "volumes"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "changes").chmod(0o755)
        (self.folder / "etc" / "images-are-there").unlink(missing_ok=True)
        values = {
            "NODE_NAME": self.name,
            "NODE_ADDRESS": str(self.address.address),
            "POD_NETWORK": str(self.address.pods),
            "PODS": str(self.slot.pods),
            "SERVICES": str(self.slot.services),
            "DNS": str(self.slot.dns),
            "CGROUP": self.address.cgroup,
            "CONTROL_PLANE": "1" if self.number == 1 else "0",
        }
        for name in ("containerd.toml", "kubelet.yaml", "pod-network.conflist"):
            text = string.Template((_FILES / name).read_text()).substitute(values)
            (self.folder / "etc" / name).write_text(text)
        shutil.copy(_FILES / "start.sh", self.folder / "etc" / "start.sh")
        settings = "".join(f"{name}={value}\n" for name, value in values.items())
        (self.folder / "etc" / "settings").write_text(settings)


def system_images() -> list[Image]:
    """What every node has, whatever runs on it."""
    return [images.pause(), images.coredns()]
