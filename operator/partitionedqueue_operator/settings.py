"""What the operator is told by its environment, read once at the door."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from partitionedqueue.model import limits

_TRUE: Final = {"true": True, "false": False}


class InvalidSetting(ValueError):
    """The environment says something that cannot be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How this operator works. Times in seconds."""

    broker_image: str
    broker_image_pull_policy: str = "IfNotPresent"
    namespace: str = "partitionedqueue"
    pod: str = "partitionedqueue-operator"
    release: str = "partitionedqueue"
    network_policies: bool = True
    watch_namespaces: tuple[str, ...] = ()
    port: int = 8081
    log_level: str = "info"
    entities_max: int = limits.PARTITIONED_ENTITIES_MAX

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Read PQ_* variables. Raises InvalidSetting, in one sentence that says what to do."""
        image = environment.get("PQ_BROKER_IMAGE", "")
        if not image:
            raise InvalidSetting("PQ_BROKER_IMAGE is not set; it names the image of the broker pods")
        given: dict[str, Any] = {
            "broker_image_pull_policy": environment.get("PQ_BROKER_IMAGE_PULL_POLICY"),
            "namespace": environment.get("PQ_OPERATOR_NAMESPACE"),
            "pod": environment.get("PQ_OPERATOR_POD"),
            "release": environment.get("PQ_RELEASE"),
            "network_policies": _flag(environment, "PQ_NETWORK_POLICIES"),
            "watch_namespaces": tuple(
                name.strip() for name in environment.get("PQ_WATCH_NAMESPACES", "").split(",") if name.strip()
            ),
            "port": _whole(environment, "PQ_OPERATOR_PORT", most=65_535),
            "log_level": _level(environment),
            "entities_max": _whole(environment, "PQ_ENTITIES_MAX", most=limits.PARTITIONED_ENTITIES_MAX),
        }
        return cls(broker_image=image, **{name: value for name, value in given.items() if value not in (None, "")})


def _flag(environment: Mapping[str, str], name: str) -> bool | None:
    text = environment.get(name, "").lower()
    if text and text not in _TRUE:
        raise InvalidSetting(f"{name} is {text!r}; write true or false")
    return _TRUE.get(text)


def _whole(environment: Mapping[str, str], name: str, *, most: int) -> int | None:
    text = environment.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and int(text) <= most):
        raise InvalidSetting(f"{name} is {text!r}; write a whole number up to {most}")
    return int(text)


def _level(environment: Mapping[str, str]) -> str:
    level = environment.get("PQ_LOG_LEVEL", "info").lower()
    if level not in ("debug", "info", "warning", "error"):
        raise InvalidSetting(f"PQ_LOG_LEVEL is {level!r}; it is one of debug, info, warning, error")
    return level
