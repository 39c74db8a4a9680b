"""What the path of a request is about, read once: whoever is asked for rights and whoever acts have the same of it."""

import re
from dataclasses import dataclass
from typing import Final, Self

from partitionedqueue.model.entity_name import is_entity_name, object_name
from partitionedqueue_gateway.entities.addresses import Node, SubQueue, parse_path
from partitionedqueue_gateway.entities.queue import QueueName

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # RFC 1123, as Kubernetes has it

_INSIDE: Final = frozenset({"messages", "subscriptions"})
"""Parts of a path that stand for what is inside an entity: requests for a queue with such a part would not reach it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """`path` is what rights are asked for; `title` the queue's name as it was written."""

    path: str
    name: QueueName
    title: str
    may_be_queue: bool

    @classmethod
    def of(cls, path: str, default_namespace: str) -> Self:
        """Of a path that has been decoded once."""
        (namespace, name, sub_queue), node = parse_path(path)
        parts = [part for part in path.split("/") if part]
        several = name.split("/") if "/" in name else []
        itself = node is Node.ENTITY and sub_queue is SubQueue.NONE and not (several and not namespace)
        return cls(
            path="/".join(part for part in (namespace, name, sub_queue.value, node.value) if part),
            name=QueueName(namespace or default_namespace, object_name(name)),
            title="/".join(parts[1:] if namespace else parts),
            may_be_queue=(
                itself
                and is_entity_name(name)
                and not _INSIDE.intersection(several)
                and bool(_NAMESPACE.fullmatch(namespace or default_namespace))
            ),
        )
