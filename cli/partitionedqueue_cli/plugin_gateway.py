"""A gateway of the cluster, asked through the API server's proxy for Services: nothing else need be in reach."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from partitionedqueue_cli.plugin_api import ClusterApi, ClusterRefused, ClusterUnreachable
from partitionedqueue_cli.plugin_queues import Json

_SERVICES: Final = "app.kubernetes.io/name=partitionedqueue,app.kubernetes.io/component=gateway"
_PORT: Final = "http"
_GATEWAYS_MAX: Final = "20"
"""Installations in one cluster that are looked through."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a gateway says of a queue; or, in words, why none says anything."""

    queue: Json | None
    words: str


def ask(api: ClusterApi, namespace: str, name: str, service: tuple[str, str] | None) -> Answer:
    """The first gateway that knows the queue, or the one that was named."""
    words = "no Service of a gateway is found; say which it is with --gateway"
    try:
        for where, which in [service] if service is not None else _services(api):
            try:
                path = f"/api/v1/namespaces/{where}/services/{which}:{_PORT}/proxy"
                return Answer(
                    api.get(f"{path}/api/v1/namespaces/{namespace}/queues/{name}"), f"gateway {where}/{which}"
                )
            except (ClusterRefused, ClusterUnreachable) as error:
                words = f"gateway {where}/{which} could not be asked: {error}"
    except (ClusterRefused, ClusterUnreachable) as error:
        words = f"the Services of gateways cannot be listed: {error}; say which it is with --gateway"
    return Answer(None, words)


def _services(api: ClusterApi) -> Iterator[tuple[str, str]]:
    found = api.get("/api/v1/services", {"labelSelector": _SERVICES, "limit": _GATEWAYS_MAX})
    for service in found["items"]:
        if any(port.get("name") == _PORT for port in service["spec"].get("ports", ())):
            yield service["metadata"]["namespace"], service["metadata"]["name"]
