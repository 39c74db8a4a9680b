"""What a sender stores: a stored form, and what routing and duplicate detection need to know of it."""

from typing import NamedTuple

from partitionedqueue.model import limits, stored_message
from partitionedqueue.model.message import Message


class Storable(NamedTuple):
    """A message in its stored form; whoever makes one has checked it.

    `message_id` is None where the sender gave none, though the stored form may have one: an id that we make up is no
    key, and nobody's duplicate.
    """

    stored: bytes
    message_id: str | None
    session_id: str | None
    partition_key: str | None


def storable(message: Message, *, bytes_most: int = limits.MESSAGE_BYTES_MAX) -> Storable:
    """A message as a sender stores it. Raises MessageTooLarge, and InvalidMessage for a property AMQP cannot hold."""
    stored = stored_message.encode(message, bytes_most=bytes_most)
    return Storable(stored, message.message_id, message.session_id, message.partition_key)
