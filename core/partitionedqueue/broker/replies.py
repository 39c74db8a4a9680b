"""Replies of the library's commands, as values. The contracts are in the heads of the Lua files."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model.errors import BrokerFault

_SENT = struct.Struct("<QQ")
_DUPLICATE = struct.Struct("<I")
_ANSWER = struct.Struct("<qqq")
_PLACE = struct.Struct("<QQIII")

Raw: TypeAlias = Any
"""What a RESP reader gives: int, bytes, None or a list of these."""


class Settlement(NamedTuple):
    """Messages first..last (sequence numbers in the partition) held under one lock."""

    lock: int
    first: int
    last: int


class SessionLock(NamedTuple):
    """A session that its receiver holds, and the number of the lock that it holds it under."""

    session_id: str
    lock: int


@dataclass(frozen=True, slots=True)
class SendResult:
    """Where a batch begins and when it was stored.

    `duplicates` are the places of the messages that the queue has already and that were dropped; the others are
    numbered first, first + 1, ... `first` is 0 where none was stored.
    """

    first: int
    enqueued_time_ms: int
    duplicates: list[int] = field(default_factory=list)

    @property
    def stored_before(self) -> bool:
        """Whether this very send had been stored before; what became of each message is not told again."""
        return self.enqueued_time_ms == 0


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
    """What a receive gave. Times in ms since 1970, by the broker's clock.

    From `ask_again_ms` on, asking again is worthwhile without being woken: at once where it is not after `now_ms`;
    -1 where nothing waits for its time.
    """

    now_ms: int
    locked_until_ms: int
    ask_again_ms: int
    runs: list[Run]


@dataclass(frozen=True, slots=True)
class Place:
    """Messages first..first+count-1 of one segment, received together under one lock; their bodies are still there."""

    lock: int
    first: int
    delivery_count: int
    marks: bytes
    count: int


@dataclass(frozen=True, slots=True)
class ReceivedPlaces:
    """As `Received`, with places for messages."""

    now_ms: int
    locked_until_ms: int
    ask_again_ms: int
    places: list[Place]


@dataclass(frozen=True, slots=True)
class Renewed:
    """Until when, and which of the settlements were refused (places in the call)."""

    locked_until_ms: int
    refused: list[int]


class PeekedState(IntEnum):
    """The states that a peek tells apart; Azure's numbers."""

    ACTIVE = 0
    DEFERRED = 1
    SCHEDULED = 2


@dataclass(frozen=True, slots=True)
class PeekedRun:
    """Messages that follow each other, shown. `deliveries` so far: of deferred and returned ones, otherwise 0."""

    first: int
    state: PeekedState
    deliveries: int
    marks: bytes
    messages: list[bytes]


@dataclass(frozen=True, slots=True)
class Peeked:
    """What a peek shows, and the sequence number to go on from; 0 where the end was reached.

    There may be more where few or no runs came: one call looks at so many messages and no more.
    """

    next: int
    runs: list[PeekedRun]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Messages of one segment from `first` on: a letter each, and u16 deliveries each (b"" where all are 0).

    a: active, l: locked or claimed, d: deferred, s: scheduled, -: gone.
    """

    first: int
    states: bytes
    deliveries: bytes


@dataclass(frozen=True, slots=True)
class States:
    """What states messages are in, and the sequence number to go on from; 0 at the end."""

    next: int
    stretches: list[Stretch]


@dataclass(frozen=True, slots=True)
class AcceptedSession:
    """A session that is now its receiver's, until when; or None, and from when on to ask again (-1: when woken)."""

    session: SessionLock | None
    locked_until_ms: int
    ask_again_ms: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class Moved:
    """How many messages a purge or a resubmit took, up to which sequence number it goes, and whether to call again.

    `more` is 0 at the end; of a purge it is where to go on (`cursor`).
    """

    count: int
    upto: int
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """How a partition stands; all 0 where there is none.

    Messages by state, and those in the sub-queues; bytes stored, sub-queues included, and the charge for memory that a
    send must not bring over the quota (0: none); the last sequence number; when the oldest message was enqueued (0:
    there is none); sessions that may be accepted, and that are locked; message ids remembered; which partition it is
    of how many.

    `partitions` is 0 where nobody has said: there is no such queue in this broker.
    """

    messages: int = 0
    ready: int = 0
    locked: int = 0
    claimed: int = 0
    deferred: int = 0
    scheduled: int = 0
    dead_letters: int = 0
    transfers: int = 0
    transfer_dead_letters: int = 0
    bytes: int = 0
    charge: int = 0
    quota: int = 0
    last: int = 0
    oldest: int = 0
    sessions: int = 0
    sessions_locked: int = 0
    remembered: int = 0
    now_ms: int = 0
    partition: int = 0
    partitions: int = 0


@dataclass(frozen=True, slots=True)
class About:
    """Which library a broker runs, and the version of its stored layout."""

    library: str
    layout: int


@dataclass(frozen=True, slots=True)
class ClaimLog:
    """A group's claim log holds ordinals base..next-1; those below `lost` were given back to the queue.

    `sessions` is 1 where the queue has sessions.
    """

    base: int
    next: int
    lost: int
    sessions: int = 0


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim log reaches `end`; `ready` messages are left to claim; this call has claimed so many bytes.

    Bytes are counted where they are bounded.
    """

    end: int
    ready: int
    bytes: int = 0


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


@dataclass(frozen=True, slots=True)
class Swept:
    """When something falls due next (-1: nothing waits for its time) and the broker's time, in ms since 1970."""

    next_due_ms: int
    now_ms: int


def swept(raw: Raw) -> Swept:
    """Parse pq_sweep's reply."""
    return Swept(*raw)


def send(raw: Raw) -> SendResult:
    """Parse pq_send's reply."""
    return SendResult(raw[0], raw[1], list(raw[2:]))


def sent_pushed(raw: Raw) -> SendResult:
    """Parse pq_send_pushed's reply."""
    first, enqueued_time_ms = _SENT.unpack_from(raw)
    duplicates = [place for (place,) in _DUPLICATE.iter_unpack(raw[_SENT.size :])]
    return SendResult(first, enqueued_time_ms, duplicates)


def received(raw: Raw) -> Received:
    """Parse pq_receive's reply."""
    return Received(raw[0], raw[1], raw[2], [Run(*run) for run in raw[3:]])


def received_deferred(raw: Raw) -> Received:
    """Parse pq_receive_deferred's reply: nobody waits for deferred messages, so there is no time to ask again."""
    return Received(raw[0], raw[1], -1, [Run(*run) for run in raw[2:]])


def received_places(raw: Raw) -> ReceivedPlaces:
    """Parse pq_receive's reply where it has places."""
    found: list[Place] = []
    at = _ANSWER.size
    while at < len(raw):
        lock, first, delivery_count, count, size = _PLACE.unpack_from(raw, at)
        at += _PLACE.size + size
        found.append(Place(lock, first, delivery_count, raw[at - size : at], count))
    now_ms, locked_until_ms, ask_again_ms = _ANSWER.unpack_from(raw)
    return ReceivedPlaces(now_ms, locked_until_ms, ask_again_ms, found)


def places(raw: Raw) -> list[int]:
    """Parse a list of numbers: places in the call."""
    return list(raw)


def names(raw: Raw) -> list[str]:
    """Parse a list of names."""
    return [name.decode() for name in raw]


def renewed(raw: Raw) -> Renewed:
    """Parse pq_renew_lock's reply."""
    return Renewed(raw[0], list(raw[1:]))


def peeked(raw: Raw) -> Peeked:
    """Parse pq_peek's reply."""
    return Peeked(raw[0], [PeekedRun(run[0], PeekedState(run[1]), *run[2:]) for run in raw[1:]])


def states(raw: Raw) -> States:
    """Parse pq_states' reply."""
    return States(raw[0], [Stretch(*raw[at : at + 3]) for at in range(1, len(raw), 3)])


def accepted_session(raw: Raw) -> AcceptedSession:
    """Parse pq_accept_session's reply."""
    name, lock, when_ms, now_ms = raw
    if not lock:
        return AcceptedSession(None, 0, when_ms, now_ms)
    return AcceptedSession(SessionLock(name.decode(), lock), when_ms, -1, now_ms)


def moved(raw: Raw) -> Moved:
    """Parse pq_purge's or pq_resubmit's reply."""
    return Moved(*raw)


def state(raw: Raw) -> bytes | None:
    """Parse a session's state."""
    return bytes(raw) if raw is not None else None


def _named(raw: Raw) -> dict[str, Any]:
    return {raw[i].decode(): raw[i + 1] for i in range(0, len(raw), 2)}


_TOTALS = tuple(f.name for f in fields(Totals))


def totals(raw: Raw) -> Totals:
    """Parse pq_totals' reply. Raises BrokerFault where a name is missing; a later library may have more of them."""
    named = _named(raw)
    try:
        return Totals(**{name: named["now" if name == "now_ms" else name] for name in _TOTALS})
    except KeyError as error:
        raise BrokerFault(f"pq_totals says nothing of {error.args[0]}") from error


def settings(raw: Raw) -> BrokerSettings:
    """Parse the state field `config`; what was never configured has none. Raises BrokerFault."""
    try:
        return BrokerSettings() if raw is None else BrokerSettings.unpacked(raw)
    except (struct.error, IndexError) as error:
        raise BrokerFault("a broker's record of its queue's settings cannot be understood") from error


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
