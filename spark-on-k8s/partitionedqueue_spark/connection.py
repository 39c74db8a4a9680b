"""Options that reading and writing have in common: which queue, where its brokers are, how to get in.

Parsed once at the door. Names are case-insensitive, as everywhere in Spark.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.placement import BrokerAddress

WHERE: Final = ("namespace", "brokers", "dataDir")
CONNECTION: Final = ("queue", *WHERE, "brokerTimeout", "username", "password")
PASSWORD_VARIABLE: Final = "PQ_BROKER_PASSWORD"  # noqa: S105 -- its name; so that no password stands on a command line
CLUSTER_USER: Final = "spark"  # whose password the operator keeps in each queue's Secret
BROKER_TIMEOUT_MS_MAX: Final = 3_600_000
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "": 1_000, "m": 60_000, "h": 3_600_000}
_NAMESPACE: Final = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # RFC 1123, as Kubernetes
_TRUTH: Final = {"true": True, "false": False}


class InvalidOption(PartitionedQueueError):
    """An option that does not exist, is missing, or has a value that cannot be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How a queue's brokers are reached; valid."""

    queue: str
    brokers: tuple[BrokerAddress, ...]  # in partition order; none yet where a namespace is given
    namespace: str | None = None
    broker_timeout_ms: int = 30_000  # a pod that was killed is back within it
    username: str | None = None
    password: str | None = field(default=None, repr=False)


def connection_of(given: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The fields of a Connection, from options as `by_name` gives them; the password may be in the environment.

    Raises InvalidOption, with the option's name in it.
    """
    queue = given.get("queue", "").strip()
    if not queue:
        raise InvalidOption("option 'queue' is missing: the name of the queue")
    return {
        "queue": queue,
        "brokers": _brokers(queue, given),
        "namespace": given.get("namespace"),
        "broker_timeout_ms": time_ms("brokerTimeout", given.get("brokerTimeout", "30s"), 0, BROKER_TIMEOUT_MS_MAX),
        "username": given.get("username", CLUSTER_USER if "namespace" in given else None),
        "password": given.get("password", environment.get(PASSWORD_VARIABLE)),
    }


def by_name(options: Mapping[str, str], known: Sequence[str]) -> dict[str, str]:
    """Spark's options under the names as they are documented. Raises InvalidOption for one that is not `known`."""
    names = {name.lower(): name for name in known}
    given: dict[str, str] = {}
    for name, value in options.items():
        if name.lower() not in names:
            raise InvalidOption(f"unknown option '{name}'; the options are {', '.join(known)}")
        given[names[name.lower()]] = value
    return given


def whole(name: str, text: str, lowest: int, highest: int) -> int:
    """An option that is a whole number. Raises InvalidOption."""
    value = text.strip()
    if not value.isascii() or not value.isdigit() or not lowest <= int(value) <= highest:
        raise InvalidOption(f"option '{name}' is '{text}'; it must be a whole number from {lowest} to {highest}")
    return int(value)


def truth(name: str, text: str) -> bool:
    """An option that is true or false. Raises InvalidOption."""
    if text.strip().lower() not in _TRUTH:
        raise InvalidOption(f"option '{name}' is '{text}'; it must be true or false")
    return _TRUTH[text.strip().lower()]


def time_ms(name: str, text: str, lowest: int, highest: int) -> int:
    """An option that is a time, in ms. Raises InvalidOption."""
    found = re.fullmatch(r"([0-9]{1,9})\s*(ms|s|m|h|)", text.strip().lower())
    value = int(found[1]) * _UNITS_MS[found[2]] if found else -1
    if not lowest <= value <= highest:
        bounds = f"from {lowest // 1000}s to {highest // 3_600_000}h"
        raise InvalidOption(f"option '{name}' is '{text}'; it must be seconds, or like 60s or 5m, {bounds}")
    return value


def one_of(name: str, text: str, choices: Sequence[str]) -> str:
    """An option that is one of some words, as that word is documented. Raises InvalidOption."""
    for choice in choices:
        if text.strip().lower() == choice.lower():
            return choice
    raise InvalidOption(f"option '{name}' is '{text}'; it must be one of {', '.join(choices)}")


def _brokers(queue: str, given: Mapping[str, str]) -> tuple[BrokerAddress, ...]:
    where = [name for name in WHERE if name in given]
    if len(where) != 1:
        raise InvalidOption(
            f"give {'only ' if where else ''}one of the options 'namespace' (the cluster's that the queue is in), "
            "'brokers' (host:port,host:port in partition order) and 'dataDir' (an embedded namespace's folder)"
        )
    if "namespace" in given:
        if not _NAMESPACE.fullmatch(given["namespace"]):
            raise InvalidOption(f"option 'namespace' is '{given['namespace']}', which no namespace can be called")
        return ()
    if "dataDir" in given:
        return _brokers_of_folder(queue, Path(given["dataDir"]))
    try:
        return tuple(BrokerAddress.parse(part) for part in given["brokers"].split(","))
    except PartitionedQueueError as error:
        raise InvalidOption(f"option 'brokers': {error}") from error


def _brokers_of_folder(queue: str, folder: Path) -> tuple[BrokerAddress, ...]:
    """The brokers of an embedded namespace, from the record that `pq up` keeps: `namespace.json`."""
    try:
        queues = json.loads((folder / "namespace.json").read_text(encoding="utf-8"))["queues"]
        record = queues.get(queue)
        ports = [int(broker["port"]) for broker in record["brokers"]] if record and record["up"] else []
    except OSError as error:
        raise InvalidOption(f"option 'dataDir': {folder} holds no embedded namespace ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidOption(f"option 'dataDir': {folder / 'namespace.json'} cannot be understood") from error
    if not ports or not all(ports):
        raise InvalidOption(f"option 'dataDir': queue {queue} is not running in {folder}")
    return tuple(BrokerAddress("127.0.0.1", port) for port in ports)
