"""One queue as the gateway knows it: a value, made by a source and never changed."""

from dataclasses import dataclass
from typing import NamedTuple

from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model.placement import BrokerAddress
from partitionedqueue.model.queue_spec import QueueSpec


class QueueName(NamedTuple):
    """What tells a queue from all others."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue, and where its brokers are, in partition order.

    `uid` differs from that of any earlier queue of the name. `held_back`: why the operator does not act upon it as it
    is, in its words. `title`: its name as its maker wrote it; empty: as it is. When it was made and last changed are in
    ms since 1970, 0 where nobody has written it down. `generation` rises with each change of what it should be.
    """

    spec: QueueSpec
    uid: str
    brokers: tuple[BrokerAddress, ...]
    held_back: str | None = None
    title: str = ""
    created_ms: int = 0
    updated_ms: int = 0
    generation: int = 0

    @property
    def name(self) -> QueueName:
        """Its name among all queues."""
        return QueueName(self.spec.namespace, self.spec.name)

    @property
    def keys(self) -> QueueKeys:
        """What it is called inside its brokers."""
        return QueueKeys(self.spec.name)

    def is_served_as(self, other: "Queue") -> bool:
        """Whether connections to one are good for the other."""
        return self.uid == other.uid and self.brokers == other.brokers
