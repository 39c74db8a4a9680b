"""What Service Bus lets a queue be called, and what Kubernetes then calls it.

A name that Kubernetes allows is its own object's. Any other one, lower-case as names compare without regard to case,
makes a name that Kubernetes allows, ended by a digest of it: the same on every machine, for ever. The name as it was
written stays with the object, in an annotation, and is believed where it makes the object's name:

    orders       ->  orders
    My_Queue     ->  my-queue-4uleqrrw4y
    eu/orders.1  ->  eu-orders-1-keakrx4yx2
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from partitionedqueue.model import limits
from partitionedqueue.model.manifest_fields import is_name

ANNOTATION: Final = "messaging.partitionedqueue.io/entity-name"
"""On a PartitionedQueue: its name as its maker wrote it."""
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_FOREIGN: Final = re.compile("[^a-z0-9]+")
_DIGEST_CHARACTERS: Final = 10


def is_entity_name(text: str) -> bool:
    """Whether Service Bus lets a queue be called so.

    Letters, digits, '.', '-', '_', and '/' between parts that begin and end with a letter or a digit.
    """
    return 0 < len(text) <= limits.ENTITY_NAME_CHARACTERS_MAX and all(map(_NAME.fullmatch, text.split("/")))


def object_name(name: str) -> str:
    """The name of the object for a queue that clients call so, however they write it."""
    lower = name.lower()
    if is_name(lower):
        return lower
    digest = hashlib.sha256(lower.encode(errors="surrogatepass")).digest()
    ending = base64.b32encode(digest).decode().lower()[:_DIGEST_CHARACTERS]
    words = _FOREIGN.sub("-", lower).strip("-")
    if not words[:1].isalpha():
        words = f"q-{words}"
    return f"{words[: limits.QUEUE_NAME_CHARACTERS_MAX - len(ending) - 1].rstrip('-')}-{ending}"


def shown_name(metadata: Mapping[str, Any]) -> str:
    """What clients call the queue of an object, by the object's metadata."""
    name, annotations = str(metadata.get("name")), metadata.get("annotations")
    shown = annotations.get(ANNOTATION) if isinstance(annotations, Mapping) else None
    if isinstance(shown, str) and is_entity_name(shown) and object_name(shown) == name:
        return shown
    return name
