"""`kubectl pq status`: how queues stand, as the operator has written it."""

import argparse
import json
from typing import Final

from partitionedqueue_cli import plugin_queues
from partitionedqueue_cli.plugin_api import ClusterApi
from partitionedqueue_cli.plugin_queues import Json
from partitionedqueue_cli.tables import print_table

_HEADINGS: Final = (
    *("QUEUE", "PARTITIONS", "AVAILABILITY", "ACTIVE", "DEAD-LETTERS", "SCHEDULED", "DEFERRED"),
    *("MESSAGES", "BYTES", "MAX-MB", "AGE"),
)


def status(api: ClusterApi, namespace: str | None, arguments: argparse.Namespace) -> int:
    """Print a table and what is wrong; 0 where every queue is Available, 1 otherwise. No namespace: all of them."""
    if arguments.name is not None:
        queues = [plugin_queues.one(api, str(namespace), arguments.name)]
    else:
        queues = plugin_queues.every(api, namespace)
    if arguments.json:
        print(json.dumps([_as_json(queue) for queue in queues], indent=1))
    elif not queues:
        print(f"No queues in namespace {namespace}" if namespace is not None else "No queues")
    else:
        _print(queues, with_namespace=namespace is None)
    return 0 if all(queue.get("status", {}).get("availability") == "Available" for queue in queues) else 1


def _print(queues: list[Json], *, with_namespace: bool) -> None:
    first = ("NAMESPACE",) if with_namespace else ()
    print_table(
        [(*first, *_HEADINGS)]
        + [((queue["metadata"]["namespace"],) if with_namespace else ()) + _row(queue) for queue in queues]
    )
    for queue in queues:
        name = queue["metadata"]["name"]
        if with_namespace:
            name = f"{queue['metadata']['namespace']}/{name}"
        for number, sick in sorted(plugin_queues.sick_partitions(queue).items()):
            print(f"{name}: partition {number} ({sick.get('pod')}) does not serve: {words_of(sick)}")
        for words in plugin_queues.troubles(queue):
            print(f"{name}: {words}")


def _row(queue: Json) -> tuple[str, ...]:
    status = queue.get("status", {})
    counts = status.get("counts", {})
    figures = (
        *(status.get(name) for name in ("readyPartitions", "availability")),
        *(counts.get(name) for name in ("active", "deadLetter", "scheduled", "deferred")),
        *(status.get(name) for name in ("messages", "sizeInBytes", "maxSizeInMegabytes")),
    )
    shown = ("-" if figure is None else str(figure) for figure in figures)
    return (queue["metadata"]["name"], *shown, plugin_queues.age(queue))


def words_of(sick: Json) -> str:
    """Why a partition does not serve: the word for programs, then the words for people."""
    return ": ".join(str(sick[name]) for name in ("reason", "message") if sick.get(name)) or "no reason was given"


def _as_json(queue: Json) -> Json:
    metadata = queue["metadata"]
    return {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "generation": metadata["generation"],
        "createdAt": metadata["creationTimestamp"],
        **queue.get("status", {}),
        "troubles": plugin_queues.troubles(queue),
    }
