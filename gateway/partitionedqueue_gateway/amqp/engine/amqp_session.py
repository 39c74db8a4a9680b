"""One AMQP session (§2.5): its links, and the two halves that send and receive for them."""

from typing import TYPE_CHECKING, Any, Final

from partitionedqueue_gateway.amqp.engine import performatives, violations
from partitionedqueue_gateway.amqp.engine.events import (
    Attached,
    AttachRequested,
    CreditChanged,
    Detached,
    Dispositions,
    Event,
)
from partitionedqueue_gateway.amqp.engine.frequent_reading import Flow, read_disposition, read_transfer
from partitionedqueue_gateway.amqp.engine.frequent_writing import flow
from partitionedqueue_gateway.amqp.engine.incoming import Incoming
from partitionedqueue_gateway.amqp.engine.link import Link, ReceivingLink, SendingLink
from partitionedqueue_gateway.amqp.engine.outgoing import Outgoing
from partitionedqueue_gateway.amqp.engine.performatives import AmqpError, Attach, Begin, Detach, End, Performative
from partitionedqueue_gateway.amqp.engine.serial_numbers import UINT_MAX, difference
from partitionedqueue_gateway.amqp.engine.values import Described
from partitionedqueue_gateway.amqp.engine.violations import SessionViolation, Violation
from partitionedqueue_gateway.limits import AMQP_LINKS_MAX, AMQP_NAME_LENGTH_MAX

if TYPE_CHECKING:
    from partitionedqueue_gateway.amqp.engine.connection import Connection

_OUTGOING_WINDOW: Final = 0x7FFFFFFF
"""We keep no transfer for sending it again, so nothing bounds this."""
_made: Final = tuple.__new__
"""A named tuple's own way to be made costs three times as much."""
_OUTCOMES_FROM: Final = 0x24
"""States below are no outcomes: more will be told."""


class AmqpSession:
    """Made by the connection, by whose word it begins and ends."""

    def __init__(self, connection: "Connection", channel: int) -> None:
        """`channel` is the one that this end uses."""
        self.connection = connection
        self.channel = channel
        self.peer_channel: int | None = None
        self.context: Any = None
        """Anything of the application's."""
        self.ended = False
        self.incoming = Incoming(self)
        self.outgoing = Outgoing(self)
        self._remote_handle_max = UINT_MAX
        self._links: dict[int, Link] = {}
        """By the peer's handle."""
        self._handles: dict[int, Link] = {}
        """By ours."""
        self._asked: dict[tuple[str, bool], Link] = {}
        """Those that we have asked for and that have no answer, by name and whether we receive."""
        self._gone: set[int] = set()
        """Handles of the peer's that were attached once: a frame may still come for them."""
        self._has_work = False

    def end(self, error: AmqpError | None = None) -> None:
        """End it and its links; no Detached is given for them, and no SessionEnded."""
        if not self.ended:
            self.flush()
            self.send_performative(End(error))
            self.over(error, [])

    def sender(
        self, name: str, *, source: Described | None = None, target: Described | None = None, **attach: Any
    ) -> SendingLink:
        """Attach a link over which we send (a client's); `attach`: further fields of performatives.Attach."""
        link = self._new_link(SendingLink, Attach(name, 0, True, source=source, target=target, **attach))
        assert isinstance(link, SendingLink)
        self._ask(
            link, Attach(name, link.handle, False, source=source, target=target, initial_delivery_count=0, **attach)
        )
        return link

    def receiver(
        self, name: str, *, source: Described | None = None, target: Described | None = None, **attach: Any
    ) -> ReceivingLink:
        """Attach a link over which we receive (a client's); `attach`: further fields of performatives.Attach."""
        link = self._new_link(ReceivingLink, Attach(name, 0, False, source=source, target=target, **attach))
        assert isinstance(link, ReceivingLink)
        self._ask(link, Attach(name, link.handle, True, source=source, target=target, **attach))
        return link

    def _ask(self, link: Link, attach: Attach) -> None:
        self._asked[link.name, link.is_receiver] = link
        link.announced = True
        self.send_performative(attach)

    # What the peer does, told by the connection.

    def take_begin(self, begin: Begin, peer_channel: int) -> None:
        """The peer's begin is there."""
        self.peer_channel = peer_channel
        self.incoming.next_id = begin.next_outgoing_id
        self.outgoing.window = begin.incoming_window
        self._remote_handle_max = begin.handle_max

    def announce(self) -> None:
        """Send our begin."""
        settings = self.connection.settings
        self.send_performative(Begin(self.peer_channel, 0, self.incoming.width, _OUTGOING_WINDOW, settings.handle_max))

    def take_attach(self, attach: Attach, events: list[Event]) -> None:
        """The peer asks for a link, or answers that we may have one."""
        handle_max = self.connection.settings.handle_max
        if attach.handle > handle_max:  # AMQP 1.0 §2.7.2
            raise Violation(violations.FRAMING_ERROR, f"the handle {attach.handle} is above {handle_max}")
        if len(attach.name) > AMQP_NAME_LENGTH_MAX:
            raise SessionViolation(
                self, violations.INVALID_FIELD, f"a link's name is longer than {AMQP_NAME_LENGTH_MAX} characters"
            )
        known = self._links.get(attach.handle)
        if known is not None:
            if not known.ended:
                raise SessionViolation(self, violations.HANDLE_IN_USE, f"the handle {attach.handle} is another link's")
            self._release(known, attach.handle)
        link = self._asked.pop((attach.name, not attach.is_receiver), None)
        if link is None:
            link = self._new_link(SendingLink if attach.is_receiver else ReceivingLink, attach)
            events.append(AttachRequested(link))
        elif not link.ended:
            link.take_attach(attach)
            link.attached = True
            events.append(Attached(link))
        self._links[attach.handle] = link

    def take_detach(self, detach: Detach, events: list[Event]) -> None:
        """The peer ends a link, or answers that it has ended."""
        link = self._links.get(detach.handle)
        if link is None:
            if detach.handle not in self._gone:
                raise self._unattached(detach.handle)
            return
        if not link.ended:
            self._end_link(link, detach.error, events)
            link.announce_nothing()
            self.flush()
            self.send_performative(Detach(link.handle, closed=True))
        self._release(link, detach.handle)

    def take_transfer(self, data: bytes, at: int, end: int, events: list[Event]) -> None:
        """A transfer whose list begins at `at`, in a frame that ends at `end`. HOT."""
        told = read_transfer(data, at, end)
        incoming = self.incoming
        incoming.window = window = incoming.window - 1
        incoming.next_id = incoming.next_id + 1 & UINT_MAX
        if window < incoming.low:
            incoming.narrow()
        link = self._links.get(told[0])
        if link is None:
            raise self._unattached(told[0])
        if not link.ended:
            link.take_transfer(told, data[told[8] : end], events)

    def take_flow(self, told: Flow, events: list[Event]) -> None:
        """Windows (§2.5.6) and, with a handle, credit (§2.6.7)."""
        if self.outgoing.take_window(told):
            for each in self._handles.values():
                if isinstance(each, SendingLink) and each.attached and each.credit:
                    events.append(CreditChanged(each))
        link: Link | None = None
        if told.handle is not None:
            link = self._links.get(told.handle)
            if link is None:
                if told.handle not in self._gone:
                    raise self._unattached(told.handle)
                return
            if link.ended:
                return
            link.take_flow(told, events)
        if told.echo:
            self.send_flow(link)

    def take_disposition(self, data: bytes, at: int, end: int, events: list[Event]) -> None:
        """What the peer says of deliveries; its list begins at `at`, its frame ends at `end`. HOT."""
        by_receiver, first, last, settled, code, state = read_disposition(data, at, end)
        if first != last and difference(last, first) < 0:
            raise SessionViolation(self, violations.INVALID_FIELD, "a disposition ends before it begins")
        if not settled and code < _OUTCOMES_FROM:
            return
        if by_receiver:
            deliveries = self.outgoing.take_outcomes(first, last)
        elif settled:
            deliveries = self.incoming.take_settled(first, last)
        else:
            return
        if deliveries:
            events.append(_made(Dispositions, (deliveries, code, state, settled)))

    def over(self, error: AmqpError | None, events: list[Event]) -> None:
        """It is at its end, by whichever side, and so are all links."""
        left = self.outgoing.over()
        for link in self._handles.values():
            if not link.ended:
                self._end_link(link, error, events)
                if isinstance(link, SendingLink):
                    link.left = left.get(link, [])
        self.ended = True
        self.connection.link_count -= len(self._handles)
        self._handles.clear()
        self._links.clear()
        self._asked.clear()
        self.incoming.over()

    # What links and halves ask for.

    def send_performative(self, performative: Performative) -> None:
        """In a frame of its own."""
        if not self.ended:
            self.connection.send_frame(self.channel, performatives.write(performative))

    def send_flow(self, link: Link | None = None, *, drain: bool = False) -> None:
        """Tell the state of the AMQP session and of a link."""
        incoming = self.incoming
        incoming.window = incoming.width
        about = () if link is None else (link.handle, link.delivery_count, link.credit, None, drain)
        told = Flow(incoming.next_id, incoming.width, self.outgoing.next_id, _OUTGOING_WINDOW, *about)
        self.connection.output.append(flow(self.channel, told))

    def detaching(self, link: Link, error: AmqpError | None) -> None:
        """This end ends a link; its handle stays until the peer has answered."""
        self.flush()
        self.send_performative(Detach(link.handle, closed=True, error=error))

    def link_violation(self, link: Link, error: AmqpError, events: list[Event]) -> None:
        """A link ends for what its peer did."""
        link.detach(error)
        events.append(Detached(link, error))

    def has_work(self) -> None:
        """flush() is to be called before data is sent."""
        if not self._has_work and not self.ended:
            self._has_work = True
            self.connection.busy.append(self)

    def flush(self) -> None:
        """Write what was put together in this turn."""
        self._has_work = False
        if not self.ended:
            self.incoming.flush()
            if self.outgoing.settled:
                self.outgoing.flush()

    def _new_link(self, kind: type[Link], attach: Attach) -> Link:
        if self.connection.link_count >= AMQP_LINKS_MAX:
            raise SessionViolation(
                self,
                violations.RESOURCE_LIMIT_EXCEEDED,
                f"the connection has {AMQP_LINKS_MAX} links, and may have no more",
            )
        handle = next(handle for handle in range(len(self._handles) + 1) if handle not in self._handles)
        if handle > self._remote_handle_max:
            raise SessionViolation(
                self, violations.RESOURCE_LIMIT_EXCEEDED, f"the peer takes no handle above {self._remote_handle_max}"
            )
        link = self._handles[handle] = kind(self, handle, attach)
        self.connection.link_count += 1
        return link

    def _end_link(self, link: Link, error: AmqpError | None, events: list[Event]) -> None:
        link.end()
        events.append(Detached(link, error))

    def _release(self, link: Link, peer_handle: int) -> None:
        """Both sides have ended it: its handles are free."""
        del self._links[peer_handle]
        del self._handles[link.handle]
        self.connection.link_count -= 1
        self._gone.add(peer_handle)

    def _unattached(self, handle: int) -> SessionViolation:
        return SessionViolation(self, violations.UNATTACHED_HANDLE, f"no link is attached to the handle {handle}")
