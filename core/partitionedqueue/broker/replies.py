"""Replies of the library's commands, as values. The contracts are in the heads of the Lua files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from partitionedqueue.model.errors import BrokerFault

Raw: TypeAlias = Any
"""What a RESP reader gives: int, bytes, None or a list of these."""


class Settlement(NamedTuple):
    """Messages first..last (sequence numbers in the partition) held under one lock."""

    lock: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class SendResult:
    """Where a batch begins and when it was stored; both 0 for a duplicate, a send that had been stored before."""

    first: int
    enqueued_time_ms: int

    @property
    def duplicate(self) -> bool:
        """Whether this very send had been stored before."""
        return self.first == 0


@dataclass(frozen=True, slots=True)
class Run:
    """Messages that follow each other, received together: stored forms, under one lock (0: deleted)."""

    lock: int
    first: int
    delivery_count: int
    marks: bytes
    messages: list[bytes]


@dataclass(frozen=True, slots=True)
class Received:
    """What a receive gave. Times in ms since 1970, by the broker's clock."""

    now_ms: int
    locked_until_ms: int
    runs: list[Run]


@dataclass(frozen=True, slots=True)
class Renewed:
    """Until when, and which of the settlements were refused (places in the call)."""

    locked_until_ms: int
    refused: list[int]


@dataclass(frozen=True, slots=True)
class PeekedRun:
    """Messages that follow each other, shown."""

    first: int
    marks: bytes
    messages: list[bytes]


@dataclass(frozen=True, slots=True)
class Totals:
    """How a partition stands: messages by state, bytes stored, the last sequence number, which one it is of how many.

    `partitions` is 0 where nobody has said: there is no such queue in this broker.
    """

    messages: int
    ready: int
    locked: int
    claimed: int
    bytes: int
    last: int
    now_ms: int
    partition: int
    partitions: int


@dataclass(frozen=True, slots=True)
class About:
    """Which library a broker runs, and the version of its stored layout."""

    library: str
    layout: int


@dataclass(frozen=True, slots=True)
class ClaimLog:
    """A group's claim log holds ordinals base..next-1; those below `lost` were given back to the queue."""

    base: int
    next: int
    lost: int


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim log reaches `end`; `ready` messages are left to claim."""

    end: int
    ready: int


@dataclass(frozen=True, slots=True)
class ClaimEntry:
    """Messages first..first+count-1, delivered `deliveries` times before."""

    first: int
    count: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class ClaimedRange:
    """Where the messages of a range of a claim log are."""

    base: int
    next: int
    lost: int
    entries: list[ClaimEntry]


def send(raw: Raw) -> SendResult:
    """Parse pq_send's reply."""
    return SendResult(raw[0], raw[1])


def received(raw: Raw) -> Received:
    """Parse pq_receive's reply."""
    return Received(raw[0], raw[1], [Run(*run) for run in raw[2:]])


def places(raw: Raw) -> list[int]:
    """Parse a list of refused places."""
    return list(raw)


def renewed(raw: Raw) -> Renewed:
    """Parse pq_renew_lock's reply."""
    return Renewed(raw[0], list(raw[1:]))


def peeked(raw: Raw) -> list[PeekedRun]:
    """Parse pq_peek's reply."""
    return [PeekedRun(*run) for run in raw]


def _named(raw: Raw) -> dict[str, Any]:
    return {raw[i].decode(): raw[i + 1] for i in range(0, len(raw), 2)}


def totals(raw: Raw) -> Totals:
    """Parse pq_totals' reply."""
    named = _named(raw)
    return Totals(now_ms=named.pop("now"), **named)


def about(raw: Raw) -> About:
    """Parse pq_about's reply."""
    named = _named(raw)
    return About(named["library"].decode(), named["layout"])


def claim_log(raw: Raw) -> ClaimLog:
    """Parse pq_claim_open's reply."""
    return ClaimLog(*raw)


def claimed(raw: Raw) -> Claimed:
    """Parse pq_claim's reply."""
    return Claimed(*raw)


def claimed_range(raw: Raw) -> ClaimedRange:
    """Parse pq_claimed's reply."""
    numbers: Sequence[int] = raw[3:]
    return ClaimedRange(raw[0], raw[1], raw[2], [ClaimEntry(*numbers[i : i + 3]) for i in range(0, len(numbers), 3)])


def number(raw: Raw) -> int:
    """Parse a single number."""
    if not isinstance(raw, int):
        raise BrokerFault(f"a number was promised, and {raw!r} came")
    return raw
