"""What the gateway is told by its environment, parsed once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.front_door.sockets import Entrance

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PORT_MAX = 65_535
WORKER = "PQ_GATEWAY_WORKER"
"""Set by the gateway itself for the processes that it starts: they share ports, and end when their input does."""


class InvalidSetting(PartitionedQueueError):
    """An environment variable says something that cannot be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`folder`: its queues instead of a cluster's, and `requests`: where changes to them are asked for, if anywhere.
    No `namespaces`: all. `bind` None: every address of the machine.

    A port None: not opened; 0: a free one. `worker`: one of several processes that another has started.
    """

    bind: str | None = None
    port: int | None = 8080
    amqp_port: int | None = 5672
    amqps_port: int | None = 5671
    https_port: int | None = 8443
    tls: Path | None = None
    policies: Path | None = None
    anonymous: bool = False
    default_namespace: str = "default"
    drain_s: float = limits.DRAIN_S_DEFAULT
    processes: int = 1
    worker: bool = False
    namespaces: tuple[str, ...] = ()
    folder: Path | None = None
    requests: Path | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """From PQ_WATCH_NAMESPACES and the variables PQ_GATEWAY_*, which docs/internals/gateway.md lists.

        What is empty counts as not there. Raises InvalidSetting.
        """
        namespace = environment.get("PQ_GATEWAY_DEFAULT_NAMESPACE") or "default"
        if not _NAMESPACE.fullmatch(namespace):
            raise InvalidSetting(f"PQ_GATEWAY_DEFAULT_NAMESPACE is {namespace!r}, which is no namespace")
        return cls(
            bind=environment.get("PQ_GATEWAY_BIND") or None,
            port=_port(environment, "PQ_GATEWAY_PORT", 8080),
            amqp_port=_port(environment, "PQ_GATEWAY_AMQP_PORT", 5672),
            amqps_port=_port(environment, "PQ_GATEWAY_AMQPS_PORT", 5671),
            https_port=_port(environment, "PQ_GATEWAY_HTTPS_PORT", 8443),
            tls=_path(environment, "PQ_GATEWAY_TLS"),
            policies=_path(environment, "PQ_GATEWAY_POLICIES"),
            anonymous=_yes(environment, "PQ_GATEWAY_ANONYMOUS"),
            default_namespace=namespace,
            drain_s=_number(environment, "PQ_GATEWAY_DRAIN_SECONDS", limits.DRAIN_S_DEFAULT, limits.DRAIN_S_TOLD_MAX),
            processes=_whole(environment, "PQ_GATEWAY_PROCESSES", 1, limits.PROCESSES_MAX),
            worker=_yes(environment, WORKER),
            namespaces=_namespaces(environment.get("PQ_WATCH_NAMESPACES", "")),
            folder=_path(environment, "PQ_GATEWAY_FOLDER"),
            requests=_path(environment, "PQ_GATEWAY_REQUESTS"),
        )

    @property
    def entrances(self) -> list[Entrance]:
        """The ports to open. Those for TLS alone need a certificate."""
        plain = [("HTTP", "PQ_GATEWAY_PORT", self.port), ("AMQP", "PQ_GATEWAY_AMQP_PORT", self.amqp_port)]
        tls = [
            ("AMQP over TLS", "PQ_GATEWAY_AMQPS_PORT", self.amqps_port),
            ("HTTPS", "PQ_GATEWAY_HTTPS_PORT", self.https_port),
        ]
        return [
            Entrance(name=name, variable=variable, port=port, tls_only=each is tls, operations=name == "HTTP")
            for each in ((plain, tls) if self.tls is not None else (plain,))
            for name, variable, port in each
            if port is not None
        ]


def _path(environment: Mapping[str, str], name: str) -> Path | None:
    words = environment.get(name)
    return Path(words) if words else None


def _yes(environment: Mapping[str, str], name: str) -> bool:
    words = environment.get(name) or "false"
    if words not in {"true", "false"}:
        raise InvalidSetting(f"{name} is {words!r}; write true or false")
    return words == "true"


def _port(environment: Mapping[str, str], name: str, otherwise: int) -> int | None:
    if environment.get(name) == "off":
        return None
    return _whole(environment, name, otherwise, _PORT_MAX, least=0, or_else=", or off")


def _whole(
    environment: Mapping[str, str], name: str, otherwise: int, most: int, *, least: int = 1, or_else: str = ""
) -> int:
    words = environment.get(name) or str(otherwise)
    if not re.fullmatch(r"[0-9]{1,6}", words) or not least <= int(words) <= most:
        raise InvalidSetting(f"{name} is {words!r}; write a whole number from {least} to {most}{or_else}")
    return int(words)


def _number(environment: Mapping[str, str], name: str, otherwise: float, most: float) -> float:
    words = environment.get(name) or str(otherwise)
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", words) or float(words) > most:
        raise InvalidSetting(f"{name} is {words!r}; write a number from 0 to {most:g}")
    return float(words)


def _namespaces(words: str) -> tuple[str, ...]:
    names = [name.strip() for name in words.split(",") if name.strip()]
    for name in names:
        if not _NAMESPACE.fullmatch(name):
            raise InvalidSetting(
                f"PQ_WATCH_NAMESPACES has {name!r}, which is no namespace; write names with commas between"
            )
    return tuple(dict.fromkeys(names))
