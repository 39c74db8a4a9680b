"""A message: what a sender gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from partitionedqueue.model import limits
from partitionedqueue.model.errors import InvalidMessage, PartitionKeyConflict

PropertyValue: TypeAlias = str | int | float | bool | bytes | UUID | None
"""What an application property may hold (AMQP 1.0 §3.2.5: simple types only)."""


def _check_text(name: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidMessage(f"{name} has a half of a surrogate pair in it, which is no character") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message in Service Bus' terms. Valid once made: construction raises InvalidMessage.

    `time_to_live_ms` is a length in milliseconds; `scheduled_enqueue_time_ms` a time since 1970 (UTC).
    """

    body: bytes
    message_id: str | None = None
    session_id: str | None = None
    partition_key: str | None = None
    content_type: str | None = None
    subject: str | None = None
    correlation_id: str | None = None
    to: str | None = None
    reply_to: str | None = None
    reply_to_session_id: str | None = None
    time_to_live_ms: int | None = None
    scheduled_enqueue_time_ms: int | None = None
    application_properties: Mapping[str, PropertyValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.body, bytes):
            raise InvalidMessage(f"a body is bytes, not {type(self.body).__name__}; encode text first")
        for name, value, most in (
            ("MessageId", self.message_id, limits.MESSAGE_ID_CHARACTERS_MAX),
            ("SessionId", self.session_id, limits.SESSION_ID_CHARACTERS_MAX),
            ("PartitionKey", self.partition_key, limits.PARTITION_KEY_CHARACTERS_MAX),
        ):
            if value is not None and not value.isascii():
                _check_text(name, value)
            if value is not None and len(value) > most:
                raise InvalidMessage(f"{name} has {len(value)} characters; at most {most} are allowed")
        if None not in (self.session_id, self.partition_key) and self.session_id != self.partition_key:
            raise PartitionKeyConflict(
                f"SessionId '{self.session_id}' and PartitionKey '{self.partition_key}' differ; "
                "leave PartitionKey out, or make it the same"
            )
        for name, number in (
            ("TimeToLive", self.time_to_live_ms),
            ("ScheduledEnqueueTimeUtc", self.scheduled_enqueue_time_ms),
        ):
            if number is not None and not 0 < number <= limits.TIME_MS_MAX:
                raise InvalidMessage(f"{name} is {number} ms; it must be positive")
