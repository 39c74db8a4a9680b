"""Options of the source, parsed once at the door."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from partitionedqueue_spark.connection import (
    CONNECTION,
    PASSWORD_VARIABLE,
    Connection,
    InvalidOption,
    by_name,
    connection_of,
    time_ms,
    truth,
    whole,
)

__all__ = ["PASSWORD_VARIABLE", "InvalidOption", "SourceOptions"]

KNOWN: Final = (*CONNECTION, "maxMessagesPerTrigger", "claimTimeout", "fetchSize", "failOnLockLost")
CLAIM_TIMEOUT_MS_DEFAULT: Final = 60_000
CLAIM_TIMEOUT_MS_MIN: Final = 1_000  # it is renewed three times within it, by brokers that may pause for an fsync
CLAIM_TIMEOUT_MS_MAX: Final = 24 * 3_600_000
FETCH_SIZE_DEFAULT: Final = 10_240  # messages: 40 segments; larger Arrow batches were slower, they outgrow the caches
FETCH_SIZE_MIN: Final = 256
FETCH_SIZE_MAX: Final = 102_400
_MESSAGES_MAX: Final = 2**48


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(Connection):
    """What a reader needs to know; valid."""

    max_messages_per_trigger: int | None = None
    claim_timeout_ms: int = CLAIM_TIMEOUT_MS_DEFAULT
    fetch_size: int = FETCH_SIZE_DEFAULT
    fail_on_lock_lost: bool = True

    @classmethod
    def parse(cls, options: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> Self:
        """Read Spark's options, and the password from the environment if it is not among them.

        Raises InvalidOption, with the option's name in it.
        """
        given = by_name(options, KNOWN)
        most = given.get("maxMessagesPerTrigger")
        return cls(
            **connection_of(given, environment),
            max_messages_per_trigger=None if most is None else whole("maxMessagesPerTrigger", most, 1, _MESSAGES_MAX),
            claim_timeout_ms=time_ms(
                "claimTimeout", given.get("claimTimeout", "60s"), CLAIM_TIMEOUT_MS_MIN, CLAIM_TIMEOUT_MS_MAX
            ),
            fetch_size=whole(
                "fetchSize", given.get("fetchSize", str(FETCH_SIZE_DEFAULT)), FETCH_SIZE_MIN, FETCH_SIZE_MAX
            ),
            fail_on_lock_lost=truth("failOnLockLost", given.get("failOnLockLost", "true")),
        )
