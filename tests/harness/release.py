"""The project as its chart installs it: one release for a whole run, in a namespace of its own."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from harness.cluster import images
from harness.cluster.cluster import Cluster, CommandFailed

CHART: Final = Path(__file__).parents[2] / "charts" / "partitionedqueue"
NAME: Final = "pq"
NAMESPACE: Final = "pq-system"
INSTALL_SECONDS: Final = 240.0


@dataclass(frozen=True)
class Release:
    """What helm has installed, or will."""

    cluster: Cluster
    name: str = NAME
    namespace: str = NAMESPACE

    def install(self, *more: str) -> None:
        """Install it, or bring it to these values (`--set`, `--values`), and wait until its pods are ready."""
        _load_images(self.cluster)
        wait = ["--reset-values", "--wait", f"--timeout={INSTALL_SECONDS:.0f}s"]  # else helm keeps what was set before
        try:
            self.helm("upgrade", self.name, str(CHART), "--install", "--create-namespace", *wait, *more)
        except CommandFailed as error:
            raise CommandFailed(f"{error}\n{self.sick_pods()}") from error

    def uninstall(self) -> None:
        """What stays afterwards is the chart's promise."""
        self.helm("uninstall", self.name, "--wait", "--timeout=120s")

    def is_installed(self) -> bool:
        return self.name in [one["name"] for one in json.loads(self.helm("list", "--output=json"))]

    def helm(self, *arguments: str) -> str:
        return self.cluster.helm(*arguments, "--namespace", self.namespace, seconds=INSTALL_SECONDS + 60)

    def pods(self, component: str) -> list[dict[str, Any]]:
        selector = f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component={component}"
        found = self.cluster.kubectl("get", "pods", "-n", self.namespace, "-l", selector, "-o", "json")
        pods: list[dict[str, Any]] = json.loads(found)["items"]
        return pods

    def sick_pods(self) -> str:
        """What a person would look at next."""
        shown = self.cluster.kubectl("get", "pods", "-n", self.namespace, "-o", "wide")
        for component in ("operator", "gateway"):
            selector = f"app.kubernetes.io/component={component}"
            shown += f"\n{component}:\n"
            shown += self.cluster.kubectl("logs", "-n", self.namespace, "-l", selector, "--tail=25", "--prefix")
        return shown


@cache
def _load_images(cluster: Cluster) -> None:
    """Once a run: what is installed later in it is of the same source."""
    cluster.load("broker", "operator", "gateway", version=images.chart_version())
