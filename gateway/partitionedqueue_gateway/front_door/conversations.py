"""All conversations of this process, whatever they came in by, so that they can be brought to their end together."""

import asyncio
import logging

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.front_door.conversation import Conversation, OpenConversation, Wire

_log = logging.getLogger(__name__)


class Conversations:
    """Begins them, cuts off those that never come to the point, and ends them in good order."""

    def __init__(self, open_conversation: OpenConversation) -> None:
        self._open = open_conversation
        self._under_way: dict[Wire, tuple[Conversation, asyncio.TimerHandle]] = {}
        self._draining = False

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def full(self) -> bool:
        """Whether no further one may begin."""
        return self._draining or len(self._under_way) >= limits.AMQP_CONNECTIONS_MAX

    def begin(self, wire: Wire) -> Conversation:
        """One over a connection that has just been made."""
        conversation = self._open(wire)
        patience = asyncio.get_running_loop().call_later(limits.GREETING_S_MAX, self._look, wire, conversation)
        self._under_way[wire] = conversation, patience
        return conversation

    def end(self, wire: Wire) -> None:
        """Its connection is no more."""
        conversation, patience = self._under_way.pop(wire)
        patience.cancel()
        conversation.connection_lost()

    async def drain(self) -> None:
        """Let each tell its client to go elsewhere; after `limits.END_S_MAX` what is left is cut off."""
        self._draining = True
        if not self._under_way:
            return
        _log.info("ending %d AMQP connections", len(self._under_way))
        drains = [asyncio.ensure_future(one.drain()) for one, _ in self._under_way.values()]
        await asyncio.wait(drains, timeout=limits.END_S_MAX)
        for drain in drains:
            drain.cancel()
        for result in await asyncio.gather(*drains, return_exceptions=True):
            if isinstance(result, Exception):
                _log.error("a conversation could not be brought to its end", exc_info=result)
        for wire in [*self._under_way]:
            wire.abort()

    @staticmethod
    def _look(wire: Wire, conversation: Conversation) -> None:
        if not conversation.opened:
            _log.info("%s has not opened its connection within %g s", wire.peer, limits.GREETING_S_MAX)
            wire.abort()
