"""Each command of the library, written once as a value that any client can carry.

Contracts are in the heads of broker-image/functions/commands/*.lua. Sequence numbers are a partition's own 48 bits.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from partitionedqueue.broker import replies
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.operations import (
    NO_CHANGES,
    Operation,
    Word,
    counted_word,
    dead_letter_changes,
    flat,
)
from partitionedqueue.broker.replies import (
    About,
    AcceptedSession,
    Claimed,
    ClaimedRange,
    ClaimLog,
    Moved,
    Peeked,
    Place,
    Raw,
    Received,
    ReceivedPlaces,
    Renewed,
    SendResult,
    SessionLock,
    Settlement,
    States,
    Swept,
    Totals,
)
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model import limits, stored_message
from partitionedqueue.model.message import PropertyValue

T = TypeVar("T")
Argument: TypeAlias = Word
Words: TypeAlias = tuple[Argument, ...]
QUEUES_LOCK = -1
"""A lock as long as the queue's own lockDuration."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One command for one broker: its words, how to read the reply, and whether it may be repeated blindly.

    `pushes` are commands that go before it in one MULTI ... EXEC.
    """

    words: Words
    parse: Callable[[Raw], T]
    repeatable: bool = False
    pushes: tuple[Words, ...] = ()

    @property
    def commands(self) -> tuple[Words, ...]:
        """All that goes over the wire; the reply to the last one is that to `words`, or a list that ends with it."""
        if not self.pushes:
            return (self.words,)
        return (("MULTI",), *self.pushes, self.words, ("EXEC",))


def _write(
    parse: Callable[[Raw], T], function: str, key: str, *arguments: Argument, repeatable: bool = False
) -> Call[T]:
    return Call(("FCALL", function, 1, key, *arguments), parse, repeatable)


def _read(parse: Callable[[Raw], T], function: str, key: str, *arguments: Argument) -> Call[T]:
    return Call(("FCALL_RO", function, 1, key, *arguments), parse, repeatable=True)


def _held(session: SessionLock | None) -> tuple[Argument, ...]:
    """How commands say in which session they act: '' and 0 where in none; a session's id may be empty, too."""
    return ("", 0) if session is None else session


def configure(keys: QueueKeys, *, partition: int, partitions: int, settings: BrokerSettings | None = None) -> Call[int]:
    """Say which partition a broker holds (one that holds another refuses: Misplaced), and what its queue is like."""
    told = settings.words() if settings is not None else ()
    return _write(replies.number, "pq_configure", keys.state, partition, partitions, *told, repeatable=True)


def settings(keys: QueueKeys) -> Call[BrokerSettings]:
    """What a broker was told its queue is like; read natively, by whoever may read the queue's keys."""
    return Call(("HGET", keys.state, "config"), replies.settings, repeatable=True)


def send(
    keys: QueueKeys, messages: Sequence[bytes], *, sender: str = "", number: int = 0, fingerprints: bytes = b""
) -> Call[SendResult]:
    """Store a batch of stored forms, all or none. With a sender and a number it may be repeated: it is stored once.

    A queue that detects duplicates needs the messages' `fingerprints` (model.duplicates); others do without.
    """
    words: tuple[Argument, ...] = (sender, number, fingerprints, *messages)
    return _write(replies.send, "pq_send", keys.state, *words, repeatable=bool(sender))


def send_pushed(
    keys: QueueKeys,
    messages: Sequence[bytes],
    *,
    guess: int,
    sender: str = "",
    number: int = 0,
    fingerprints: bytes = b"",
    session: str = "",
) -> Call[SendResult]:
    """Store a batch as `send` does, past Lua: the faster way for some kilobytes and more.

    `guess` is what the last sequence number is thought to be; a wrong one costs time only. `session` is that of all the
    messages; where it is '' the broker looks whether they have one. None has a schedule.
    """
    pushes: list[Words] = []
    place = 0
    while place < len(messages):
        segment, index = divmod(guess + place, limits.SEGMENT_MESSAGES)
        piece = messages[place : place + limits.SEGMENT_MESSAGES - index]
        pushes.append(("RPUSH", keys.segment(segment), *piece))
        place += len(piece)
    sizes = struct.pack(f"<{len(messages)}I", *map(len, messages))
    lives = stored_message.times_to_live(messages)
    more: list[Argument] = [session, lives, fingerprints, *((sender, number) if sender else ())]
    while more and not more[-1]:
        more.pop()
    words = ("FCALL", "pq_send_pushed", 1, keys.state, guess, sizes, *more)
    return Call(words, replies.sent_pushed, repeatable=bool(sender), pushes=tuple(pushes))


def receive(
    keys: QueueKeys,
    *,
    most: int,
    lock_ms: int = QUEUES_LOCK,
    bytes_most: int = 0,
    session: SessionLock | None = None,
) -> Call[Received]:
    """Receive up to `most` messages (1..1000) under a lock of `lock_ms`; 0 is receive-and-delete.

    `bytes_most` 0 is the broker's own bound of 4 MB; the first message comes whatever its size.
    """
    words = (most, lock_ms, bytes_most, *_held(session))
    return _write(replies.received, "pq_receive", keys.state, *words)


def receive_places(
    keys: QueueKeys,
    *,
    most: int,
    lock_ms: int = QUEUES_LOCK,
    bytes_most: int = 0,
    session: SessionLock | None = None,
) -> Call[ReceivedPlaces]:
    """Receive as `receive` does, under a lock, but only where the messages are: `bodies` has them, past Lua."""
    words = (most, lock_ms, bytes_most, *_held(session), "places")
    return _write(replies.received_places, "pq_receive", keys.state, *words)


def bodies(keys: QueueKeys, place: Place) -> Call[list[bytes]]:
    """The stored forms at a place that was received; fewer, or empty ones, where the lock was lost meanwhile."""
    segment, index = divmod(place.first - 1, limits.SEGMENT_MESSAGES)
    return Call(("LRANGE", keys.segment(segment), index, index + place.count - 1), list, repeatable=True)


def complete(
    keys: QueueKeys, settlements: Sequence[Settlement], *, session: SessionLock | None = None
) -> Call[list[int]]:
    """Remove messages that their receiver has finished with; gives the places of those refused (LockLost)."""
    return _write(replies.places, "pq_complete", keys.state, *_held(session), *flat(settlements))


def abandon(
    keys: QueueKeys,
    settlements: Sequence[Settlement],
    *,
    counted: bool = True,
    changes: bytes = b"",
    session: SessionLock | None = None,
) -> Call[list[int]]:
    """Give messages back, changed; `counted` false is AMQP's released: this delivery does not count."""
    words = (*_held(session), counted_word(counted), changes, *flat(settlements))
    return _write(replies.places, "pq_abandon", keys.state, *words)


def defer(
    keys: QueueKeys, settlements: Sequence[Settlement], *, changes: bytes = b"", session: SessionLock | None = None
) -> Call[list[int]]:
    """Put messages aside, changed; `receive_deferred` has them back by their sequence numbers."""
    words = (*_held(session), changes, *flat(settlements))
    return _write(replies.places, "pq_defer", keys.state, *words)


def dead_letter(
    keys: QueueKeys,
    settlements: Sequence[Settlement],
    *,
    reason: str = "",
    description: str = "",
    changes: Mapping[str, PropertyValue] = NO_CHANGES,
    session: SessionLock | None = None,
) -> Call[list[int]]:
    """Move messages to the dead-letter queue, changed. Raises InvalidMessage for a reason that is too long."""
    told = dead_letter_changes(reason, description, changes)
    words = (*_held(session), told, *flat(settlements))
    return _write(replies.places, "pq_dead_letter", keys.state, *words)


def renew_lock(keys: QueueKeys, settlements: Sequence[Settlement], *, lock_ms: int = QUEUES_LOCK) -> Call[Renewed]:
    """Keep messages locked for another `lock_ms` from now; those of a session are held by `renew_session`."""
    return _write(replies.renewed, "pq_renew_lock", keys.state, lock_ms, *flat(settlements), repeatable=True)


def receive_deferred(
    keys: QueueKeys, sequences: Sequence[int], *, lock_ms: int = QUEUES_LOCK, session: SessionLock | None = None
) -> Call[Received]:
    """Receive deferred messages by their sequence numbers, all or none (MessageNotFound)."""
    words = (*_held(session), lock_ms, *sequences)
    return _write(replies.received_deferred, "pq_receive_deferred", keys.state, *words)


def cancel_scheduled(keys: QueueKeys, sequences: Sequence[int]) -> Call[int]:
    """Remove scheduled messages before their time, all or none (MessageNotFound)."""
    return _write(replies.number, "pq_cancel_scheduled", keys.state, *sequences)


def peek(
    keys: QueueKeys, *, from_sequence: int = 1, most: int, bytes_most: int, states: str = "", session: str | None = None
) -> Call[Peeked]:
    """Show up to `most` messages from a sequence number on, of one session where it is named.

    Go on from `next` until it is 0. `states` are letters: a(ctive), d(eferred), s(cheduled); none for all.
    """
    of_session = () if session is None else (session,)
    return _read(replies.peeked, "pq_peek", keys.state, from_sequence, most, bytes_most, states, *of_session)


def states(keys: QueueKeys, first: int, last: int) -> Call[States]:
    """What state messages first..last are in; go on from the reply's `next` until it is 0."""
    return _read(replies.states, "pq_states", keys.state, first, last)


def accept_session(
    keys: QueueKeys, session_id: str | None = None, *, lock_ms: int = QUEUES_LOCK
) -> Call[AcceptedSession]:
    """Lock a session (SessionCannotBeLocked), or the next one that has something to receive."""
    words: Words = ("", lock_ms, "next") if session_id is None else (session_id, lock_ms)
    return _write(replies.accepted_session, "pq_accept_session", keys.state, *words)


def renew_session(keys: QueueKeys, session: SessionLock, *, lock_ms: int = QUEUES_LOCK) -> Call[int]:
    """Keep a session, and all that is held in it, for another `lock_ms`; gives until when, in ms since 1970."""
    return _write(replies.number, "pq_renew_session", keys.state, *session, lock_ms, repeatable=True)


def release_session(keys: QueueKeys, session: SessionLock) -> Call[int]:
    """Let a session go; what was held in it goes back, uncounted."""
    return _write(replies.number, "pq_release_session", keys.state, *session)


def get_session_state(keys: QueueKeys, session: SessionLock) -> Call[bytes | None]:
    """What was last kept with a session, if anything."""
    return _write(replies.state, "pq_session_state", keys.state, *session, "get", "", repeatable=True)


def set_session_state(keys: QueueKeys, session: SessionLock, value: bytes | None) -> Call[int]:
    """Keep something with a session; None removes it."""
    how = "clear" if value is None else "set"
    return _write(replies.number, "pq_session_state", keys.state, *session, how, value or b"")


def list_sessions(keys: QueueKeys, *, skip: int = 0, most: int = 100) -> Call[list[str]]:
    """The ids of sessions that have messages, a state or a lock."""
    return _read(replies.names, "pq_list_sessions", keys.state, skip, most)


def purge(keys: QueueKeys, *, states: str = "ads", upto: int = 0, cursor: int = 0) -> Call[Moved]:
    """Remove messages by state (letters as in `peek`), locked and claimed ones not.

    Call again with the reply's `upto`, and its `more` as the cursor, until that is 0.
    """
    return _write(replies.moved, "pq_purge", keys.state, states, upto, cursor, repeatable=True)


def delete_batch(keys: QueueKeys, *, most: int, enqueued_before_ms: int, upto: int = 0, cursor: int = 0) -> Call[Moved]:
    """Remove the first `most` messages that are ready to be received, and were enqueued before a time.

    Call again with the reply's `upto`, its `more` as the cursor, and so many less, until that is 0.
    """
    return _write(replies.moved, "pq_purge", keys.state, "a", upto, cursor, most, enqueued_before_ms)


def resubmit(keys: QueueKeys, *, most: int = 1000, upto: int = 0, sequences: Sequence[int] = ()) -> Call[Moved]:
    """Move dead letters back to their queue; `keys` are the dead-letter queue's.

    Without sequence numbers it takes them in order; call again with the reply's `upto` while there are `more`. With
    them, all or none (MessageNotFound).
    """
    return _write(replies.moved, "pq_resubmit", keys.state, most, upto, *sequences)


def apply(
    keys: QueueKeys,
    operations: Sequence[Operation],
    *,
    sender: str = "",
    number: int = 0,
    session: SessionLock | None = None,
) -> Call[list[int]]:
    """Carry out a transaction; gives for each operation the first sequence number of what it sent, or 0.

    Nothing at all where this very transaction was carried out before. A lock that is lost refuses all of it (LockLost).
    """
    words = [word for operation in operations for word in operation.words()]
    fixed = (sender, number, *_held(session))
    return _write(replies.places, "pq_apply", keys.state, *fixed, *words, repeatable=bool(sender))


def totals(keys: QueueKeys) -> Call[Totals]:
    """How the partition stands, once some of what is due is done."""
    return _write(replies.totals, "pq_totals", keys.state, repeatable=True)


def next_due(keys: QueueKeys) -> Call[int]:
    """When the next work that waits for its time falls due, in ms since 1970; -1: there is none."""
    return _read(replies.number, "pq_next_due", keys.state)


def sweep(keys: QueueKeys) -> Call[Swept]:
    """Do some of what is due, in the sub-queues too; gives `next_due`, and call again if that is now or before."""
    return _write(replies.swept, "pq_sweep", keys.state, repeatable=True)


def about() -> Call[About]:
    """Which library the broker runs."""
    return Call(("FCALL_RO", "pq_about", 0), replies.about, repeatable=True)


def claim_open(keys: QueueKeys, group: str, owner: str, lease_ms: int) -> Call[ClaimLog]:
    """Become the owner of a group's claim log; an older owner is fenced."""
    return _write(replies.claim_log, "pq_claim_open", keys.state, group, owner, lease_ms, repeatable=True)


def claim(  # noqa: PLR0917 -- the command's arguments, in its order
    keys: QueueKeys, group: str, owner: str, lease_ms: int, start: int, most: int, bytes_most: int = 0
) -> Call[Claimed]:
    """Claim ready messages so that the log reaches up to start + most. A repeat finds them claimed already.

    With `bytes_most` the claim ends with the message that reaches it.
    """
    words = (group, owner, lease_ms, start, most, bytes_most)
    return _write(replies.claimed, "pq_claim", keys.state, *words, repeatable=True)


def claim_renew(keys: QueueKeys, group: str, owner: str, lease_ms: int) -> Call[int]:
    """Keep the claims for longer; gives the lease's expiry in ms since 1970."""
    return _write(replies.number, "pq_claim_renew", keys.state, group, owner, lease_ms, repeatable=True)


def claim_acknowledge(keys: QueueKeys, group: str, owner: str, upto: int) -> Call[int]:
    """Remove claimed messages below `upto`; gives how many are left to remove: repeat until 0."""
    return _write(replies.number, "pq_claim_acknowledge", keys.state, group, owner, upto, repeatable=True)


def claimed(keys: QueueKeys, group: str, start: int, end: int) -> Call[ClaimedRange]:
    """Where the messages of ordinals start..end-1 of a claim log are."""
    return _read(replies.claimed_range, "pq_claimed", keys.state, group, start, end)
