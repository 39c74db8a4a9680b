"""The four ways to settle what a receiver holds, each joined with what is settled alike."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from partitionedqueue.broker import calls
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.operations import dead_letter_changes
from partitionedqueue.model import stored_message
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.lock_token import LockToken
from partitionedqueue.model.message import PropertyValue
from partitionedqueue_gateway.entities.background import Background
from partitionedqueue_gateway.entities.brokers import QueueBrokers
from partitionedqueue_gateway.entities.joining import Joiner, Lost, Told
from partitionedqueue_gateway.entities.session import Session

__all__ = ["Changes", "Lost", "Settling", "Told"]
Changes: TypeAlias = Mapping[str, PropertyValue] | None
"""Application properties to change in a message, None to take one away."""


class Settling:
    """Settles messages of one queue or sub-queue.

    The futures never fail by themselves but for `complete`'s: they have an entry for each message that was not settled.
    """

    def __init__(self, brokers: QueueBrokers, keys: QueueKeys, background: Background) -> None:
        self._keys = keys
        self._joiner = Joiner(brokers, background)
        self._completing = partial(calls.complete, keys)
        self.complete_then: Callable[[LockToken, Session | None, Told], None]
        """As `complete`, without a future, which would cost as much as all the rest: the last argument is called later,
        with None or the error. HOT."""
        self.complete_then = partial(self._joiner.one, "complete", self._completing)

    def complete(self, token: LockToken, session: Session | None = None) -> "asyncio.Future[None]":
        """Take a message out. Raises, by the future, LockLost, SessionLockLost, BrokerUnavailable."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._joiner.one("complete", self._completing, token, session, partial(_set, done))
        return done

    def complete_all(self, tokens: Sequence[LockToken], session: Session | None = None) -> "asyncio.Future[Lost]":
        """As `complete`, of several."""
        return self._joiner.several("complete", self._completing, tokens, session)

    def abandon(
        self,
        tokens: Sequence[LockToken],
        *,
        counted: bool = True,
        changes: Changes = None,
        session: Session | None = None,
    ) -> "asyncio.Future[Lost]":
        """Give messages back; `counted` false is AMQP's released. Raises InvalidMessage for changes that cannot be."""
        told = stored_message.encode_changes(changes or {})
        settle = partial(calls.abandon, self._keys, counted=counted, changes=told)
        return self._joiner.several(("abandon", counted, told), settle, tokens, session)

    def defer(
        self, tokens: Sequence[LockToken], *, changes: Changes = None, session: Session | None = None
    ) -> "asyncio.Future[Lost]":
        """Put messages aside. Raises InvalidMessage for changes that cannot be."""
        told = stored_message.encode_changes(changes or {})
        return self._joiner.several(("defer", told), partial(calls.defer, self._keys, changes=told), tokens, session)

    def dead_letter(
        self,
        tokens: Sequence[LockToken],
        *,
        reason: str = "",
        description: str = "",
        changes: Changes = None,
        session: Session | None = None,
    ) -> "asyncio.Future[Lost]":
        """Move messages to the dead-letter queue. Raises InvalidMessage for a reason or changes that cannot be."""
        changes = changes or {}
        told = dead_letter_changes(reason, description, changes)
        settle = partial(calls.dead_letter, self._keys, reason=reason, description=description, changes=changes)
        return self._joiner.several(("dead_letter", told), settle, tokens, session)


def _set(done: "asyncio.Future[None]", error: PartitionedQueueError | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
