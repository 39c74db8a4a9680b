"""Each command of the library, written once as a value that any client can carry.

Contracts are in the heads of broker-image/functions/commands/*.lua. Sequence numbers are a partition's own 48 bits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from partitionedqueue.broker import replies
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import (
    About,
    Claimed,
    ClaimedRange,
    ClaimLog,
    PeekedRun,
    Raw,
    Received,
    Renewed,
    SendResult,
    Settlement,
    Totals,
)

T = TypeVar("T")
Argument: TypeAlias = bytes | str | int


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One command for one broker: its words, how to read the reply, and whether it may be repeated blindly."""

    words: tuple[Argument, ...]
    parse: Callable[[Raw], T]
    repeatable: bool = False


def _write(
    parse: Callable[[Raw], T], function: str, key: str, *arguments: Argument, repeatable: bool = False
) -> Call[T]:
    return Call(("FCALL", function, 1, key, *arguments), parse, repeatable)


def _read(parse: Callable[[Raw], T], function: str, key: str, *arguments: Argument) -> Call[T]:
    return Call(("FCALL_RO", function, 1, key, *arguments), parse, repeatable=True)


def configure(keys: QueueKeys, *, partition: int, partitions: int) -> Call[int]:
    """Say which partition a broker holds; one that holds another refuses (Misplaced)."""
    return _write(replies.number, "pq_configure", keys.state, partition, partitions, repeatable=True)


def send(keys: QueueKeys, messages: Sequence[bytes], *, sender: str = "", number: int = 0) -> Call[SendResult]:
    """Store a batch of stored forms, all or none. With a sender and a number it may be repeated: it is stored once."""
    return _write(replies.send, "pq_send", keys.state, sender, number, *messages, repeatable=bool(sender))


def receive(keys: QueueKeys, *, most: int, lock_ms: int) -> Call[Received]:
    """Receive up to `most` messages (1..1000) under a lock of `lock_ms`; 0 is receive-and-delete."""
    return _write(replies.received, "pq_receive", keys.state, most, lock_ms)


def _flat(settlements: Sequence[Settlement]) -> tuple[int, ...]:
    return tuple(number for settlement in settlements for number in settlement)


def complete(keys: QueueKeys, settlements: Sequence[Settlement]) -> Call[list[int]]:
    """Remove messages that their receiver has finished with; gives the places of those refused (LockLost)."""
    return _write(replies.places, "pq_complete", keys.state, *_flat(settlements))


def abandon(keys: QueueKeys, settlements: Sequence[Settlement], *, counted: bool = True) -> Call[list[int]]:
    """Give messages back; `counted` false is AMQP's released: this delivery does not count."""
    return _write(replies.places, "pq_abandon", keys.state, "counted" if counted else "uncounted", *_flat(settlements))


def renew_lock(keys: QueueKeys, settlements: Sequence[Settlement], *, lock_ms: int) -> Call[Renewed]:
    """Keep messages locked for another `lock_ms` from now."""
    return _write(replies.renewed, "pq_renew_lock", keys.state, lock_ms, *_flat(settlements))


def peek(keys: QueueKeys, *, from_sequence: int = 1, most: int, bytes_most: int) -> Call[list[PeekedRun]]:
    """Show up to `most` messages from a sequence number on."""
    return _read(replies.peeked, "pq_peek", keys.state, from_sequence, most, bytes_most)


def totals(keys: QueueKeys) -> Call[Totals]:
    """How the partition stands."""
    return _read(replies.totals, "pq_totals", keys.state)


def about() -> Call[About]:
    """Which library the broker runs."""
    return Call(("FCALL_RO", "pq_about", 0), replies.about, repeatable=True)


def claim_open(keys: QueueKeys, group: str, owner: str, lease_ms: int) -> Call[ClaimLog]:
    """Become the owner of a group's claim log; an older owner is fenced."""
    return _write(replies.claim_log, "pq_claim_open", keys.state, group, owner, lease_ms, repeatable=True)


def claim(  # noqa: PLR0917 -- the command's arguments, in its order
    keys: QueueKeys, group: str, owner: str, lease_ms: int, start: int, most: int
) -> Call[Claimed]:
    """Claim ready messages so that the log reaches up to start + most. A repeat finds them claimed already."""
    return _write(replies.claimed, "pq_claim", keys.state, group, owner, lease_ms, start, most, repeatable=True)


def claim_renew(keys: QueueKeys, group: str, owner: str, lease_ms: int) -> Call[int]:
    """Keep the claims for longer; gives the lease's expiry in ms since 1970."""
    return _write(replies.number, "pq_claim_renew", keys.state, group, owner, lease_ms, repeatable=True)


def claim_acknowledge(keys: QueueKeys, group: str, owner: str, upto: int) -> Call[int]:
    """Remove claimed messages below `upto`; gives how many are left to remove: repeat until 0."""
    return _write(replies.number, "pq_claim_acknowledge", keys.state, group, owner, upto, repeatable=True)


def claimed(keys: QueueKeys, group: str, start: int, end: int) -> Call[ClaimedRange]:
    """Where the messages of ordinals start..end-1 of a claim log are."""
    return _read(replies.claimed_range, "pq_claimed", keys.state, group, start, end)
