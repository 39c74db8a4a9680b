"""The life of a message in one partition, as a table that code and tests read alike."""

from collections.abc import Mapping
from enum import Enum, auto


class State(Enum):
    """Where a message is."""

    READY = auto()
    LOCKED = auto()
    CLAIMED = auto()
    GONE = auto()


class Move(Enum):
    """What can happen to it."""

    RECEIVE = auto()
    RECEIVE_AND_DELETE = auto()
    COMPLETE = auto()
    ABANDON = auto()
    RELEASE = auto()
    RENEW_LOCK = auto()
    LOCK_EXPIRED = auto()
    CLAIM = auto()
    ACKNOWLEDGE = auto()
    CLAIM_LAPSED = auto()


LIFECYCLE: Mapping[State, Mapping[Move, State]] = {
    State.READY: {Move.RECEIVE: State.LOCKED, Move.RECEIVE_AND_DELETE: State.GONE, Move.CLAIM: State.CLAIMED},
    State.LOCKED: {
        Move.COMPLETE: State.GONE,
        Move.ABANDON: State.READY,
        Move.RELEASE: State.READY,
        Move.RENEW_LOCK: State.LOCKED,
        Move.LOCK_EXPIRED: State.READY,
    },
    State.CLAIMED: {Move.ACKNOWLEDGE: State.GONE, Move.CLAIM_LAPSED: State.READY},
    State.GONE: {},
}

COUNTS_A_DELIVERY = frozenset({Move.ABANDON, Move.LOCK_EXPIRED, Move.CLAIM_LAPSED})
"""Moves after which the next delivery shows a higher count; a release does not."""
