"""What makes a message a duplicate: MessageId and partition key, as a fingerprint.

Azure, "Duplicate detection": with partitioning, the partition key and the MessageId together identify a message. The
bytes are specified, with vectors, in docs/reference/duplicate-detection.md.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from partitionedqueue.model import limits
from partitionedqueue.model.partitioning import Keyed

NOT_DETECTED: Final = bytes(limits.FINGERPRINT_BYTES)
"""Stands for a message without a MessageId, which is nobody's duplicate."""


def fingerprint(message: Keyed) -> bytes:
    """The 12 bytes that a broker remembers a message by; NOT_DETECTED where it has no MessageId."""
    if message.message_id is None:
        return NOT_DETECTED
    key = (message.session_id or message.partition_key or "").encode()
    text = len(key).to_bytes(2, "little") + key + message.message_id.encode()
    return blake2b(text, digest_size=limits.FINGERPRINT_BYTES).digest()


def fingerprints(messages: Iterable[Keyed]) -> bytes:
    """The fingerprints of a batch's messages, one after the other, as pq_send takes them."""
    return b"".join(map(fingerprint, messages))
