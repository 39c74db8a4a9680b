"""What a broker is told of its queue: the settings that pq_configure takes."""

from dataclasses import dataclass, fields
from typing import Self

from partitionedqueue.model import limits
from partitionedqueue.model.queue_spec import QueueSpec, QueueStatus


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

    def words(self) -> tuple[str | int, ...]:
        """Name, value, name, value, ... of those that are given."""
        given = ((field.name, getattr(self, field.name)) for field in fields(self))
        return tuple(
            word
            for name, value in given
            if value is not None
            for word in (name, value.value if isinstance(value, QueueStatus) else int(value))
        )
