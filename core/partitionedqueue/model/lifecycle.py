"""The life of a message in one partition, as a table that code and tests read alike.

In a sub-queue a message begins it anew, as READY; nothing expires there, and deliveries have no limit.
"""

from collections.abc import Mapping
from enum import Enum, auto


class State(Enum):
    """Where a message is."""

    READY = auto()
    LOCKED = auto()
    DEFERRED = auto()
    DEFERRED_LOCKED = auto()  # received by its sequence number
    SCHEDULED = auto()
    CLAIMED = auto()
    DEAD_LETTERED = auto()  # in the dead-letter queue
    GONE = auto()


class Move(Enum):
    """What can happen to it: by a receiver, by an owner of the queue, or because its time has come."""

    RECEIVE = auto()
    RECEIVE_AND_DELETE = auto()
    RECEIVE_DEFERRED = auto()
    RECEIVE_DEFERRED_AND_DELETE = auto()
    COMPLETE = auto()
    ABANDON = auto()
    RELEASE = auto()
    DEFER = auto()
    DEAD_LETTER = auto()
    RENEW_LOCK = auto()

    CLAIM = auto()
    ACKNOWLEDGE = auto()

    CANCEL_SCHEDULED = auto()
    PURGE = auto()
    RESUBMIT = auto()

    LOCK_EXPIRED = auto()
    CLAIM_LAPSED = auto()
    DELIVERIES_EXCEEDED = auto()  # in place of an abandon or a lapse that would count the last delivery allowed
    SCHEDULED_TIME_CAME = auto()
    EXPIRED = auto()
    EXPIRED_TO_DEAD_LETTERS = auto()  # in place of EXPIRED where deadLetteringOnMessageExpiration is set


LIFECYCLE: Mapping[State, Mapping[Move, State]] = {
    State.READY: {
        Move.RECEIVE: State.LOCKED,
        Move.RECEIVE_AND_DELETE: State.GONE,
        Move.CLAIM: State.CLAIMED,
        Move.PURGE: State.GONE,
        Move.EXPIRED: State.GONE,
        Move.EXPIRED_TO_DEAD_LETTERS: State.DEAD_LETTERED,
    },
    # What is locked does not expire: it may when it is given back.
    State.LOCKED: {
        Move.COMPLETE: State.GONE,
        Move.ABANDON: State.READY,
        Move.RELEASE: State.READY,
        Move.DEFER: State.DEFERRED,
        Move.DEAD_LETTER: State.DEAD_LETTERED,
        Move.RENEW_LOCK: State.LOCKED,
        Move.LOCK_EXPIRED: State.READY,
        Move.DELIVERIES_EXCEEDED: State.DEAD_LETTERED,
    },
    # What is deferred expires no sooner than it is asked for.
    State.DEFERRED: {
        Move.RECEIVE_DEFERRED: State.DEFERRED_LOCKED,
        Move.RECEIVE_DEFERRED_AND_DELETE: State.GONE,
        Move.PURGE: State.GONE,
        Move.EXPIRED: State.GONE,
        Move.EXPIRED_TO_DEAD_LETTERS: State.DEAD_LETTERED,
    },
    State.DEFERRED_LOCKED: {
        Move.COMPLETE: State.GONE,
        Move.ABANDON: State.DEFERRED,
        Move.RELEASE: State.DEFERRED,
        Move.DEFER: State.DEFERRED,
        Move.DEAD_LETTER: State.DEAD_LETTERED,
        Move.RENEW_LOCK: State.DEFERRED_LOCKED,
        Move.LOCK_EXPIRED: State.DEFERRED,
        Move.DELIVERIES_EXCEEDED: State.DEAD_LETTERED,
    },
    State.SCHEDULED: {
        Move.SCHEDULED_TIME_CAME: State.READY,
        Move.CANCEL_SCHEDULED: State.GONE,
        Move.PURGE: State.GONE,
    },
    State.CLAIMED: {
        Move.ACKNOWLEDGE: State.GONE,
        Move.CLAIM_LAPSED: State.READY,
        Move.DELIVERIES_EXCEEDED: State.DEAD_LETTERED,
    },
    State.DEAD_LETTERED: {Move.RESUBMIT: State.READY},
    State.GONE: {},
}

COUNTS_A_DELIVERY = frozenset(
    {
        Move.ABANDON,
        Move.DEFER,
        Move.DEAD_LETTER,
        Move.LOCK_EXPIRED,
        Move.CLAIM_LAPSED,
        Move.DELIVERIES_EXCEEDED,
    }
)
"""Moves after which the next delivery shows a higher count; a release does not."""

NUMBERED_ANEW = frozenset({Move.SCHEDULED_TIME_CAME, Move.RESUBMIT})
"""Moves that make a new message of it: with a sequence number at the end of the queue, and no deliveries."""
