"""What SDKs write into the properties of their links and requests."""

from typing import Final

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.amqp.engine.link import Link
from partitionedqueue_gateway.amqp.engine.values import Value

TIMEOUT: Final = "com.microsoft:timeout"
TRANSFER_DESTINATION: Final = "com.microsoft:transfer-destination-address"
SERVER_TIMEOUTS: Final = ("com.microsoft:server-timeout", "server-timeout")
SESSION_FILTER: Final = "com.microsoft:session-filter"
LOCKED_UNTIL: Final = "com.microsoft:locked-until-utc"


def text(link: Link, name: str) -> str | None:
    """A link's property, where it is text."""
    value = link.properties.get(name)
    return str(value) if isinstance(value, str) else None


def timeout_s(link: Link, otherwise_s: float, most_s: float = limits.AMQP_OPERATION_S_MAX) -> float:
    """How long the client of a link gives its operations."""
    return seconds(link.properties.get(TIMEOUT), otherwise_s, most_s)


def seconds(value: Value, otherwise_s: float, most_s: float = limits.AMQP_OPERATION_S_MAX) -> float:
    """A time in milliseconds, of any of AMQP's integers; never longer than we wait at all."""
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        return otherwise_s
    return min(value / 1000, most_s)
