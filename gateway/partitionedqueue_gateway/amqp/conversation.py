"""One client's connection: the engine's events on one side, queues on the other."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.failures import TokenRefused
from partitionedqueue_gateway.amqp import attaching, conditions
from partitionedqueue_gateway.amqp.backlog import Reading, Share
from partitionedqueue_gateway.amqp.engine import events
from partitionedqueue_gateway.amqp.engine.connection import Connection, ConnectionSettings
from partitionedqueue_gateway.amqp.engine.link import Link
from partitionedqueue_gateway.amqp.engine.performatives import AmqpError
from partitionedqueue_gateway.amqp.failures import LinkDetached, TokenLapsed
from partitionedqueue_gateway.amqp.peer import Peer, Services

__all__ = ["Conversation", "Services", "Wire"]

MECHANISMS: Final = ("ANONYMOUS", "EXTERNAL", "MSSBCBS")
"""Of SASL: who they are is shown to `$cbs`, .NET's by the third name."""
MECHANISMS_ENCRYPTED: Final = (*MECHANISMS, "PLAIN")
"""PLAIN is a policy's name and its key itself."""
_STORING, _ANSWERING = "storing", "answering"
"""Why a client is not read from: what it sent waits for brokers, or what it was told for itself."""
_LEAVING: Final = "this gateway is being replaced; connect again"
_log = logging.getLogger(__name__)


class Wire(Protocol):
    """What carries bytes to the client and from it; the front door's."""

    @property
    def peer(self) -> str:
        """Who it is, for logs."""

    @property
    def encrypted(self) -> bool:
        """Whether nobody on the way can read it."""

    def write(self, buffers: Sequence[bytes]) -> None:
        """Send, without waiting."""

    def pause_reading(self) -> None:
        """Hand nothing more over."""

    def resume_reading(self) -> None:
        """Go on."""

    def close(self) -> None:
        """Send what was written, then close."""

    def abort(self) -> None:
        """Close at once."""


class Conversation:
    """One connection; see the front door's Conversation for what it is told, and when."""

    def __init__(self, wire: Wire, services: Services) -> None:
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        mechanisms = MECHANISMS_ENCRYPTED if wire.encrypted else MECHANISMS
        settings = ConnectionSettings(container_id=services.container_id, mechanisms=mechanisms)
        self._connection = Connection(settings, self._loop.time())
        self._peer = Peer(services, self._answer_soon, self._watch_claims)
        self._reading = Reading(wire.pause_reading, wire.resume_reading)
        self._share = Share(
            services.backlog, partial(self._reading.stop, _STORING), partial(self._reading.go_on, _STORING)
        )
        self._answering = False
        self._over = False
        self._draining = False
        self._ended = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._claims_timer: asyncio.TimerHandle | None = None
        self._stranger_timer: asyncio.TimerHandle | None = None
        self.opened = False
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            events.Dispositions: self._disposed,
            events.CreditChanged: self._credit_changed,
            events.AttachRequested: self._attach,
            events.Detached: self._detached,
            events.SaslInit: self._log_in,
            events.Opened: self._open,
            events.ConnectionEnded: self._end,
        }
        self._tick()

    # What the front door tells.

    def data_received(self, data: bytes) -> None:
        """The client has said something. HOT."""
        self._answering = True  # below, for all of it at once
        self._handle(self._connection.receive_data(data, self._loop.time()))
        self._answer()

    def pause_writing(self) -> None:
        """The client does not read: nothing more is taken from queues for it, nor heard, for that would be answered."""
        self._peer.reads = False
        self._reading.stop(_ANSWERING)

    def resume_writing(self) -> None:
        """It reads again."""
        self._peer.reads = True
        self._reading.go_on(_ANSWERING)
        for endpoint in [*self._peer.endpoints.values()]:
            endpoint.writable()
        self._answer_soon()

    def connection_lost(self) -> None:
        """It is over."""
        self._over = True
        for timer in (self._timer, self._claims_timer, self._stranger_timer):
            if timer is not None:
                timer.cancel()
        self._handle(self._connection.connection_lost())
        self._peer.close()
        self._share.leave()
        self._ended.set()

    async def drain(self) -> None:
        """This process ends: links go when their clients have heard of what they sent, and settled."""
        self._draining = True
        leaving = LinkDetached(_LEAVING)
        until_s = self._loop.time() + limits.DRAIN_SENDS_S_MAX
        for link, endpoint in [*self._peer.endpoints.items()]:
            if not endpoint.begin_drain():
                self._peer.detach(link, leaving)
        while self._loop.time() < until_s and self._is_busy():  # noqa: ASYNC110 -- sends are told of one by one
            await asyncio.sleep(limits.DRAIN_LOOK_S)
        for link in [*self._peer.endpoints]:
            self._peer.detach(link, leaving)
        if not self._over and not self._connection.ended:
            self._connection.close(AmqpError(conditions.CONNECTION_FORCED.symbol, _LEAVING))
            self._answer_soon()
            try:
                async with asyncio.timeout(limits.PEER_CLOSE_S_MAX):
                    await self._ended.wait()
            except TimeoutError:
                _log.info("%s did not answer the close", self._wire.peer)
        self._wire.close()

    def _is_busy(self) -> bool:
        busy = [endpoint.begin_drain() for endpoint in self._peer.endpoints.values()]
        return any(busy)

    # What the engine tells.

    def _handle(self, told: Sequence[events.Event]) -> None:
        handlers = self._handlers
        for event in told:
            if isinstance(event, events.MessageReceived):  # by far the most
                if (endpoint := event.link.context) is not None:
                    endpoint.message(event)
            elif (handler := handlers.get(type(event))) is not None:
                handler(event)

    def _disposed(self, event: events.Dispositions) -> None:
        deliveries, code, state, settled = event
        if len(deliveries) == 1:
            link, delivery_id, context = deliveries[0]
            if link.context is not None:
                link.context.disposed([(delivery_id, context)], code, state, settled=settled)
            return
        by_link: dict[Link, list[tuple[int, Any]]] = {}
        for link, delivery_id, context in deliveries:
            by_link.setdefault(link, []).append((delivery_id, context))
        for link, mine in by_link.items():
            if link.context is not None:
                link.context.disposed(mine, code, state, settled=settled)

    def _credit_changed(self, event: events.CreditChanged) -> None:
        endpoint = event.link.context
        if endpoint is not None:
            endpoint.credit_changed()

    def _attach(self, event: events.AttachRequested) -> None:
        if self._draining:
            event.link.refuse(conditions.amqp_error(LinkDetached(_LEAVING)))
        else:
            attaching.attach(self._peer, event.link)

    def _detached(self, event: events.Detached) -> None:
        self._peer.forget(event.link)

    def _log_in(self, event: events.SaslInit) -> None:
        ok = True
        if event.mechanism == "PLAIN":
            ok = self._log_in_plainly(event.response)
        self._handle(self._connection.sasl_outcome(ok=ok))

    def _log_in_plainly(self, response: bytes) -> bool:
        """RFC 4616: who to act as, the user and the password, with NULs between."""
        parts = response.split(b"\0")
        if len(parts) != 3:
            return False
        try:
            self._peer.standing.log_in(parts[1].decode(), parts[2].decode())
        except (TokenRefused, UnicodeDecodeError):
            return False
        return True

    def _open(self, _: events.Opened) -> None:
        self.opened = True
        self._stranger_timer = self._loop.call_later(limits.STRANGERS_S_MAX, self._look_who)
        self._tick()

    def _look_who(self) -> None:
        """Whoever has not said by now who they are keeps nobody else out."""
        if not self._peer.standing.is_somebody and not self._connection.ended:
            words = f"no token was put to $cbs within {limits.STRANGERS_S_MAX:g} s"
            self._connection.close(AmqpError(conditions.CONNECTION_FORCED.symbol, words))
            self._tick()

    def _end(self, event: events.ConnectionEnded) -> None:
        if event.error is not None and not event.by_peer and not self._over:
            _log.info("%s was cut off: %s: %s", self._wire.peer, event.error.condition, event.error.description)
        self._peer.close()
        self._ended.set()
        if not self._over:
            self._answer()
            self._wire.close()

    # What is said, and the timers.

    def _answer_soon(self) -> None:
        if not self._answering:
            self._answering = True
            self._loop.call_soon(self._answer)

    def _answer(self) -> None:
        self._answering = False
        if not self._over and (buffers := self._connection.data_to_send()):
            self._wire.write(buffers)
        self._share.update(self._peer.unanswered_bytes)

    def _tick(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        next_s, told = self._connection.tick(self._loop.time())
        self._handle(told)
        if next_s is not None and not self._over:
            self._timer = self._loop.call_at(next_s, self._tick)
        self._answer_soon()

    def _watch_claims(self) -> None:
        """Be there when the first of the client's claims lapses."""
        if self._claims_timer is not None:
            self._claims_timer.cancel()
            self._claims_timer = None
        in_s = self._peer.standing.first_end_s() - time.time()
        if not self._over and in_s < math.inf:
            in_s = min(max(0.0, in_s), limits.CLAIMS_LOOK_S_MAX)
            self._claims_timer = self._loop.call_later(in_s, self._claims_lapsed)

    def _claims_lapsed(self) -> None:
        """Links that stand on nothing any more are dropped, as Azure does."""
        self._peer.standing.forget_lapsed(time.time())
        for link, endpoint in [*self._peer.endpoints.items()]:
            if endpoint.rights and not self._peer.allow(endpoint):
                self._peer.detach(link, TokenLapsed())
        self._watch_claims()
