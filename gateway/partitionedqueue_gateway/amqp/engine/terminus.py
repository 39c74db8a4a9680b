"""What a link goes from and to (§3.5), read from the described lists that attach carries."""

from collections.abc import Mapping
from typing import Any, Final

from partitionedqueue_gateway.amqp.engine.performatives import descriptor_code
from partitionedqueue_gateway.amqp.engine.values import Described, Symbol, ULong, Value

SOURCE: Final = 0x28
TARGET: Final = 0x29
COORDINATOR: Final = 0x30
_ADDRESS: Final = 0
_FILTERS: Final = 7


def address_of(terminus: Described | None) -> str | None:
    """The address of a source or target; None where it has none, or one that is no text."""
    address = _field(terminus, _ADDRESS)
    return address if isinstance(address, str) else None


def filters_of(source: Described | None) -> Mapping[Any, Any]:
    """The filter set of a source, empty where it has none."""
    filters = _field(source, _FILTERS)
    return filters if isinstance(filters, dict) else {}


def with_filters(source: Described, filters: Mapping[Any, Any]) -> Described:
    """The same source with other filters: what we have made of those asked for."""
    fields = [*source.value, *[None] * (_FILTERS + 1 - len(source.value))]
    fields[_FILTERS] = dict(filters)
    return Described(source.descriptor, fields)


def is_coordinator(target: Described | None) -> bool:
    """Whether this is a transaction coordinator (§4.5.1) rather than a node."""
    return (
        target is not None and descriptor_code(target.descriptor, {"amqp:coordinator:list": COORDINATOR}) == COORDINATOR
    )


def source(address: str | None, *, filters: Mapping[Any, Any] | None = None) -> Described:
    """A source, for a client."""
    fields: list[Value] = [address] if filters is None else [address, None, None, None, None, None, None, filters]
    return Described(ULong(SOURCE), fields)


def target(address: str | None) -> Described:
    """A target, for a client."""
    return Described(ULong(TARGET), [address])


def session_filter(session_id: str | None) -> dict[Symbol, str | None]:
    """Service Bus' filter for one of its sessions, None for the next that is free."""
    return {Symbol("com.microsoft:session-filter"): session_id}


def _field(terminus: Described | None, index: int) -> Value:
    if terminus is None or not isinstance(terminus.value, list) or len(terminus.value) <= index:
        return None
    return terminus.value[index]
