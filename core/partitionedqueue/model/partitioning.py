"""Which partition a message goes to (the article's "Using partition keys"; docs/reference/partitioning.md)."""

from collections.abc import Iterable
from typing import Protocol

import xxhash

from partitionedqueue.model.errors import BatchKeyConflict
from partitionedqueue.model.identifiers import PartitionId

SEED = 42  # Spark SQL's xxhash64() has this seed: a job can route with a built-in function


class Keyed(Protocol):
    """What of a message says where it goes: a Message, or a Storable."""

    @property
    def message_id(self) -> str | None:
        """Service Bus' MessageId."""

    @property
    def session_id(self) -> str | None:
        """Service Bus' SessionId."""

    @property
    def partition_key(self) -> str | None:
        """Service Bus' PartitionKey."""


def partition_key_of(message: Keyed, *, requires_duplicate_detection: bool = False) -> str | None:
    """The key that decides: SessionId, else PartitionKey, else MessageId where duplicates are detected. '' is one."""
    if message.session_id is not None:
        return message.session_id
    if message.partition_key is not None:
        return message.partition_key
    return message.message_id if requires_duplicate_detection else None


def partition_of(key: str, partitions: int) -> PartitionId:
    """The partition of a key: the upper 32 bits of XXH64 (seed 42) of its UTF-8 bytes, modulo the number of partitions.

    For ever: the same key goes to the same partition, in every version and language.
    """
    return PartitionId((xxhash.xxh64_intdigest(key.encode(), SEED) >> 32) % partitions)


def key_of_batch(messages: Iterable[Keyed], *, requires_duplicate_detection: bool = False) -> str | None:
    """The one key of a batch's messages, or None. Raises BatchKeyConflict where they have two."""
    keys = {partition_key_of(m, requires_duplicate_detection=requires_duplicate_detection) for m in messages}
    if len(keys) > 1:
        shown = " and ".join(sorted("no key" if key is None else f"'{key}'" for key in keys)[:2])
        raise BatchKeyConflict(f"a batch goes into one partition, but its messages have {shown}; send them separately")
    return next(iter(keys), None)
