"""Options of the sources, parsed once at the door."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from partitionedqueue.broker.keys import DEAD_LETTERS, QueueKeys
from partitionedqueue.model import limits
from partitionedqueue_spark import malformed
from partitionedqueue_spark.connection import (
    CONNECTION,
    PASSWORD_VARIABLE,
    Connection,
    InvalidOption,
    by_name,
    connection_of,
    one_of,
    time_ms,
    truth,
    whole,
)
from partitionedqueue_spark.rows import Shape
from partitionedqueue_spark.schema import COLUMNS

__all__ = ["PASSWORD_VARIABLE", "InvalidOption", "SourceOptions"]

CONSUME: Final = "consume"
BROWSE: Final = "browse"
RECEIVE_AND_DELETE: Final = "receiveAndDelete"
MODES: Final = (CONSUME, BROWSE, RECEIVE_AND_DELETE)
DEAD_LETTER: Final = "deadLetter"
TRANSFER_DEAD_LETTER: Final = "transferDeadLetter"
SUB_QUEUES: Final = (DEAD_LETTER, TRANSFER_DEAD_LETTER)
EARLIEST: Final = "earliest"
LATEST: Final = "latest"
KNOWN: Final = (
    *CONNECTION, "mode", "subQueue", "columns", "startingPosition", "maxMessagesPerTrigger", "maxBytesPerTrigger",
    "maxTasksPerPartition", "filterPushdown", "claimTimeout", "fetchSize", "failOnLockLost", "onMalformed",
)  # fmt: skip
CLAIM_TIMEOUT_MS_DEFAULT: Final = 60_000
CLAIM_TIMEOUT_MS_MIN: Final = 1_000  # it is renewed three times within it, by brokers that may pause for an fsync
CLAIM_TIMEOUT_MS_MAX: Final = 24 * 3_600_000
FETCH_SIZE_DEFAULT: Final = 10_240  # messages: 40 segments; larger Arrow batches were slower, they outgrow the caches
FETCH_SIZE_MIN: Final = 256
FETCH_SIZE_MAX: Final = 102_400
TASKS_MAX: Final = 64  # of one partition: its broker has one core
_MESSAGES_MAX: Final = 2**48
_BYTES_MAX: Final = 2**47
_OWN: Final = (1 << limits.SEQUENCE_BITS) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(Connection):
    """What a reader needs to know; valid."""

    mode: str | None = None  # None: what is usual, consume for a stream and browse for a batch
    sub_queue: str | None = None
    columns: tuple[str, ...] = COLUMNS
    starting_position: str | Mapping[int, int] = EARLIEST  # or the partitions' own first sequence numbers
    max_messages_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    max_tasks_per_partition: int = 1
    filter_pushdown: bool = False
    claim_timeout_ms: int = CLAIM_TIMEOUT_MS_DEFAULT
    fetch_size: int = FETCH_SIZE_DEFAULT
    fail_on_lock_lost: bool = True
    on_malformed: str = malformed.FAIL

    @property
    def keys(self) -> QueueKeys:
        """The keys of what is read: the queue, or one of its sub-queues."""
        whole_queue = QueueKeys(self.queue)
        if self.sub_queue is None:
            return whole_queue
        return (whole_queue.transfers if self.sub_queue == TRANSFER_DEAD_LETTER else whole_queue).dead_letters

    @property
    def shape(self) -> Shape:
        """What rows look like."""
        return Shape(self.columns, self.queue if self.sub_queue else None)

    @classmethod
    def parse(cls, options: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> Self:
        """Read Spark's options, and the password from the environment if it is not among them.

        Raises InvalidOption, with the option's name in it.
        """
        given = by_name(options, KNOWN)
        given, sub_queue = _with_sub_queue(given)
        parsed = cls(
            **connection_of(given, environment),
            mode=one_of("mode", given["mode"], MODES) if "mode" in given else None,
            sub_queue=sub_queue,
            columns=_columns(given["columns"]) if "columns" in given else COLUMNS,
            starting_position=_position(given.get("startingPosition", EARLIEST)),
            max_messages_per_trigger=_most(given, "maxMessagesPerTrigger", _MESSAGES_MAX),
            max_bytes_per_trigger=_most(given, "maxBytesPerTrigger", _BYTES_MAX),
            max_tasks_per_partition=whole("maxTasksPerPartition", given.get("maxTasksPerPartition", "1"), 1, TASKS_MAX),
            filter_pushdown=truth("filterPushdown", given.get("filterPushdown", "false")),
            claim_timeout_ms=time_ms(
                "claimTimeout", given.get("claimTimeout", "60s"), CLAIM_TIMEOUT_MS_MIN, CLAIM_TIMEOUT_MS_MAX
            ),
            fetch_size=whole(
                "fetchSize", given.get("fetchSize", str(FETCH_SIZE_DEFAULT)), FETCH_SIZE_MIN, FETCH_SIZE_MAX
            ),
            fail_on_lock_lost=truth("failOnLockLost", given.get("failOnLockLost", "true")),
            on_malformed=one_of("onMalformed", given.get("onMalformed", malformed.FAIL), malformed.CHOICES),
        )
        parsed._check_together(given)
        return parsed

    def _check_together(self, given: Mapping[str, str]) -> None:
        if "startingPosition" in given and self.mode != BROWSE:
            raise InvalidOption(
                "option 'startingPosition' is for mode browse: a stream that consumes begins with what is ready"
            )
        if self.filter_pushdown and self.mode not in {None, BROWSE}:
            raise InvalidOption("option 'filterPushdown' is for mode browse: what is taken and left out would be lost")
        if "maxBytesPerTrigger" in given and self.mode not in {None, CONSUME}:
            raise InvalidOption(
                f"option 'maxBytesPerTrigger' is for mode consume; with mode {self.mode} set maxMessagesPerTrigger"
            )


def _with_sub_queue(given: dict[str, str]) -> tuple[dict[str, str], str | None]:
    """The sub-queue, by its option or as Azure writes it behind the queue's name."""
    sub_queue = one_of("subQueue", given["subQueue"], SUB_QUEUES) if "subQueue" in given else None
    name = given.get("queue", "").strip()
    for ending, meant in ((f"/$Transfer{DEAD_LETTERS}", TRANSFER_DEAD_LETTER), (DEAD_LETTERS, DEAD_LETTER)):
        if name.lower().endswith(ending.lower()):
            if sub_queue not in {None, meant}:
                raise InvalidOption(
                    f"option 'queue' is '{name}' and option 'subQueue' is '{sub_queue}'; give one of them"
                )
            return {**given, "queue": name[: -len(ending)]}, meant
    return given, sub_queue


def _most(given: Mapping[str, str], name: str, highest: int) -> int | None:
    return whole(name, given[name], 1, highest) if name in given else None


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip().lower() for name in text.split(","))
    for name in names:
        if name not in COLUMNS:
            raise InvalidOption(f"option 'columns' names '{name}'; the columns are {', '.join(COLUMNS)}")
    if len(set(names)) < len(names):
        raise InvalidOption(f"option 'columns' is '{text}'; each column can be named once")
    return names


def _position(text: str) -> str | Mapping[int, int]:
    """Where to begin. Sequence numbers may be the queue's or the partition's own: the lower 48 bits count."""
    if text.strip().lower() in {EARLIEST, LATEST}:
        return text.strip().lower()
    own: dict[int, int] = {}
    try:
        found = {int(partition): number for partition, number in json.loads(text).items()}
        own = {partition: number & _OWN for partition, number in found.items()}
        fits = all(number >> limits.SEQUENCE_BITS in {0, partition} for partition, number in found.items())
    except (ValueError, AttributeError, TypeError):
        fits = False
    if not fits or not all(own.values()):
        raise InvalidOption(
            f"option 'startingPosition' is '{text}'; it must be earliest, latest, or JSON of the sequence number that "
            'each partition begins with: {"0": 1, "1": 500}'
        )
    return own
