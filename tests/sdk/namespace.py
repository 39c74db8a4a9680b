"""The embedded namespace that the SDKs are tried on: `pq up`, its queues, and the ways in."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from harness.pq_command import Pq, manifest, write
from harness.sas_tokens import sas_token
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model.placement import BrokerAddress
from sdk.operations import SDKS

_PLAIN: Final[dict[str, Any]] = {"maxDeliveryCount": 3, "deadLetteringOnMessageExpiration": True}
# What each language has for itself, so that all can be at work at once. The operations know how long their locks are.
_QUEUES: Final[Mapping[str, dict[str, Any]]] = {
    "queue": _PLAIN,
    "brief": {"lockDuration": "PT5S", "requiresDuplicateDetection": True},
    "sessions": {"lockDuration": "PT10S", "requiresSession": True},
}
SCENARIOS: Final[Mapping[str, dict[str, Any]]] = {
    "scenario": _PLAIN,
    "scenario-once": {"requiresDuplicateDetection": True},
    "scenario-sessions": {"requiresSession": True},
    "renewals": {"lockDuration": "PT5S"},
}
WIDE: Final = "wide"
LISTEN_KEY: Final = "bGlzdGVuIG9ubHksIGZvciB0aGUgdGVzdHMgb2YgU0RLcw=="
LISTEN_POLICY: Final = "ListenOnly"
_WRONG_KEY: Final = "bm90IHRoZSBrZXkgb2YgYW55IHBvbGljeSB0aGF0IGlzIGhlcmU="


def _manifests() -> Iterator[dict[str, Any]]:
    for sdk in SDKS:
        for kind in ("conventional", "partitioned"):
            for role, spec in _QUEUES.items():
                yield manifest(f"{sdk}-{kind}-{role}", partitioned=kind == "partitioned", **spec)
    for name, spec in SCENARIOS.items():
        yield manifest(name, **spec)
    yield manifest(WIDE, size_gb=5, **_PLAIN)


class SdkNamespace:
    """It is up as long as the tests of a run need it."""

    def __init__(self, pq: Pq, connection: str) -> None:
        self.pq = pq
        self.connection = connection
        self._parts = dict(part.split("=", 1) for part in connection.split(";") if part)

    def place(self, sdk: str, kind: str) -> dict[str, object]:
        """What an operation is told."""
        queues = dict.fromkeys(_QUEUES, WIDE) if kind == WIDE else {role: f"{sdk}-{kind}-{role}" for role in _QUEUES}
        return {
            "connection": self.connection,
            "connection_wrong_key": self._connection(SharedAccessKey=_WRONG_KEY),
            "connection_expired": self._connection(
                SharedAccessKeyName=None, SharedAccessKey=None, SharedAccessSignature=self._expired_token()
            ),
            "connection_listen": self._connection(SharedAccessKeyName=LISTEN_POLICY, SharedAccessKey=LISTEN_KEY),
            "missing": "there-is-no-such-queue",
            **queues,
        }

    def addresses(self, queue: str) -> list[BrokerAddress]:
        brokers = self.pq.record()["queues"][queue]["brokers"]
        return [BrokerAddress("127.0.0.1", int(broker["port"])) for broker in brokers]

    def _connection(self, **changes: str | None) -> str:
        parts = {**self._parts, **changes}
        return ";".join(f"{name}={value}" for name, value in parts.items() if value is not None)

    def _expired_token(self) -> str:
        resource, key = self._parts["Endpoint"], self._parts["SharedAccessKey"]
        return sas_token(resource, name=self._parts["SharedAccessKeyName"], key=key, expires_s=time.time() - 60)


class Sweeper:
    """Empties the queues that a lane of operations has for itself, so that none finds what another has left."""

    def __init__(self, namespace: SdkNamespace, queues: list[str]) -> None:
        self._brokers = [
            (QueueKeys(queue), BlockingBroker(address)) for queue in queues for address in namespace.addresses(queue)
        ]

    def empty(self) -> None:
        for keys, broker in self._brokers:
            for entity in (keys, keys.dead_letters):
                broker.call(calls.purge(entity))

    def close(self) -> None:
        for _, broker in self._brokers:
            broker.close()


@contextmanager
def running(folder: Path) -> Iterator[SdkNamespace]:
    """Up for a `with` block."""
    pq = Pq(folder)
    policies = pq.data / "_gateway" / "policies"
    policies.mkdir(parents=True)
    listen = {"name": LISTEN_POLICY, "primaryKey": LISTEN_KEY, "rights": ["Listen"]}
    (policies / "listen.yaml").write_text(yaml.safe_dump(listen))
    try:
        pq.up(write(folder / "queues.yaml", *_manifests()), seconds=120)
        yield SdkNamespace(pq, pq.done("connection-string").strip())
    finally:
        pq.end()
