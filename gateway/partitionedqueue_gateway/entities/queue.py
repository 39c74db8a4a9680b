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
    is, in its words.
    """

    spec: QueueSpec
    uid: str
    brokers: tuple[BrokerAddress, ...]
    held_back: str | None = None

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
