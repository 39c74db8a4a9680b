"""`python -m harness.cluster up | down | load NAME … | status`: what `make cluster` and `make cluster-down` call."""

import argparse
import sys
from pathlib import Path

from harness.cluster import choice, images, own, slots
from harness.cluster.cluster import Cluster, CommandFailed, program
from harness.cluster.machine import NoClusterHere
from harness.cluster.progress import say


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m harness.cluster", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    up = verbs.add_parser("up", help="a cluster to play with; its last line is for your shell")
    up.add_argument("--nodes", type=int, default=choice.NODES)
    verbs.add_parser("down", help="remove it again")
    load = verbs.add_parser("load", help="build the project's images and give them to the cluster")
    load.add_argument("names", nargs="+", choices=sorted(images.DOCKERFILES), metavar="NAME")
    load.add_argument("--version", help="the images' tag; the chart's appVersion if left out")
    verbs.add_parser("status", help="what runs")
    chosen = parser.parse_args(arguments)
    try:
        return {"up": _up, "down": _down, "load": _load, "status": _status}[chosen.verb](chosen)
    except (NoClusterHere, CommandFailed) as error:
        say(str(error))
        return 1


def _up(chosen: argparse.Namespace) -> int:
    cluster = choice.keep(chosen.nodes)
    folders = [str(Path(program(name)).parent) for name in ("kubectl", "helm")]
    sys.stdout.write(f"export PATH={':'.join(dict.fromkeys(folders))}:$PATH\n")
    sys.stdout.write(f"export KUBECONFIG={cluster.kubeconfig}\n")
    return 0


def _down(_: argparse.Namespace) -> int:
    say("it is gone" if choice.drop() else "there is none")
    return 0


def _load(chosen: argparse.Namespace) -> int:
    cluster = _running()
    for reference in cluster.load(*chosen.names, version=chosen.version or images.chart_version()):
        sys.stdout.write(f"{reference}\n")
    return 0


def _status(_: argparse.Namespace) -> int:
    for slot in slots.alive():
        cluster = own.OwnCluster(slots.folder(slot) / "kubeconfig", slot)
        say(f"{slot.name}: {', '.join(node.name for node in cluster.nodes) or 'no nodes'}; {cluster.kubeconfig}")
    sys.stdout.write(_running().kubectl("get", "nodes,pods", "--all-namespaces", "-o", "wide"))
    return 0


def _running() -> Cluster:
    there = choice.given() or choice.kept()
    if there is None:
        raise NoClusterHere("no cluster runs: `make cluster` makes one, or let KUBECONFIG name yours")
    return there


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
