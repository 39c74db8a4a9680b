"""The half of an AMQP session that receives: our window (§2.5.6), and messages that are not settled yet."""

from typing import TYPE_CHECKING

from partitionedqueue_gateway.amqp.engine import violations
from partitionedqueue_gateway.amqp.engine.frequent_writing import disposition
from partitionedqueue_gateway.amqp.engine.outcomes import rejected
from partitionedqueue_gateway.amqp.engine.performatives import AmqpError
from partitionedqueue_gateway.amqp.engine.serial_numbers import between, runs
from partitionedqueue_gateway.amqp.engine.violations import SessionViolation

if TYPE_CHECKING:
    from partitionedqueue_gateway.amqp.engine.amqp_session import AmqpSession
    from partitionedqueue_gateway.amqp.engine.link import Link, ReceivingLink


class Incoming:
    """Made by the AMQP session, which is told when there is something for data_to_send."""

    def __init__(self, session: "AmqpSession") -> None:
        self._session = session
        self.connection = session.connection
        self.next_id = 0
        self.width = session.connection.settings.incoming_window
        self.low = (self.width + 1) // 2
        self.window = self.width
        """Transfers that the peer may still send."""
        self.unsettled: dict[int, tuple[ReceivingLink, int]] = {}
        """With the size of each."""
        self._settled: dict[bytes, list[int]] = {}
        """In this turn, by state."""
        self._thirsty: set[ReceivingLink] = set()

    def narrow(self) -> None:
        """The window is below `low`. Raises SessionViolation where a transfer had no room in it."""
        if self.window < 0:
            raise SessionViolation(
                self._session, violations.WINDOW_VIOLATION, "more transfers came than the window is wide"
            )
        self._session.has_work()

    def sent_twice(self, delivery_id: int) -> SessionViolation:
        """A delivery id was used again too early."""
        return SessionViolation(
            self._session, violations.NOT_ALLOWED, f"the delivery {delivery_id} is not settled yet, and sent again"
        )

    def settle(self, delivery_id: int, state: bytes) -> None:
        """Settle towards the sender. HOT."""
        known = self.unsettled.pop(delivery_id, None)
        if known is None:
            return
        link, size = known
        link.unsettled_count -= 1
        self.connection.unsettled_bytes -= size
        if link.credit < link.low:
            self.thirsty(link)
        ids = self._settled.get(state)
        if ids is None:
            self._settled[state] = [delivery_id]
            self._session.has_work()
        else:
            ids.append(delivery_id)

    def forget(self, delivery_id: int) -> None:
        """It is settled, and the sender knows, or is gone."""
        known = self.unsettled.pop(delivery_id, None)
        if known is not None:
            link, size = known
            link.unsettled_count -= 1
            self.connection.unsettled_bytes -= size
            if link.credit < link.low:
                self.thirsty(link)

    def reject(self, delivery_id: int, error: AmqpError) -> None:
        """Settle a message that nobody has seen."""
        frame = disposition(self._session.channel, True, delivery_id, delivery_id, True, rejected(error))
        self.connection.output.append(frame)

    def propose(self, delivery_id: int, state: bytes) -> None:
        """Tell the sender an outcome, which it then settles."""
        if delivery_id in self.unsettled:
            frame = disposition(self._session.channel, True, delivery_id, delivery_id, False, state)
            self.connection.output.append(frame)

    def take_settled(self, first: int, last: int) -> "list[tuple[Link, int, None]]":
        """Those that the sender has settled by itself."""
        found: list[tuple[Link, int, None]] = []
        for delivery_id in between(first, last, self.unsettled):
            found.append((self.unsettled[delivery_id][0], delivery_id, None))
            self.forget(delivery_id)
        return found

    def thirsty(self, link: "ReceivingLink") -> None:
        """A link's credit is low."""
        self._thirsty.add(link)
        self._session.has_work()

    def over(self) -> None:
        """Nobody will settle anything any more."""
        for link, size in self.unsettled.values():
            link.unsettled_count -= 1
            self.connection.unsettled_bytes -= size
        self.unsettled.clear()

    def flush(self) -> None:
        """Write what was settled in this turn, and open windows again."""
        if self._settled:
            settled, self._settled = self._settled, {}
            channel, output = self._session.channel, self.connection.output
            for state, ids in settled.items():
                for first, last in runs(ids):
                    output.append(disposition(channel, True, first, last, True, state))
        if self._thirsty:
            thirsty, self._thirsty = self._thirsty, set()
            for link in thirsty:
                link.replenish()
        if self.window < self.low:
            self._session.send_flow()
