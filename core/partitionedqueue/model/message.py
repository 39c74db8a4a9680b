"""A message: what a sender gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from partitionedqueue.model import limits
from partitionedqueue.model.errors import InvalidMessage, PartitionKeyConflict

PropertyValue: TypeAlias = str | int | float | bool | bytes | UUID | None
"""What an application property may hold (AMQP 1.0 §3.2.5: simple types only)."""


def _check_text(name: str, value: str, characters_most: int) -> None:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidMessage(f"{name} has a half of a surrogate pair in it, which is no character") from error
    if len(value) > characters_most:
        raise InvalidMessage(f"{name} has {len(value)} characters; at most {characters_most} are allowed")


def check_keys(message_id: str | None, session_id: str | None, partition_key: str | None) -> None:
    """Raises InvalidMessage for one that is too long or no text, PartitionKeyConflict where the keys differ."""
    if session_id is not None and partition_key is not None and session_id != partition_key:
        raise PartitionKeyConflict(
            f"SessionId '{session_id}' and PartitionKey '{partition_key}' differ; "
            "leave PartitionKey out, or make it the same"
        )
    if message_id is not None:
        _check_text("MessageId", message_id, limits.MESSAGE_ID_CHARACTERS_MAX)
    if session_id is not None:
        _check_text("SessionId", session_id, limits.SESSION_ID_CHARACTERS_MAX)
    if partition_key is not None:
        _check_text("PartitionKey", partition_key, limits.PARTITION_KEY_CHARACTERS_MAX)


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
        check_keys(self.message_id, self.session_id, self.partition_key)
        for name, number in (
            ("TimeToLive", self.time_to_live_ms),
            ("ScheduledEnqueueTimeUtc", self.scheduled_enqueue_time_ms),
        ):
            if number is not None and not 0 < number <= limits.TIME_MS_MAX:
                raise InvalidMessage(f"{name} is {number} ms; it must be positive")
