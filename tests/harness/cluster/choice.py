"""Which cluster it is to be: the one that KUBECONFIG names, else kind's where Docker runs, else one of our own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import yaml

from harness.cluster import keeper, kind, own
from harness.cluster.cluster import Cluster
from harness.cluster.machine import NoClusterHere

NODES: Final = 2  # so that one can be lost
KEPT_KIND: Final = "partitionedqueue"


def given() -> Cluster | None:
    """What KUBECONFIG names: used as it is and never taken down. Raises NoClusterHere if there is no such file."""
    named = os.environ.get("KUBECONFIG")
    if not named:
        return None
    path = Path(named)
    if not path.is_file():
        raise NoClusterHere(f"KUBECONFIG is {named}, which is not a file. Unset it to have a cluster made")
    context = str((yaml.safe_load(path.read_text()) or {}).get("current-context", ""))
    return own.by_kubeconfig(path) or _of_kind(path, context) or Cluster(path)


def _of_kind(path: Path, context: str) -> Cluster | None:
    there = (
        kind.existing(context.removeprefix(kind.CONTEXT_PREFIX)) if context.startswith(kind.CONTEXT_PREFIX) else None
    )
    return kind.KindCluster(path, there.name) if there else None


def keep(nodes: int = NODES) -> Cluster:
    """A cluster to play with, which outlives this process; the same one when asked again."""
    if there := given():
        return there
    if kind.is_possible():
        return kind.create(KEPT_KIND, nodes)
    return own.kept() or own.create(nodes, outlives=True)[0]


def kept() -> own.OwnCluster | kind.KindCluster | None:
    """What `keep` made, if it is there."""
    return kind.existing(KEPT_KIND) or own.kept()


def drop() -> bool:
    """Remove what `keep` made; False if there is nothing."""
    match kept():
        case kind.KindCluster() as there:
            there.delete()
        case own.OwnCluster() as there:
            keeper.end(there.slot)
        case None:
            return False
    return True


@contextmanager
def for_tests(nodes: int = NODES) -> Iterator[Cluster]:
    """The given cluster; otherwise a new one, of nobody else's, which is gone when this ends or this process does."""
    if there := given():
        yield there
    elif kind.is_possible():
        made = kind.create(f"{KEPT_KIND}-{os.getpid()}", nodes)
        try:
            yield made
        finally:
            made.delete()
    else:
        cluster, kept = own.create(nodes, outlives=False)
        try:
            yield cluster
        finally:
            kept.end()
