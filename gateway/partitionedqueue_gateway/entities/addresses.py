"""What clients call an entity: a path in whatever dress their library gives it."""

from enum import StrEnum
from typing import Final, NamedTuple
from urllib.parse import unquote


class SubQueue(StrEnum):
    """What stands beside a queue, by the path behind its name; NONE is the queue itself."""

    NONE = ""
    DEAD_LETTERS = "$DeadLetterQueue"
    TRANSFER_DEAD_LETTERS = "$Transfer/$DeadLetterQueue"


class Node(StrEnum):
    """What of an entity is meant; CBS is the whole namespace's, and has no entity."""

    ENTITY = ""
    MANAGEMENT = "$management"
    CBS = "$cbs"


class EntityAddress(NamedTuple):
    """A queue or one of its sub-queues. `namespace` is empty where the path names none: the gateway's default.

    A name of several parts, `eu/orders`, stands behind a namespace alone: the first of two parts or more is one.
    """

    namespace: str
    name: str
    sub_queue: SubQueue = SubQueue.NONE

    @property
    def path(self) -> str:
        """As a client would write it."""
        return "/".join(part for part in (self.namespace, self.name, self.sub_queue.value) if part)

    def __str__(self) -> str:
        return self.path


class NodeAddress(NamedTuple):
    """Where a link goes."""

    entity: EntityAddress
    node: Node


_ENDINGS: Final = (
    (("$transfer", "$deadletterqueue"), SubQueue.TRANSFER_DEAD_LETTERS),
    (("$deadletterqueue",), SubQueue.DEAD_LETTERS),
)


def parse(text: str) -> EntityAddress:
    """The entity that an address means, whatever else it says. It never fails: what cannot be is not found later."""
    return parse_node(text).entity


def parse_node(text: str) -> NodeAddress:
    """Read an address as the SDKs write it: scheme and host, a leading slash and percent signs do not count.

    Names are lower-case in Kubernetes, and compare without regard to case in Service Bus: they become lower-case.
    """
    return parse_path(unquote(_without_host(text)))


def parse_path(text: str) -> NodeAddress:
    """Read a path that stands for itself, as HTTP's do once they are decoded: nothing is taken off or decoded again."""
    parts = [part for part in text.lower().split("/") if part]
    node = Node.ENTITY
    if parts and parts[-1] in {Node.MANAGEMENT, Node.CBS}:
        node = Node(parts.pop())
    sub_queue = SubQueue.NONE
    for ending, which in _ENDINGS:
        if tuple(parts[-len(ending) :]) == ending:
            parts, sub_queue = parts[: -len(ending)], which
            break
    # As access/scopes reads it, or somebody could reach a queue by a path that says another.
    namespace = parts.pop(0) if len(parts) > 1 and not (len(parts) > 2 and parts[1] == "subscriptions") else ""
    return NodeAddress(EntityAddress(namespace, "/".join(parts), sub_queue), node)


def _without_host(text: str) -> str:
    scheme, mark, rest = text.partition("://")
    if not mark or "/" in scheme:
        return text
    return rest.partition("/")[2]
