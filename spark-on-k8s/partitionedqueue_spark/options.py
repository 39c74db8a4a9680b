"""Options of the source, parsed once at the door. Names are case-insensitive, as everywhere in Spark."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.placement import BrokerAddress

KNOWN: Final = (
    "queue", "namespace", "brokers", "dataDir", "maxMessagesPerTrigger", "claimTimeout", "brokerTimeout", "fetchSize",
    "failOnLockLost", "username", "password",
)  # fmt: skip
WHERE: Final = ("namespace", "brokers", "dataDir")
PASSWORD_VARIABLE: Final = "PQ_BROKER_PASSWORD"  # noqa: S105 -- its name; so that no password stands on a command line
CLUSTER_USER: Final = "spark"  # whose password the operator keeps in each queue's Secret
CLAIM_TIMEOUT_MS_DEFAULT: Final = 60_000
CLAIM_TIMEOUT_MS_MIN: Final = 1_000  # it is renewed three times within it, by brokers that may pause for an fsync
CLAIM_TIMEOUT_MS_MAX: Final = 24 * 3_600_000
BROKER_TIMEOUT_MS_MAX: Final = 3_600_000
FETCH_SIZE_DEFAULT: Final = 10_240  # messages: 40 segments; larger Arrow batches were slower, they outgrow the caches
FETCH_SIZE_MIN: Final = 256
FETCH_SIZE_MAX: Final = 102_400
_MESSAGES_MAX: Final = 2**48
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "": 1_000, "m": 60_000, "h": 3_600_000}
_NAMESPACE: Final = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # RFC 1123, as Kubernetes
_TRUTH: Final = {"true": True, "false": False}


class InvalidOption(PartitionedQueueError):
    """An option that does not exist, is missing, or has a value that cannot be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What a reader needs to know; valid."""

    queue: str
    brokers: tuple[BrokerAddress, ...]  # in partition order; none yet where a namespace is given
    namespace: str | None = None
    max_messages_per_trigger: int | None = None
    claim_timeout_ms: int = CLAIM_TIMEOUT_MS_DEFAULT
    broker_timeout_ms: int = 30_000  # a pod that was killed is back within it
    fetch_size: int = FETCH_SIZE_DEFAULT
    fail_on_lock_lost: bool = True
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, options: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> Self:
        """Read Spark's options, and the password from the environment if it is not among them.

        Raises InvalidOption, with the option's name in it.
        """
        names = {name.lower(): name for name in KNOWN}
        given: dict[str, str] = {}
        for name, value in options.items():
            if name.lower() not in names:
                raise InvalidOption(f"unknown option '{name}'; the options are {', '.join(KNOWN)}")
            given[names[name.lower()]] = value
        queue = given.get("queue", "").strip()
        if not queue:
            raise InvalidOption("option 'queue' is missing: the name of the queue to read")
        brokers = _brokers(queue, given)
        most = given.get("maxMessagesPerTrigger")
        return cls(
            queue=queue,
            brokers=brokers,
            namespace=given.get("namespace"),
            max_messages_per_trigger=None if most is None else _whole("maxMessagesPerTrigger", most, 1, _MESSAGES_MAX),
            claim_timeout_ms=_time_ms(
                "claimTimeout", given.get("claimTimeout", "60s"), CLAIM_TIMEOUT_MS_MIN, CLAIM_TIMEOUT_MS_MAX
            ),
            broker_timeout_ms=_time_ms("brokerTimeout", given.get("brokerTimeout", "30s"), 0, BROKER_TIMEOUT_MS_MAX),
            fetch_size=_whole(
                "fetchSize", given.get("fetchSize", str(FETCH_SIZE_DEFAULT)), FETCH_SIZE_MIN, FETCH_SIZE_MAX
            ),
            fail_on_lock_lost=_truth("failOnLockLost", given.get("failOnLockLost", "true")),
            username=given.get("username", CLUSTER_USER if "namespace" in given else None),
            password=given.get("password", environment.get(PASSWORD_VARIABLE)),
        )


def _whole(name: str, text: str, lowest: int, highest: int) -> int:
    value = text.strip()
    if not value.isascii() or not value.isdigit() or not lowest <= int(value) <= highest:
        raise InvalidOption(f"option '{name}' is '{text}'; it must be a whole number from {lowest} to {highest}")
    return int(value)


def _truth(name: str, text: str) -> bool:
    if text.strip().lower() not in _TRUTH:
        raise InvalidOption(f"option '{name}' is '{text}'; it must be true or false")
    return _TRUTH[text.strip().lower()]


def _time_ms(name: str, text: str, lowest: int, highest: int) -> int:
    found = re.fullmatch(r"([0-9]{1,9})\s*(ms|s|m|h|)", text.strip().lower())
    value = int(found[1]) * _UNITS_MS[found[2]] if found else -1
    if not lowest <= value <= highest:
        bounds = f"from {lowest // 1000}s to {highest // 3_600_000}h"
        raise InvalidOption(f"option '{name}' is '{text}'; it must be seconds, or like 60s or 5m, {bounds}")
    return value


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
