"""Links over which clients send to a queue: each message is answered once it is durable, in the order of that."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from partitionedqueue.broker.lane import Numbers
from partitionedqueue.model.amqp_message import BATCH_FORMAT, read, read_batch
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.storable import Storable
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.policies import Right
from partitionedqueue_gateway.amqp import conditions, link_properties
from partitionedqueue_gateway.amqp.endpoint import Endpoint
from partitionedqueue_gateway.amqp.engine import outcomes
from partitionedqueue_gateway.amqp.engine.events import MessageReceived
from partitionedqueue_gateway.amqp.engine.link import ReceivingLink
from partitionedqueue_gateway.amqp.engine.outcomes import ACCEPTED
from partitionedqueue_gateway.amqp.engine.values import ULong
from partitionedqueue_gateway.amqp.failures import NotSupported
from partitionedqueue_gateway.amqp.peer import Peer
from partitionedqueue_gateway.entities.entity import Entity

_BATCH_BYTES_MAX: Final = "com.microsoft:max-message-batch-size"


def open_sender(peer: Peer, link: ReceivingLink, entity: Entity, path: str) -> None:
    """Let a client send. Raises what forbids it: EntityNotFound, SendNotAllowed, EntityDisabled, NotSupported."""
    entity.check_sending()
    if link_properties.text(link, link_properties.TRANSFER_DESTINATION):
        raise NotSupported("sending via another entity is not served; send to the destination itself")
    peer.add(SenderLink(peer, link, entity, path))
    bytes_max = entity.message_bytes_max
    properties = {_BATCH_BYTES_MAX: ULong(bytes_max)}
    link.attach(source=link.source, target=link.target, properties=properties, max_message_size=bytes_max)
    link.keep_granted(limits.SENDS_GRANTED)


class SenderLink(Endpoint):
    """One such link; the client's message counts against its credit until it is settled."""

    rights = (Right.SEND,)

    def __init__(self, peer: Peer, link: ReceivingLink, entity: Entity, path: str) -> None:
        super().__init__(link, path)
        self.link: ReceivingLink = link
        self._peer = peer
        self._entity = entity
        self._bytes_max = entity.message_bytes_max
        self._new_message_id = peer.services.new_message_id
        self._within_s = link_properties.timeout_s(link, limits.AMQP_OPERATION_S_MAX)
        self._under_way = 0
        self._draining = False
        self._unwatch = entity.watch(self._lost)

    def message(self, event: MessageReceived) -> None:
        """Store it, and answer when that is done. HOT."""
        _, delivery_id, _, message_format, settled, state, payload = event
        try:
            if message_format or state:
                messages = self._read(payload, message_format, state)
            else:
                messages = (read(payload, new_message_id=self._new_message_id, bytes_most=self._bytes_max),)
            size = len(payload) + limits.SEND_BYTES_BESIDE
            told = partial(self._stored, size, None if settled else delivery_id)
            self._entity.send_then(messages, told, self._within_s)
        except PartitionedQueueError as error:
            self._refuse(event, error)
            return
        self._under_way += 1
        self._peer.unanswered_bytes += size

    def _read(self, payload: bytes, message_format: int, state: bytes) -> Sequence[Storable]:
        """What is not simply one message."""
        if state and outcomes.code_of(state) == outcomes.TRANSACTIONAL_CODE:
            raise NotSupported("transactions are not served")
        if message_format == BATCH_FORMAT:
            return read_batch(payload, new_message_id=self._new_message_id, bytes_most=self._bytes_max)
        if message_format:
            raise NotSupported(f"message format 0x{message_format:x} is not served; 0 and 0x80013700 are")
        return (read(payload, new_message_id=self._new_message_id, bytes_most=self._bytes_max),)

    def _stored(self, size: int, delivery_id: int | None, outcome: Numbers | Exception) -> None:
        self._under_way -= 1
        self._peer.unanswered_bytes -= size
        if delivery_id is not None:
            state = outcomes.rejected(conditions.amqp_error(outcome)) if isinstance(outcome, Exception) else ACCEPTED
            self.link.settle(delivery_id, state)
        self._peer.answer_soon()

    def _refuse(self, event: MessageReceived, error: PartitionedQueueError) -> None:
        if not event.settled:
            self.link.settle(event.delivery_id, outcomes.rejected(conditions.amqp_error(error)))
            self._peer.answer_soon()

    def _lost(self, error: PartitionedQueueError) -> None:
        """Nobody sends here any more."""
        self._peer.detach(self.link, error)

    def close(self) -> None:
        """What is under way is stored all the same; its sender does not hear of it, and sends it again."""
        self._unwatch()

    def begin_drain(self) -> bool:
        """Grant nothing more; what was sent is stored and answered first."""
        if not self._draining:
            self._draining = True
            self.link.keep_granted(0)
            self.link.grant(0)
        return self._under_way > 0
