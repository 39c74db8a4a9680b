"""What a broker may make of a stored form, written once more from docs/reference/stored-message.md, for the model."""

import struct

from partitionedqueue.model.amqp_types import encode_value

HAS_TIME_TO_LIVE, IS_SCHEDULED, HAS_CHANGES = 8, 16, 64
TTL_EXPIRED = "TTLExpiredException"
TOO_MANY_DELIVERIES = "MaxDeliveryCountExceeded"
DESCRIPTIONS = {
    TTL_EXPIRED: "The message expired and was dead lettered.",
    TOO_MANY_DELIVERIES: "The message could not be consumed within the maximum number of deliveries.",
}


def flags_of(stored: bytes) -> int:
    return stored[1]


def time_to_live_ms(stored: bytes) -> int:
    """The message's own time to live; 0: none."""
    return int(struct.unpack_from("<q", stored, 32)[0]) if flags_of(stored) & HAS_TIME_TO_LIVE else 0


def scheduled_time_ms(stored: bytes) -> int:
    """When the message wants to come; 0: at once."""
    return int(struct.unpack_from("<q", stored, 40)[0]) if flags_of(stored) & IS_SCHEDULED else 0


def session_id(stored: bytes) -> str | None:
    if not flags_of(stored) & 1:
        return None
    (length,) = struct.unpack_from("<H", stored, 4)
    (at,) = struct.unpack_from("<I", stored, 12)
    return stored[at : at + length].decode()


def with_changes(stored: bytes, changes: bytes) -> bytes:
    """Changes of application properties, added behind those before."""
    if not changes:
        return stored
    new = bytearray(stored)
    if not flags_of(stored) & HAS_CHANGES:
        new[1] |= HAS_CHANGES
        struct.pack_into("<I", new, 56, len(stored))
    return bytes(new) + changes


def as_dead_letter(stored: bytes, sequence: int, deliveries: int) -> bytes:
    """A message as it stands in a dead-letter queue, without what is changed on its way there."""
    new = bytearray(stored)
    new[1] &= 255 - HAS_TIME_TO_LIVE - IS_SCHEDULED
    struct.pack_into("<I", new, 28, struct.unpack_from("<I", stored, 28)[0] + deliveries)
    if struct.unpack_from("<q", stored, 48)[0] == 0:
        struct.pack_into("<q", new, 48, sequence)
    return bytes(new)


def _long_map(entries: dict[str, str | None]) -> bytes:
    """An AMQP map (1.0 §1.6.23), which the broker writes in the long form."""
    items = [encode_value(part) for entry in entries.items() for part in entry]
    content = b"".join(items)
    return b"\xd1" + struct.pack(">II", len(content) + 4, len(items)) + content


def reason(why: str) -> bytes:
    """The changes by which the broker itself says why it has dead-lettered a message."""
    return _long_map({"DeadLetterReason": why, "DeadLetterErrorDescription": DESCRIPTIONS[why]})


def as_resubmitted(stored: bytes) -> bytes:
    """A dead letter as it comes back: no deliveries, and no reason for being dead."""
    new = bytearray(stored)
    struct.pack_into("<I", new, 28, 0)
    return with_changes(bytes(new), _long_map({"DeadLetterReason": None, "DeadLetterErrorDescription": None}))
