"""A Kubernetes cluster as tests see it, whoever made it."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.cluster import binaries, images, machine

COMMAND_SECONDS: Final = 120.0
_FORWARD_SECONDS: Final = 20.0


class CommandFailed(Exception):
    """kubectl or helm refused; the words are its own."""


@dataclass(frozen=True)
class Cluster:
    """One that somebody else looks after, given by its kubeconfig; the others can do more."""

    kubeconfig: Path

    @property
    def environment(self) -> dict[str, str]:
        """For a process outside the cluster that is to speak to it: this process's, with KUBECONFIG."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}

    @property
    def reaches_pods(self) -> bool:
        """Whether a process on this machine can dial the addresses of pods and services."""
        return False

    def kubectl(self, *arguments: str, input: str | None = None, seconds: float = COMMAND_SECONDS) -> str:
        """What kubectl prints. Raises CommandFailed with what it complains of."""
        return self._run([program("kubectl"), *arguments], input, seconds)

    def helm(self, *arguments: str, input: str | None = None, seconds: float = 300.0) -> str:
        """What helm prints. Raises CommandFailed with what it complains of."""
        return self._run([program("helm"), *arguments], input, seconds)

    def load(self, *names: str, version: str) -> list[str]:
        """Build these images of the project (images.DOCKERFILES), give them to every node; how pods name them."""
        wanted = ", ".join(images.reference(name, version) for name in names)
        raise machine.NoClusterHere(
            f"{self.kubeconfig} is a cluster of yours: its images come from a registry, and {wanted} "
            "cannot be put there. Unset KUBECONFIG to have a cluster made"
        )

    @contextmanager
    def forwarded(self, target: str, port: int, namespace: str) -> Iterator[int]:
        """A port of 127.0.0.1 that leads to `port` of a `pod/x` or `service/x`, on any kind of cluster."""
        command = [program("kubectl"), "-n", namespace, "port-forward", "--address=127.0.0.1", target, f":{port}"]
        process = subprocess.Popen(
            command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            assert process.stdout
            said = process.stdout.readline().decode()
            found = re.search(r"127\.0\.0\.1:(\d+) ->", said)
            if not found:
                raise CommandFailed(f"{' '.join(command)}: {said.strip()}")
            yield int(found[1])
        finally:
            process.terminate()
            process.communicate(timeout=_FORWARD_SECONDS)

    def _run(self, command: list[str], given: str | None, seconds: float) -> str:
        # An empty stdin rather than ours: no command may wait for somebody to type.
        done = subprocess.run(
            command,
            input=given or "",
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
        if done.returncode:
            shown = " ".join([Path(command[0]).name, *command[1:]])
            raise CommandFailed(f"{shown}\n{done.stderr.strip() or done.stdout.strip()}")
        return done.stdout


def program(name: str) -> str:
    """kubectl or helm: the ones that were built with the cluster; else, where none is built, the machine's own."""
    module = {"kubectl": binaries.KUBERNETES, "helm": binaries.HELM}[name]
    if not binaries.are_built(module) and (installed := shutil.which(name)):
        return installed
    return str(binaries.programs(module) / name)
