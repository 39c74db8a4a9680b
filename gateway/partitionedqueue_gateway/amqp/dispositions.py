"""What a receiver says about messages, in Service Bus' terms (AMQP outcomes: complete, abandon, defer, dead-letter)."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from partitionedqueue.model.lock_token import LockToken
from partitionedqueue.model.message import PropertyValue
from partitionedqueue_gateway.amqp import arguments
from partitionedqueue_gateway.amqp.engine import outcomes
from partitionedqueue_gateway.amqp.engine.decoding import DecodeError
from partitionedqueue_gateway.amqp.engine.outcomes import Modified, Rejected, Released
from partitionedqueue_gateway.amqp.failures import InvalidRequest, NotSupported
from partitionedqueue_gateway.entities.entity import Entity
from partitionedqueue_gateway.entities.session import Session
from partitionedqueue_gateway.entities.settling import Lost

DEAD_LETTER: Final = "com.microsoft:dead-letter"
REASON: Final = "DeadLetterReason"
DESCRIPTION: Final = "DeadLetterErrorDescription"


@dataclass(frozen=True, slots=True)
class Complete:
    """Done with."""

    def settle(self, entity: Entity, tokens: Sequence[LockToken], session: Session | None) -> "asyncio.Future[Lost]":
        """Carry it out."""
        return entity.complete_all(tokens, session)


@dataclass(frozen=True, slots=True)
class Abandon:
    """Give it back; `counted` is false where the receiver has not looked at it (AMQP: released)."""

    counted: bool = True
    changes: Mapping[str, PropertyValue] = field(default_factory=dict)

    def settle(self, entity: Entity, tokens: Sequence[LockToken], session: Session | None) -> "asyncio.Future[Lost]":
        """Carry it out. Raises InvalidMessage."""
        return entity.abandon(tokens, counted=self.counted, changes=self.changes, session=session)


@dataclass(frozen=True, slots=True)
class Defer:
    """Put it aside."""

    changes: Mapping[str, PropertyValue] = field(default_factory=dict)

    def settle(self, entity: Entity, tokens: Sequence[LockToken], session: Session | None) -> "asyncio.Future[Lost]":
        """Carry it out. Raises InvalidMessage."""
        return entity.defer(tokens, changes=self.changes, session=session)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Move it to the dead-letter queue."""

    reason: str = ""
    description: str = ""
    changes: Mapping[str, PropertyValue] = field(default_factory=dict)

    def settle(self, entity: Entity, tokens: Sequence[LockToken], session: Session | None) -> "asyncio.Future[Lost]":
        """Carry it out. Raises InvalidMessage."""
        return entity.dead_letter(
            tokens, reason=self.reason, description=self.description, changes=self.changes, session=session
        )


Disposition = Complete | Abandon | Defer | DeadLetter


def read(state: bytes) -> Disposition:
    """What an outcome means. Raises InvalidRequest, NotSupported (a transaction's).

    A delivery that is settled without an outcome goes back, as one that was not looked at.
    """
    try:
        outcome = outcomes.read(state)
    except DecodeError as error:
        raise InvalidRequest(f"the outcome of a delivery is no AMQP: {error}") from error
    if outcome is None or isinstance(outcome, Released):
        return Abandon(counted=False)
    if isinstance(outcome, Modified):
        changes = arguments.changes_of(arguments.named(outcome.annotations, "message-annotations"))
        return Defer(changes) if outcome.undeliverable_here else Abandon(changes=changes)
    if isinstance(outcome, Rejected):
        return _dead_letter(outcome)
    if isinstance(outcome, outcomes.Accepted):
        return Complete()
    raise NotSupported("transactions are not served")


def answer_to(state: bytes, code: int) -> bytes:
    """The outcome that tells a client that its own was carried out: the same, and never an error.

    Clients take an error in the answer for a refusal, the one that they dead-lettered with too.
    """
    return outcomes.REJECTED if code == outcomes.REJECTED_CODE else state


def _dead_letter(outcome: Rejected) -> DeadLetter:
    if outcome.error is None:
        return DeadLetter()
    condition, description, info = outcome.error
    told = arguments.named(info, "info")
    reason, why = told.pop(REASON, None), told.pop(DESCRIPTION, None)
    if reason is None and condition != DEAD_LETTER:
        reason = condition
    if why is None:
        why = description
    if not isinstance(reason, str | None) or not isinstance(why, str | None):
        raise InvalidRequest(f"{REASON} and {DESCRIPTION} are text")
    return DeadLetter(str(reason or ""), str(why or ""), arguments.changes_of(told))
