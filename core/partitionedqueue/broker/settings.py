"""What a broker is told of its queue: the settings that pq_configure takes."""

import struct
from dataclasses import dataclass, fields
from typing import Final, Self

from partitionedqueue.model import limits
from partitionedqueue.model.queue_spec import QueueSpec, QueueStatus

# As includes/config.lua packs them: lock, deliveries, ttl (48 bits), dead-letter, sessions, dedupe, quota, partition
# of how many, whether anything was given, and which of _STATUSES, from 1.
_PACKED: Final = struct.Struct("<IHIHBBIQHHBB")
_STATUSES: Final = (
    QueueStatus.ACTIVE,
    QueueStatus.DISABLED,
    QueueStatus.SEND_DISABLED,
    QueueStatus.RECEIVE_DISABLED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Settings of one partition; None keeps what the broker has. Durations in ms.

    0 means: no limit of deliveries, no time to live of the queue's own, no detection of duplicates, no quota.
    """

    lock_ms: int | None = None
    max_deliveries: int | None = None
    ttl_ms: int | None = None
    dead_letter_expired: bool | None = None
    sessions: bool | None = None
    dedupe_ms: int | None = None
    quota_bytes: int | None = None
    status: QueueStatus | None = None

    @classmethod
    def of(cls, spec: QueueSpec) -> Self:
        """What each partition of a queue is told."""
        window_ms = spec.duplicate_detection_history_time_window_ms
        return cls(
            lock_ms=spec.lock_duration_ms,
            max_deliveries=spec.max_delivery_count,
            ttl_ms=min(spec.default_message_time_to_live_ms or 0, limits.BROKER_NUMBER_MAX),
            dead_letter_expired=spec.dead_lettering_on_message_expiration,
            sessions=spec.requires_session,
            dedupe_ms=window_ms if spec.requires_duplicate_detection else 0,
            quota_bytes=spec.partition_gb * 2**30,
            status=spec.status,
        )

    @classmethod
    def unpacked(cls, packed: bytes) -> Self:
        """What a broker keeps of what it was told. Raises struct.error, IndexError for what is none of it."""
        lock, deliveries, ttl, ttl_high, dead_letter, sessions, dedupe, quota, *_, status = _PACKED.unpack(packed)
        return cls(
            lock_ms=lock,
            max_deliveries=deliveries,
            ttl_ms=ttl | ttl_high << 32,
            dead_letter_expired=bool(dead_letter),
            sessions=bool(sessions),
            dedupe_ms=dedupe,
            quota_bytes=quota,
            status=_STATUSES[status - 1],
        )

    def words(self) -> tuple[str | int, ...]:
        """Name, value, name, value, ... of those that are given."""
        given = ((field.name, getattr(self, field.name)) for field in fields(self))
        return tuple(
            word
            for name, value in given
            if value is not None
            for word in (name, value.value if isinstance(value, QueueStatus) else int(value))
        )
