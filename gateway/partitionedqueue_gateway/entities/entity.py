"""A queue in use, or one of its sub-queues: everything that a wire needs of it."""

import asyncio
from collections.abc import Callable, Sequence
from weakref import WeakSet

from partitionedqueue.broker import calls
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.lane import Numbers, Told
from partitionedqueue.broker.sender import QueueSender
from partitionedqueue.model import partitioning
from partitionedqueue.model.errors import (
    BrokerUnavailable,
    EntityDisabled,
    PartitionedQueueError,
    SessionRequired,
    SessionsNotSupported,
)
from partitionedqueue.model.lock_token import LockToken, seal_of
from partitionedqueue.model.queue_spec import QueueSpec, QueueStatus
from partitionedqueue.model.storable import Storable
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities import clearing, deferred
from partitionedqueue_gateway.entities.accepting import NextSessions, accept_named
from partitionedqueue_gateway.entities.addresses import EntityAddress, SubQueue
from partitionedqueue_gateway.entities.background import Background
from partitionedqueue_gateway.entities.brokers import QueueBrokers
from partitionedqueue_gateway.entities.browsing import Browser
from partitionedqueue_gateway.entities.deferred import DeferredMessages
from partitionedqueue_gateway.entities.deleting import DeletingFanIn
from partitionedqueue_gateway.entities.failures import SendNotAllowed
from partitionedqueue_gateway.entities.messages import MessageFanIn
from partitionedqueue_gateway.entities.receiver import OnLost, OnMessages, Receiver
from partitionedqueue_gateway.entities.session import Session
from partitionedqueue_gateway.entities.settling import Settling
from partitionedqueue_gateway.entities.taken import Peeked, Taken

_NO_SENDS = (QueueStatus.DISABLED, QueueStatus.SEND_DISABLED)
_NO_RECEIVES = (QueueStatus.DISABLED, QueueStatus.RECEIVE_DISABLED)


class Entity:
    """Everything raises EntityNotFound once the queue has gone, and otherwise the domain's errors as they come."""

    def __init__(self, address: EntityAddress, spec: QueueSpec, brokers: QueueBrokers, background: Background) -> None:
        self.address = address
        self.spec = spec
        """As it is now: a queue may change while it is used."""
        self.gone: PartitionedQueueError | None = None
        self._brokers = brokers
        self._background = background
        queue = brokers.queue
        self.seal = seal_of(queue.uid, *queue.name, address.sub_queue.value)
        """Of its lock tokens, where clients see them."""
        self._keys = _keys_of(queue.keys, address.sub_queue)
        settling = Settling(brokers, self._keys, background)
        self.complete = settling.complete
        self.complete_then = settling.complete_then
        self.complete_all = settling.complete_all
        self.abandon = settling.abandon
        self.defer = settling.defer
        self.dead_letter = settling.dead_letter
        self._browser = Browser(brokers.clients, self._keys)
        self._deferred = DeferredMessages(brokers.clients, self._keys)
        self._takes_nothing: PartitionedQueueError | None = None  # why nothing may be sent, if so
        self._sender = QueueSender(
            brokers.clients,
            self._keys,
            requires_duplicate_detection=spec.requires_duplicate_detection,
            requires_session=spec.requires_session,
        )
        self._fan_ins: dict[bool, MessageFanIn] = {}
        self._session_fan_ins: WeakSet[MessageFanIn] = WeakSet()  # each lives as long as its receiver
        self._sessions: WeakSet[Session] = WeakSet()
        self._next_sessions: NextSessions | None = None
        self._watchers: dict[object, OnLost] = {}
        self.changed(spec)

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self._brokers.clients)

    @property
    def message_bytes_max(self) -> int:
        """Of one message, and of a batch."""
        return self.spec.message_bytes_max

    @property
    def has_sessions(self) -> bool:
        """Whether it is received from by session; a sub-queue never is."""
        return self.spec.requires_session and self.address.sub_queue is SubQueue.NONE

    def watch(self, told: OnLost) -> Callable[[], None]:
        """Have somebody who sends told when that is at an end: EntityNotFound, EntityDisabled. Gives what undoes it."""
        key = object()
        self._watchers[key] = told

        def undo() -> None:
            self._watchers.pop(key, None)

        return undo

    # ---- sending

    def check_sending(self) -> None:
        """Raises what a send would be refused with: EntityNotFound, SendNotAllowed, EntityDisabled."""
        if self._takes_nothing is not None:
            raise self._takes_nothing.with_traceback(None)  # or it would grow with each time

    def send(self, messages: Sequence[Storable], *, within_s: float | None = None) -> "asyncio.Future[Numbers]":
        """Store messages, all or none, in one partition. HOT.

        Raises as `check_sending`, and at once or by the future as `QueueSender.submit`.
        """
        if self._takes_nothing is not None:
            raise self._takes_nothing.with_traceback(None)
        return self._sender.submit(messages, within_s=within_s)

    def send_then(self, messages: Sequence[Storable], told: Told, within_s: float | None = None) -> None:
        """As `send`, without a future: `told` is called with the numbers or the error, and must not raise. HOT."""
        if self._takes_nothing is not None:
            raise self._takes_nothing.with_traceback(None)
        self._sender.submit_then(messages, told, within_s)

    async def schedule(self, messages: Sequence[Storable], *, within_s: float | None = None) -> list[int]:
        """Store messages that have a time each; their sequence numbers (64 bits), 0 for what was a duplicate.

        Messages of one key, or of none, are stored all or none; several keys may be in several partitions.
        """
        detects = self.spec.requires_duplicate_detection
        places: dict[str | None, list[int]] = {}
        for place, one in enumerate(messages):
            places.setdefault(partitioning.partition_key_of(one, requires_duplicate_detection=detects), []).append(
                place
            )
        sends = [self.send([messages[place] for place in its], within_s=within_s) for its in places.values()]
        numbers = [0] * len(messages)
        for its, stored in zip(places.values(), await asyncio.gather(*sends), strict=True):
            for place, number in zip(its, stored.each(len(its)), strict=True):
                numbers[place] = number or 0
        return numbers

    async def cancel_scheduled(self, numbers: Sequence[int]) -> None:
        """Remove scheduled messages before their time; in each partition all or none. Raises MessageNotFound."""
        self._check()
        asked = deferred.by_partition(numbers, self.partitions)
        await asyncio.gather(
            *(
                self._brokers.clients[partition].call(
                    calls.cancel_scheduled(self._keys, local), patience_s=limits.SETTLE_S_MAX
                )
                for partition, local in asked.items()
            )
        )

    # ---- receiving

    def receiver(
        self,
        on_messages: OnMessages,
        *,
        delete: bool = False,
        session: Session | None = None,
        on_lost: OnLost | None = None,
    ) -> Receiver:
        """One who receives. `on_lost` is called once, when nothing will come any more.

        Raises (and tells later) EntityNotFound, EntityDisabled, SessionLockLost; SessionRequired, SessionsNotSupported.
        """
        self._check_receiving()
        if self.has_sessions and session is None:
            raise SessionRequired(f"'{self.address}' requires sessions: accept a session to receive from it")
        if not self.has_sessions and session is not None:
            raise SessionsNotSupported(f"'{self.address}' has no sessions; receive without one")
        fan_in = self._fan_ins.get(delete) if session is None else None
        if fan_in is None:
            kind = DeletingFanIn if delete else MessageFanIn
            fan_in = kind(self._brokers, self._keys, self._background, session=session)
            if session is None:
                self._fan_ins[delete] = fan_in
            else:
                self._session_fan_ins.add(fan_in)
        receiver = Receiver(fan_in, on_messages, on_lost)
        fan_in.join(receiver)
        return receiver

    async def accept_session(self, session_id: str | None = None, *, within_s: float) -> Session:
        """Hold a session: the one named (SessionCannotBeLocked), or for None the next that has something to receive.

        Raises NoSessionAvailable, SessionsNotSupported, EntityDisabled, BrokerUnavailable.
        """
        self._check_receiving()
        if not self.has_sessions:
            raise SessionsNotSupported(f"'{self.address}' has no sessions; receive without one")
        if session_id is not None:
            session = await accept_named(self._brokers, self._keys, self._background, session_id, within_s)
        else:
            if self._next_sessions is None:
                self._next_sessions = NextSessions(self._brokers, self._keys, self._background)
            session = await self._next_sessions.accept(within_s)
        self._sessions.add(session)
        return session

    async def receive_deferred(
        self, numbers: Sequence[int], *, delete: bool = False, session: Session | None = None
    ) -> list[Taken]:
        """By sequence numbers (64 bits), in that order, all or none: MessageNotFound."""
        self._check_receiving()
        return await self._deferred.receive(numbers, delete=delete, session=session.lock if session else None)

    # ---- settling

    async def renew(self, tokens: Sequence[LockToken]) -> list[int]:
        """Until when each is locked now. Raises LockLost where one is lost; the others are renewed all the same."""
        self._check()
        return await deferred.renew(self._brokers.clients, self._keys, tokens)

    # ---- browsing

    async def peek(
        self,
        from_number: int,
        most: int,
        *,
        session_id: str | None = None,
        states: str = "",
        bytes_most: int = 0,
    ) -> Peeked:
        """Show messages from a sequence number (64 bits) on, in order, up to 256 KB; `states` as `calls.peek`.

        A partition that is away is passed over and named. Raises BrokerUnavailable where all were.
        """
        self._check()
        return await self._browser.peek(from_number, most, session=session_id, states=states, bytes_most=bytes_most)

    async def list_sessions(self, skip: int, most: int) -> list[str]:
        """Ids of sessions that have messages, a state or a lock. Raises BrokerUnavailable, SessionsNotSupported."""
        self._check()
        return await self._browser.list_sessions(skip, most)

    async def delete_batch(self, most: int, enqueued_before_ms: int) -> int:
        """Remove up to so many messages that nobody holds and that were enqueued before a time; gives how many."""
        self._check()
        return await clearing.delete_batch(self._brokers.clients, self._keys, most, enqueued_before_ms)

    # ---- its end

    def changed(self, spec: QueueSpec) -> None:
        """The queue is described anew."""
        self.spec = spec
        error = EntityDisabled(f"Messaging entity '{self.address}' is {spec.status}")
        if spec.status in _NO_RECEIVES:
            self._lose_receivers(error)
        self._takes_nothing = error if spec.status in _NO_SENDS else None
        if self.address.sub_queue is not SubQueue.NONE:
            self._takes_nothing = SendNotAllowed(f"nobody sends to '{self.address}'; send to the queue itself")
        elif spec.status in _NO_SENDS:
            self._tell_watchers(error)

    def lose(self, error: PartitionedQueueError) -> None:
        """The queue has gone: who uses it is told, and everything is refused from now on."""
        self.gone = self._takes_nothing = error
        self._tell_watchers(error)
        self._lose_receivers(error)
        for session in [*self._sessions]:
            session.lose(error)

    async def close(self) -> None:
        """Stop; what is under way to nobody goes back."""
        if self.gone is None:
            words = f"this gateway is ending; '{self.address}' is served by others"
            self.gone = self._takes_nothing = BrokerUnavailable(words)
        self._lose_receivers(self.gone)
        for fan_in in (*self._fan_ins.values(), *self._session_fan_ins, self._next_sessions):
            if fan_in is not None:
                fan_in.end()
        for session in [*self._sessions]:
            self._background.start(session.release())
        await self._sender.close()

    def _check(self) -> None:
        if self.gone is not None:
            raise self.gone.with_traceback(None)

    def _check_receiving(self) -> None:
        self._check()
        if self.spec.status in _NO_RECEIVES:
            raise EntityDisabled(f"Messaging entity '{self.address}' is {self.spec.status}: it hands out no messages")

    def _lose_receivers(self, error: PartitionedQueueError) -> None:
        for fan_in in (*self._fan_ins.values(), *self._session_fan_ins, self._next_sessions):
            if fan_in is not None:
                fan_in.lose(error)

    def _tell_watchers(self, error: PartitionedQueueError) -> None:
        for told in [*self._watchers.values()]:
            told(error)


def _keys_of(keys: QueueKeys, sub_queue: SubQueue) -> QueueKeys:
    if sub_queue is SubQueue.DEAD_LETTERS:
        return keys.dead_letters
    return keys.transfers.dead_letters if sub_queue is SubQueue.TRANSFER_DEAD_LETTERS else keys
