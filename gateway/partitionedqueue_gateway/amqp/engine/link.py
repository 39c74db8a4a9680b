"""The two kinds of link (§2.6): one that we send over, one that we receive over."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from partitionedqueue_gateway.amqp.engine import violations
from partitionedqueue_gateway.amqp.engine.assembly import Assembly
from partitionedqueue_gateway.amqp.engine.events import CreditChanged, Drained, Event, MessageReceived
from partitionedqueue_gateway.amqp.engine.frequent_reading import Flow, Transfer
from partitionedqueue_gateway.amqp.engine.frequent_writing import uint
from partitionedqueue_gateway.amqp.engine.performatives import AmqpError, Attach
from partitionedqueue_gateway.amqp.engine.serial_numbers import UINT_MAX, difference
from partitionedqueue_gateway.amqp.engine.values import Described
from partitionedqueue_gateway.amqp.engine.violations import LinkViolation, NotSendable
from partitionedqueue_gateway.limits import AMQP_MESSAGE_BYTES_MAX, AMQP_OVERDRAFT_MAX

if TYPE_CHECKING:
    from partitionedqueue_gateway.amqp.engine.amqp_session import AmqpSession

MIXED: Final = 2
_made: Final = tuple.__new__
"""A named tuple's own way to be made costs three times as much."""
_FORMAT_0: Final = uint(0)
_GRANT_MAX: Final = 1 << 31


class Link:
    """What both kinds have; `name` … `properties` as the peer said them in its attach."""

    is_receiver: bool
    """Whether this end receives."""

    def __init__(self, session: "AmqpSession", handle: int, attach: Attach) -> None:
        """`handle` is the one that this end uses; `attach` the peer's, or what we ask the peer for."""
        self.session = session
        self.handle = handle
        self.handle_encoded = uint(handle)
        self.context: Any = None
        """Anything of the application's."""
        self.credit = 0
        self.delivery_count = 0
        self.announced = False
        """Whether our attach is sent."""
        self.attached = False
        """Both attaches are there, and neither side has ended it."""
        self.ended = False
        """By either side: nothing more comes of it."""
        self.take_attach(attach)

    def take_attach(self, attach: Attach) -> None:
        """Remember what the peer says in its attach."""
        self.name = attach.name
        self.source = attach.source
        """As decoded, to be echoed; terminus.address_of and friends read it."""
        self.target = attach.target
        self.properties: Mapping[Any, Any] = attach.properties or {}
        self.snd_settle_mode = MIXED if attach.snd_settle_mode is None else attach.snd_settle_mode
        """0 unsettled, 1 settled, 2 mixed."""
        self.rcv_settle_mode = attach.rcv_settle_mode or 0
        """0 first, 1 second."""
        self.max_message_size = attach.max_message_size or 0
        """Of the peer, 0 for none."""
        self._asked = attach

    def attach(
        self,
        *,
        source: Described | None,
        target: Described | None,
        properties: Mapping[str, Any] | None = None,
        max_message_size: int = 0,
    ) -> None:
        """Say yes to AttachRequested. Echo source and target of the peer, unless there is something to tell.

        Look at `credit` then: a peer may have granted before it had the answer. Nothing happens if the link is over.
        """
        if self.announced or self.ended:
            return
        self.attached = True
        self._announce(source, target, properties, max_message_size)

    def refuse(self, error: AmqpError) -> None:
        """Say no to AttachRequested: an attach without source and target, and a closing detach with the error."""
        if not self.announced and not self.ended:
            self.detach(error)

    def detach(self, error: AmqpError | None = None) -> None:
        """Close the link; no Detached is given for it. What it had unsettled, `unsettled` still tells."""
        if not self.ended:
            self.announce_nothing()
            self.end()
            self.session.detaching(self, error)

    def announce_nothing(self) -> None:
        """An attach for the detach that follows, unless there was one (§2.6.3: without source and target)."""
        if not self.announced:
            self._announce(None, None, None, 0)

    def settle(self, delivery_id: int, state: bytes) -> None:
        """Settle a delivery; neighbours are joined into one frame by data_to_send."""
        raise NotImplementedError

    def end(self) -> None:
        """It is over: for the AMQP session to say. Whatever was under way is forgotten."""
        self.ended, self.attached, self.credit = True, False, 0

    def take_transfer(self, told: Transfer, payload: bytes, events: list[Event]) -> None:
        """A frame with a message, or with a part of one."""
        raise LinkViolation(self, violations.NOT_ALLOWED, f"the link {self.name!r} goes the other way")

    def take_flow(self, told: Flow, events: list[Event]) -> None:
        """What the peer says of its end."""
        raise NotImplementedError

    def _announce(
        self, source: Described | None, target: Described | None, properties: Mapping[str, Any] | None, size_max: int
    ) -> None:
        self.announced = True
        asked = self._asked
        self.session.send_performative(
            Attach(
                self.name,
                self.handle,
                self.is_receiver,
                asked.snd_settle_mode,
                asked.rcv_settle_mode,
                source,
                target,
                initial_delivery_count=None if self.is_receiver else 0,
                max_message_size=size_max or None,
                properties=properties,
            )
        )


class SendingLink(Link):
    """We send, the peer receives."""

    is_receiver = False

    def __init__(self, session: "AmqpSession", handle: int, attach: Attach) -> None:
        super().__init__(session, handle, attach)
        self._outgoing = session.outgoing
        self.draining = False
        """The peer wants what is ready now, then its credit back: call drained()."""
        self.left: list[tuple[int, Any]] | None = None
        """What had no outcome when it ended."""

    @property
    def sendable(self) -> bool:
        """With credit, and the AMQP session's window is open: send one more. CreditChanged tells when again."""
        return self.credit > 0 and self.attached and self._outgoing.is_open

    def send(
        self, payload: bytes, tag: bytes, *, settled: bool = False, message_format: int = 0, context: Any = None
    ) -> int:
        """Send a message, in as many frames as the peer's frame size asks for; gives the delivery id. HOT.

        Without an open window it is kept until there is one, so a message already locked for this link may be sent on
        `credit` alone. Raises NotSendable without credit. `context` comes back with Dispositions.
        """
        if self.credit <= 0 or not self.attached:
            raise NotSendable(f"the link {self.name!r} has no credit, or is over")
        self.credit -= 1
        self.delivery_count = self.delivery_count + 1 & UINT_MAX
        return self._outgoing.send(
            self, payload, tag, uint(message_format) if message_format else _FORMAT_0, settled, context
        )

    def settle(self, delivery_id: int, state: bytes) -> None:
        """Settle towards the peer: the answer to its disposition, or unasked. Neighbours are joined. HOT."""
        if not self.ended:
            self._outgoing.settle(delivery_id, state)

    def drained(self) -> None:
        """All that was ready is sent: give the rest of the credit back. Does nothing unless draining."""
        if self.draining and self.attached:
            self.delivery_count = self.delivery_count + self.credit & UINT_MAX
            self.credit, self.draining = 0, False
            self.session.send_flow(self, drain=True)

    @property
    def unsettled(self) -> list[tuple[int, Any]]:
        """(delivery_id, context) of what was sent and has no outcome; also after the end, to give it back."""
        return self._outgoing.unsettled_of(self) if self.left is None else self.left

    def end(self) -> None:
        """It is over; what has no outcome yet leaves the AMQP session."""
        super().end()
        self.left = self._outgoing.forget(self)

    def take_flow(self, told: Flow, events: list[Event]) -> None:
        """Credit (§2.6.7): counted from the delivery that the receiver has seen last."""
        seen, credit = told.delivery_count or 0, told.link_credit or 0
        if seen != self.delivery_count:
            credit = max(credit + min(difference(seen, self.delivery_count), 0), 0)
        self.credit = credit
        self.draining = told.drain
        if self.attached:
            events.append(_made(CreditChanged, (self,)))


class ReceivingLink(Link):
    """The peer sends, we receive."""

    is_receiver = True

    def __init__(self, session: "AmqpSession", handle: int, attach: Attach) -> None:
        super().__init__(session, handle, attach)
        self._incoming = session.incoming
        self.size_max = AMQP_MESSAGE_BYTES_MAX
        self.unsettled_count = 0
        self.low = 0
        """Credit below this is renewed, if it was to be kept."""
        self._window = 0
        self._draining = False
        self._assembly = Assembly(self)

    def take_attach(self, attach: Attach) -> None:
        """Count as the sender does."""
        super().take_attach(attach)
        self.delivery_count = attach.initial_delivery_count or 0

    def attach(
        self,
        *,
        source: Described | None,
        target: Described | None,
        properties: Mapping[str, Any] | None = None,
        max_message_size: int = AMQP_MESSAGE_BYTES_MAX,
    ) -> None:
        """Say yes to AttachRequested; messages above `max_message_size` are rejected. See Link.attach."""
        self.size_max = max_message_size or AMQP_MESSAGE_BYTES_MAX
        super().attach(source=source, target=target, properties=properties, max_message_size=self.size_max)

    def grant(self, n: int, *, drain: bool = False) -> None:
        """Let the peer send n messages in all from now on (not n more)."""
        if self.attached:
            self.credit, self._draining = min(n, _GRANT_MAX), drain
            self.session.send_flow(self, drain=drain)

    def keep_granted(self, window: int) -> None:
        """Grant `window` now and again below half; messages that are not settled yet count against it."""
        self._window, self.low = window, (window + 1) // 2
        self.replenish()

    def replenish(self) -> None:
        """Renew the credit, where that is worth a frame."""
        fresh = self._window - self.unsettled_count
        if fresh - self.credit >= self.low > 0:
            self.grant(fresh)

    def settle(self, delivery_id: int, state: bytes, *, settled: bool = True) -> None:
        """Settle a message; neighbours with the same state are joined into one frame by data_to_send. HOT.

        `settled=False` (a client's): only say the outcome and wait for the peer to settle.
        """
        if not settled:
            self._incoming.propose(delivery_id, state)
        elif self.ended:
            self._incoming.forget(delivery_id)
        else:
            self._incoming.settle(delivery_id, state)

    def end(self) -> None:
        """It is over; what was only begun is dropped."""
        super().end()
        self._assembly.drop()

    def take_transfer(self, told: Transfer, payload: bytes, events: list[Event]) -> None:
        """A message, if this is the whole or the last part of one. HOT."""
        _, delivery_id, tag, message_format, settled, more, state, aborted, _ = told
        size = len(payload)
        if more or aborted or self._assembly.begun:
            whole = self._assembly.take(told, payload)
            if whole is None:
                return
            (_, delivery_id, tag, message_format, settled, _, state, _, _), payload, size = whole
        if delivery_id is None or tag is None:
            raise LinkViolation(self, violations.INVALID_FIELD, "a delivery begins without its id or its tag")
        self.credit = credit = self.credit - 1
        self.delivery_count = self.delivery_count + 1 & UINT_MAX
        if credit < self.low:
            if credit < -AMQP_OVERDRAFT_MAX:
                raise self._overdrawn()
            self._incoming.thirsty(self)
        if size > self.size_max:
            if not settled:
                self._incoming.reject(delivery_id, self._too_large())
            return
        if not settled:
            incoming = self._incoming
            if delivery_id in incoming.unsettled:
                raise incoming.sent_twice(delivery_id)
            incoming.unsettled[delivery_id] = self, size
            self.unsettled_count += 1
            incoming.connection.unsettled_bytes += size
        events.append(_made(MessageReceived, (self, delivery_id, tag, message_format, settled, state, payload)))

    def _too_large(self) -> AmqpError:
        return AmqpError(
            violations.MESSAGE_SIZE_EXCEEDED, f"The received message exceeds the limit of {self.size_max} bytes."
        )

    def _overdrawn(self) -> LinkViolation:
        return LinkViolation(
            self, violations.TRANSFER_LIMIT_EXCEEDED, f"too many messages for the credit of the link {self.name!r}"
        )

    def take_flow(self, told: Flow, events: list[Event]) -> None:
        """A sender's flow tells how far it has drained; what else it says of credit is not its to say."""
        if self._draining and told.delivery_count is not None:
            self.credit -= max(difference(told.delivery_count, self.delivery_count), 0)
            self.delivery_count = told.delivery_count
            if self.credit <= 0:
                self.credit, self._draining = 0, False
                events.append(Drained(self))
