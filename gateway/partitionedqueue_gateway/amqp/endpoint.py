"""What stands behind a link, as its `context`: told of what comes over it."""

from collections.abc import Sequence
from typing import Any

from partitionedqueue_gateway.access.policies import Right
from partitionedqueue_gateway.amqp.engine.events import MessageReceived
from partitionedqueue_gateway.amqp.engine.link import Link

Delivered = Sequence[tuple[int, Any]]
"""Deliveries, by id, each with the context that it was sent with."""


class Endpoint:
    """Hears what it overrides; the rest cannot come over its kind of link, or says nothing to it."""

    rights: tuple[Right, ...] = ()
    """Any of them is enough to keep the link; none: nobody needs one."""

    def __init__(self, link: Link, path: str) -> None:
        """`path`: the entity's, as the client calls it."""
        self.link = link
        self.path = path

    def message(self, event: MessageReceived) -> None:
        """The client has sent one."""

    def credit_changed(self) -> None:
        """There may be more to send now, or the client wants its credit back."""

    def disposed(self, deliveries: Delivered, code: int, state: bytes, *, settled: bool) -> None:
        """The client says what becomes of deliveries, as `events.Dispositions`."""

    def writable(self) -> None:
        """The client reads again."""

    def close(self) -> None:
        """The link is over: give back what it holds. Harmless when done twice."""

    def begin_drain(self) -> bool:
        """This process ends: take on nothing more; whether something is under way that must be waited for."""
        return False
