"""Messages as they leave an entity: taken by a receiver, or only shown."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple

from partitionedqueue.broker.replies import PeekedRun, PeekedState, Received
from partitionedqueue.model import stored_message
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.lock_token import LockToken

_ONE_MARK = 8


class Taken(NamedTuple):
    """A message that a receiver has. `lock` and `locked_until_ms` are 0 where it was deleted.

    `sequence` is the partition's own; `deliveries` counts this one. Times in ms since 1970, by the broker's clock.
    """

    partition: int
    sequence: int
    lock: int
    deliveries: int
    enqueued_time_ms: int
    locked_until_ms: int
    stored: bytes

    @property
    def token(self) -> LockToken:
        """What it is settled by."""
        return LockToken(self.partition, self.sequence, self.lock)


class Shown(NamedTuple):
    """A message that was only looked at. `deliveries` so far are told of deferred and returned ones."""

    partition: int
    sequence: int
    state: PeekedState
    deliveries: int
    enqueued_time_ms: int
    stored: bytes


class Peeked(NamedTuple):
    """What a peek has found, in order, and the partitions that could not be looked into, each with the reason."""

    messages: Sequence[Shown]
    missing: Mapping[int, PartitionedQueueError]


def taken_of(partition: int, received: Received) -> list[Taken]:
    """What a broker has handed out, message by message."""
    found: list[Taken] = []
    for run in received.runs:
        count = len(run.messages)
        found += map(
            Taken,
            repeat(partition),
            range(run.first, run.first + count),
            repeat(run.lock),
            repeat(run.delivery_count),
            _times(run.first, count, run.marks),
            repeat(received.locked_until_ms),
            run.messages,
        )
    return found


def shown_of(partition: int, runs: Iterable[PeekedRun]) -> list[Shown]:
    """What a broker has shown, message by message."""
    return [
        Shown(partition, run.first + place, run.state, run.deliveries, time_ms, message)
        for run in runs
        for place, (time_ms, message) in enumerate(
            zip(_times(run.first, len(run.messages), run.marks), run.messages, strict=False)
        )
    ]


def _times(first: int, count: int, marks: bytes) -> Iterable[int]:
    if len(marks) == _ONE_MARK:  # which is the rule, where messages come in batches or one by one
        return repeat(int.from_bytes(marks[2:], "little"))
    return stored_message.enqueued_times(first, count, marks)
