"""What every object of a queue is made from."""

from dataclasses import dataclass
from typing import Any

from partitionedqueue.model import placement
from partitionedqueue.model.queue_spec import API_VERSION, KIND, QueueSpec
from partitionedqueue_operator.observed import COMPONENT, MANAGED_BY, OPERATOR, Queue
from partitionedqueue_operator.settings import Settings

NAME_LABEL = "app.kubernetes.io/name"
INSTANCE_LABEL = "app.kubernetes.io/instance"


@dataclass(frozen=True, slots=True)
class Subject:
    """A queue, its spec looked into, and how this operator works."""

    queue: Queue
    spec: QueueSpec
    settings: Settings

    @property
    def name(self) -> str:
        """What all objects are called."""
        return placement.broker_name(self.spec.name)

    @property
    def selector(self) -> dict[str, str]:
        """The labels by which the broker pods are found; for ever, as a StatefulSet's selector cannot change."""
        return {COMPONENT: "broker", placement.QUEUE_LABEL: self.spec.name}

    @property
    def labels(self) -> dict[str, str]:
        """The labels of every object."""
        return {
            NAME_LABEL: "partitionedqueue",
            INSTANCE_LABEL: self.spec.name,
            MANAGED_BY: OPERATOR,
            **self.selector,
        }

    @property
    def owner_reference(self) -> dict[str, Any]:
        """With it Kubernetes itself removes the object once the queue is gone, whether an operator is there or not."""
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": self.spec.name,
            "uid": self.queue.uid,
            "controller": True,
            "blockOwnerDeletion": False,
        }

    def metadata(self, *, owned: bool = True, annotations: dict[str, str] | None = None) -> dict[str, Any]:
        """The metadata of an object."""
        made: dict[str, Any] = {"name": self.name, "namespace": self.spec.namespace, "labels": self.labels}
        if annotations:
            made["annotations"] = annotations
        if owned:
            made["ownerReferences"] = [self.owner_reference]
        return made
