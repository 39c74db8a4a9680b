"""A message that comes in several frames (§2.6.14)."""

from typing import TYPE_CHECKING

from partitionedqueue_gateway.amqp.engine import violations
from partitionedqueue_gateway.amqp.engine.frequent_reading import Transfer
from partitionedqueue_gateway.amqp.engine.violations import LinkViolation, Violation
from partitionedqueue_gateway.limits import AMQP_PARTIAL_BYTES_MAX

if TYPE_CHECKING:
    from partitionedqueue_gateway.amqp.engine.link import ReceivingLink


class Assembly:
    """Of one link; what is in it counts against the connection."""

    def __init__(self, link: "ReceivingLink") -> None:
        self._link = link
        self._connection = link.session.connection
        self._first: Transfer | None = None
        self._pieces = bytearray()
        self._size = 0

    @property
    def begun(self) -> bool:
        """Whether the next frame belongs to a message whose beginning is there."""
        return self._first is not None

    def take(self, told: Transfer, payload: bytes) -> tuple[Transfer, bytes, int] | None:
        """Add a frame; with the last one, what was said of the message, the whole of it, and its size.

        Of a message that is larger than the link takes, nothing is kept but its size.
        """
        _, delivery_id, _, _, settled, more, state, aborted, _ = told
        first = self._first or told
        if delivery_id is not None and delivery_id != first[1]:
            raise LinkViolation(self._link, violations.NOT_ALLOWED, "a delivery begins before the last one has ended")
        if aborted:
            self.drop()
            return None
        if first[1] is None or first[2] is None:
            raise LinkViolation(self._link, violations.INVALID_FIELD, "a delivery begins without its id or its tag")
        self._first = first
        self._size += len(payload)
        if self._size > self._link.size_max:
            self._drop_pieces()
        else:
            self._keep(payload)
        if more:
            return None
        whole, size = bytes(self._pieces), self._size
        self.drop()
        # A later frame may say that the message is settled, or what its state is (§2.7.5).
        return (*first[:4], settled or first[4], False, state or first[6], False, 0), whole, size

    def drop(self) -> None:
        """Forget what has come."""
        self._drop_pieces()
        self._first, self._size = None, 0

    def _keep(self, payload: bytes) -> None:
        if self._connection.partial_bytes + len(payload) > AMQP_PARTIAL_BYTES_MAX:
            raise Violation(
                violations.RESOURCE_LIMIT_EXCEEDED, "too many messages of this connection have begun and not ended"
            )
        self._pieces += payload
        self._connection.partial_bytes += len(payload)

    def _drop_pieces(self) -> None:
        self._connection.partial_bytes -= len(self._pieces)
        self._pieces = bytearray()
