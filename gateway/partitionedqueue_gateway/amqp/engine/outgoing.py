"""The half of an AMQP session that sends: the peer's window (§2.5.6), and deliveries without an outcome yet."""

from collections import deque
from typing import TYPE_CHECKING, Any

from partitionedqueue_gateway.amqp.engine.frequent_reading import Flow
from partitionedqueue_gateway.amqp.engine.frequent_writing import (
    HEAD_BYTES_MAX,
    disposition,
    further_transfer,
    transfer,
)
from partitionedqueue_gateway.amqp.engine.outcomes import RELEASED
from partitionedqueue_gateway.amqp.engine.serial_numbers import UINT_MAX, between, difference, runs
from partitionedqueue_gateway.limits import AMQP_UNSETTLED_MAX

if TYPE_CHECKING:
    from partitionedqueue_gateway.amqp.engine.amqp_session import AmqpSession
    from partitionedqueue_gateway.amqp.engine.link import Link, SendingLink


class Outgoing:
    """Made by the AMQP session, which is told when there is something for data_to_send."""

    def __init__(self, session: "AmqpSession") -> None:
        self._session = session
        self._connection = session.connection
        self.next_id = 0
        self.window = 0
        """Transfers that the peer takes now."""
        self.waiting_bytes = 0
        self._next_delivery_id = 0
        self._unsettled: dict[int, tuple[Link, int, Any]] = {}
        self._waiting: deque[tuple[SendingLink, bytes, bytes]] = deque()
        """Frames, as head and payload, that the window was too small for."""
        self._shut = False
        """The window was used up since senders were last told that it is open."""
        self.settled: dict[bytes, list[int]] = {}
        """In this turn, by state."""

    @property
    def is_open(self) -> bool:
        """Whether a transfer would leave at once."""
        return self.window > 0 and not self._waiting

    def send(  # noqa: PLR0917 -- called for each message
        self, link: "SendingLink", payload: bytes, tag: bytes, message_format: bytes, settled: bool, context: Any
    ) -> int:
        """Send a delivery; without window it waits. The format is encoded. HOT."""
        delivery_id = self._next_delivery_id
        self._next_delivery_id = delivery_id + 1 & UINT_MAX
        if not settled:
            if len(self._unsettled) >= AMQP_UNSETTLED_MAX:
                self.settle(next(iter(self._unsettled)), RELEASED)
            self._unsettled[delivery_id] = (link, delivery_id, context)
        size = len(payload)
        connection = self._connection
        if size + HEAD_BYTES_MAX > connection.peer_frame_max or self.window <= 0 or self._waiting:
            self._send_in_parts(link, delivery_id, payload, tag, message_format, settled)
            return delivery_id
        output, channel = connection.output, self._session.channel
        output.append(transfer(channel, link.handle_encoded, delivery_id, tag, message_format, settled, False, size))
        output.append(payload)
        self.next_id = self.next_id + 1 & UINT_MAX
        self.window -= 1
        if not self.window:
            self._shut = True
        return delivery_id

    def _send_in_parts(  # noqa: PLR0917 -- as send
        self, link: "SendingLink", delivery_id: int, payload: bytes, tag: bytes, message_format: bytes, settled: bool
    ) -> None:
        room = self._connection.peer_frame_max - HEAD_BYTES_MAX
        channel, handle, size = self._session.channel, link.handle_encoded, len(payload)
        for start in range(0, size or 1, room):
            part, more = payload[start : start + room], start + room < size
            if start:
                head = further_transfer(channel, handle, delivery_id, settled, more, len(part))
            else:
                head = transfer(channel, handle, delivery_id, tag, message_format, settled, more, len(part))
            self._waiting.append((link, head, part))
            self.waiting_bytes += len(part)
        self._send_waiting()

    def _send_waiting(self) -> None:
        waiting, output = self._waiting, self._connection.output
        while waiting and self.window:
            _, head, part = waiting.popleft()
            output.append(head)
            output.append(part)
            self.waiting_bytes -= len(part)
            self.next_id = self.next_id + 1 & UINT_MAX
            self.window -= 1
        if not self.window:
            self._shut = True

    def take_window(self, told: Flow) -> bool:
        """What the peer takes, counted from what it has seen; says whether senders should hear of it."""
        seen, window = told.next_incoming_id or 0, told.incoming_window
        if seen != self.next_id:
            window = max(window + min(difference(seen, self.next_id), 0), 0)
        self.window = window
        if not self._shut or not self.window:
            return False
        self._shut = False
        self._send_waiting()
        return not self._shut

    def settle(self, delivery_id: int, state: bytes) -> None:
        """Settle towards the receiver. HOT."""
        self._unsettled.pop(delivery_id, None)
        ids = self.settled.get(state)
        if ids is None:
            self.settled[state] = [delivery_id]
            self._session.has_work()
        else:
            ids.append(delivery_id)

    def take_outcomes(self, first: int, last: int) -> "list[tuple[Link, int, Any]]":
        """Those that have an outcome now; each is given once. HOT."""
        pop = self._unsettled.pop
        if first == last:
            found = pop(first, None)
            return [] if found is None else [found]
        return [pop(delivery_id) for delivery_id in between(first, last, self._unsettled)]

    def unsettled_of(self, link: "SendingLink") -> list[tuple[int, Any]]:
        """(delivery_id, context) of a link."""
        return [(delivery_id, context) for owner, delivery_id, context in self._unsettled.values() if owner is link]

    def forget(self, link: "SendingLink") -> list[tuple[int, Any]]:
        """The link is over: drop what waits of it, and what it had unsettled, which is given."""
        if not link.delivery_count:
            return []
        left = self.unsettled_of(link)
        for delivery_id, _ in left:
            del self._unsettled[delivery_id]
        if any(owner is link for owner, _, _ in self._waiting):
            self.waiting_bytes -= sum(len(part) for owner, _, part in self._waiting if owner is link)
            self._waiting = deque(each for each in self._waiting if each[0] is not link)
        return left

    def over(self) -> "dict[Link, list[tuple[int, Any]]]":
        """All links are over: gives what each had unsettled, in one pass."""
        left: dict[Link, list[tuple[int, Any]]] = {}
        for link, delivery_id, context in self._unsettled.values():
            left.setdefault(link, []).append((delivery_id, context))
        self._unsettled.clear()
        self._waiting.clear()
        self.waiting_bytes = 0
        return left

    def flush(self) -> None:
        """Write what was settled in this turn; neighbours go together, whatever the order they were settled in."""
        settled, self.settled = self.settled, {}
        channel, output = self._session.channel, self._connection.output
        for state, ids in settled.items():
            for first, last in runs(ids):
                output.append(disposition(channel, False, first, last, True, state))
