"""Links over which clients receive from a queue, by credit: peek-lock, or receive-and-delete."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Final

from partitionedqueue.model import amqp_message
from partitionedqueue.model import limits as model_limits
from partitionedqueue.model.amqp_message import Shown
from partitionedqueue.model.errors import InvalidMessage, PartitionedQueueError
from partitionedqueue.model.lock_token import LockToken, shown_as
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.policies import Right
from partitionedqueue_gateway.amqp import conditions, dispositions
from partitionedqueue_gateway.amqp.dispositions import Complete, Disposition
from partitionedqueue_gateway.amqp.endpoint import Delivered, Endpoint
from partitionedqueue_gateway.amqp.engine import outcomes
from partitionedqueue_gateway.amqp.engine.link import SendingLink
from partitionedqueue_gateway.amqp.engine.outcomes import ACCEPTED, ACCEPTED_CODE
from partitionedqueue_gateway.amqp.failures import NotAllowed
from partitionedqueue_gateway.amqp.peer import Peer
from partitionedqueue_gateway.entities.addresses import SubQueue
from partitionedqueue_gateway.entities.entity import Entity
from partitionedqueue_gateway.entities.session import Session
from partitionedqueue_gateway.entities.settling import Lost
from partitionedqueue_gateway.entities.taken import Taken

_SETTLED: Final = 1  # the sender's settle mode: the client asked for messages that need no settling
_SEQUENCE_BITS: Final = model_limits.SEQUENCE_BITS
_made: Final = tuple.__new__
"""A named tuple's own way to be made costs three times as much."""
_log = logging.getLogger(__name__)


def open_receiver(peer: Peer, link: SendingLink, entity: Entity, path: str) -> None:
    """Let a client receive without a session. Raises what forbids it: NotAllowed, EntityDisabled."""
    if entity.has_sessions:
        raise NotAllowed(
            "It is not possible for an entity that requires sessions to create a non-sessionful message receiver."
        )
    endpoint = ReceiverLink(peer, link, entity, path)
    peer.add(endpoint)
    link.attach(source=link.source, target=link.target, properties={})
    endpoint.credit_changed()


class ReceiverLink(Endpoint):
    """One such link: wants what its client has given credit for, up to bounds of its own, and only while it reads."""

    rights = (Right.LISTEN,)

    def __init__(
        self, peer: Peer, link: SendingLink, entity: Entity, path: str, session: Session | None = None
    ) -> None:
        super().__init__(link, path)
        self.link: SendingLink = link
        self._peer = peer
        self.entity = entity
        self._session = session
        self._seal = entity.seal
        self._deletes = link.snd_settle_mode == _SETTLED
        self._source = entity.address.name if entity.address.sub_queue is not SubQueue.NONE else ""
        self._kept: deque[Taken] = deque()  # handed over, and the client's window is closed
        self._message_bytes = limits.RECEIVED_BYTES_GUESS  # of those that came lately
        self._draining: asyncio.Task[None] | None = None
        self._settling = 0  # deliveries whose outcome is to be answered
        self._leaving = False
        self._receiver = entity.receiver(self._take, delete=self._deletes, session=session, on_lost=self._lost)

    def credit_changed(self) -> None:
        """Send what was kept, then want as much as there is credit for."""
        while self._kept and self.link.sendable:
            self._send(self._kept.popleft())
        self._want()
        if self.link.draining and self._draining is None:
            self._draining = self._peer.begin(self._drain())

    def writable(self) -> None:
        """The client reads again."""
        self.credit_changed()

    def _want(self) -> None:
        receiver = self._receiver
        credit = self.link.credit - len(self._kept)
        if receiver.wanted > credit:  # it was withdrawn
            receiver.stop()
        if self._peer.reads and not self._kept and not self._leaving:
            most = max(1, int(limits.RECEIVES_BYTES_WANTED / self._message_bytes))
            more = min(credit, limits.RECEIVES_WANTED_MAX, most) - receiver.wanted
            if more > 0:
                receiver.want(more)

    def _take(self, messages: Sequence[Taken]) -> None:
        """Messages have come. HOT."""
        size = sum([len(one.stored) for one in messages]) / len(messages)
        self._message_bytes += (size - self._message_bytes) / 2
        link = self.link
        for one in messages:
            if link.sendable and not self._kept:
                self._send(one)
            else:
                self._kept.append(one)
        self._want()
        self._peer.answer_soon()

    def _send(self, one: Taken) -> None:
        """HOT."""
        partition, sequence, lock, deliveries, enqueued_ms, locked_until_ms, stored = one
        number = partition << _SEQUENCE_BITS | sequence
        uuid_bytes, tag = shown_as(number, lock ^ self._seal)
        if not lock:
            uuid_bytes = b""
        shown = _made(Shown, (number, enqueued_ms, deliveries - 1, locked_until_ms, uuid_bytes, 0, self._source))
        try:
            payload = amqp_message.write(stored, shown)
        except InvalidMessage:
            _log.exception("message %d of '%s' cannot be shown to its receiver", number, self.path)
            return  # its lock expires, and its deliveries are counted: in the end it is dead-lettered
        self.link.send(payload, tag, settled=self._deletes, context=_made(LockToken, (partition, sequence, lock)))

    async def _drain(self) -> None:
        """Give what is ready now, then the rest of the credit back."""
        link, receiver = self.link, self._receiver
        try:
            while link.draining and link.credit > 0 and self._peer.reads and not self._kept:
                before = link.credit
                self._want()
                await receiver.drain()
                if link.credit == before:
                    break
        finally:
            self._draining = None
        if not self._kept:
            link.drained()
            self._peer.answer_soon()

    def disposed(self, deliveries: Delivered, code: int, state: bytes, *, settled: bool) -> None:
        """Settle, and answer with the same outcome when that is done. HOT."""
        if code == ACCEPTED_CODE and len(deliveries) == 1:
            delivery_id, token = deliveries[0]
            if settled:
                self.entity.complete_then(token, self._session, _ignore)
                return
            self._settling += 1
            self.entity.complete_then(token, self._session, partial(self._completed, delivery_id))
            return
        try:
            meant: Disposition = Complete() if code == ACCEPTED_CODE else dispositions.read(state)
            settling = meant.settle(self.entity, [token for _, token in deliveries], self._session)
        except PartitionedQueueError as error:
            if not settled:
                self._refuse(deliveries, error)
            return
        answered = [] if settled else deliveries
        self._settling += len(answered)
        settling.add_done_callback(partial(self._settled, answered, dispositions.answer_to(state, code)))

    def _completed(self, delivery_id: int, error: PartitionedQueueError | None) -> None:
        self._settling -= 1
        state = ACCEPTED if error is None else outcomes.rejected(conditions.amqp_error(error))
        self.link.settle(delivery_id, state)
        self._peer.answer_soon()

    def _settled(self, deliveries: Delivered, answer: bytes, future: "asyncio.Future[Lost]") -> None:
        self._settling -= len(deliveries)
        if future.cancelled():
            return
        if (error := future.exception()) is not None:
            self._refuse(deliveries, error)
            return
        lost = future.result()
        for delivery_id, token in deliveries:
            if lost and token in lost:
                self.link.settle(delivery_id, outcomes.rejected(conditions.amqp_error(lost[token])))
            else:
                self.link.settle(delivery_id, answer)
        self._peer.answer_soon()

    def _refuse(self, deliveries: Delivered, error: BaseException) -> None:
        state = outcomes.rejected(conditions.amqp_error(error))
        for delivery_id, _ in deliveries:
            self.link.settle(delivery_id, state)
        self._peer.answer_soon()

    def _lost(self, error: PartitionedQueueError) -> None:
        """Nothing will come any more."""
        if not self.link.ended:
            self._peer.detach(self.link, error)

    def close(self) -> None:
        """Want nothing, and give back at once what the client has not had.

        What was delivered stays locked for it: clients settle it by the management node, or over another link.
        """
        kept, self._kept = self._kept, deque()
        if kept:
            self._receiver.give_back([*kept])
        self._receiver.close()
        if self._draining is not None:
            self._draining.cancel()

    def begin_drain(self) -> bool:
        """Take nothing more; what the client has settled is answered first, or it would take it for lost."""
        if not self._leaving:
            self._leaving = True
            self._receiver.stop()
        return self._settling > 0


def _ignore(error: PartitionedQueueError | None) -> None:
    """The client settled the message by itself, and waits for no answer."""
