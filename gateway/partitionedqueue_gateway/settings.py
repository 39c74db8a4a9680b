"""What the gateway is told by its environment, parsed once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway import limits

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PORT_MAX = 65_535


class InvalidSetting(PartitionedQueueError):
    """An environment variable says something that cannot be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`folder`: its queues instead of a cluster's. No `namespaces`: all. `bind` None: every address of the machine."""

    bind: str | None = None
    port: int = 8080
    drain_s: float = limits.DRAIN_S_DEFAULT
    namespaces: tuple[str, ...] = ()
    folder: Path | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """From PQ_GATEWAY_BIND, PQ_GATEWAY_PORT, PQ_GATEWAY_DRAIN_SECONDS, PQ_GATEWAY_FOLDER and PQ_WATCH_NAMESPACES.

        What is empty counts as not there. Raises InvalidSetting.
        """
        folder = environment.get("PQ_GATEWAY_FOLDER")
        return cls(
            bind=environment.get("PQ_GATEWAY_BIND") or None,
            port=int(_number(environment, "PQ_GATEWAY_PORT", 8080, _PORT_MAX)),
            drain_s=_number(environment, "PQ_GATEWAY_DRAIN_SECONDS", limits.DRAIN_S_DEFAULT, limits.DRAIN_S_MAX),
            namespaces=_namespaces(environment.get("PQ_WATCH_NAMESPACES", "")),
            folder=Path(folder) if folder else None,
        )


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
