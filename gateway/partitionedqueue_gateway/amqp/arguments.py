"""What the map of a request says, each value checked as it is read. All raise InvalidRequest (Azure: ArgumentError)."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from partitionedqueue.model import limits
from partitionedqueue.model.amqp_types import Encoded
from partitionedqueue.model.lock_token import LockToken
from partitionedqueue_gateway.amqp.engine.encoding import encode
from partitionedqueue_gateway.amqp.engine.values import Array, Value
from partitionedqueue_gateway.amqp.failures import ArgumentOutOfRange, InvalidRequest

Arguments = Mapping[Any, Value]


def of(body: Value) -> Arguments:
    """The map itself."""
    if not isinstance(body, dict):
        raise InvalidRequest("the body of this request is a map, as an AMQP value")
    return body


def items(arguments: Arguments, name: str, *, most: int = limits.SEQUENCES_MAX) -> list[Value]:
    """A list or array."""
    value = arguments.get(name)
    found = value.items if isinstance(value, Array) else value
    if not isinstance(found, list) or not found:
        raise InvalidRequest(f"{name} is a list or array, and not empty")
    if len(found) > most:
        raise ArgumentOutOfRange(f"{name} has {len(found):,} entries; at most {most:,} are allowed")
    return found


def whole(arguments: Arguments, name: str, *, least: int, most: int | None = None, otherwise: int | None = None) -> int:
    """A whole number; one above `most` becomes it, `otherwise` is given where there is none."""
    value = arguments.get(name, otherwise)
    if value is None and otherwise is not None:
        value = otherwise
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidRequest(f"{name} is a whole number")
    if value < least:
        raise ArgumentOutOfRange(f"{name} is {value}; it is {least} or more")
    return int(value if most is None else min(value, most))


def text(arguments: Arguments, name: str) -> str | None:
    """Text, or None where there is none."""
    value = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidRequest(f"{name} is text")
    return None if value is None else str(value)


def sequence_numbers(arguments: Arguments, name: str = "sequence-numbers") -> list[int]:
    """64-bit sequence numbers."""
    numbers = items(arguments, name)
    if any(not isinstance(number, int) or not 0 < number < 1 << 63 for number in numbers):
        raise ArgumentOutOfRange(f"{name} has an entry that is no sequence number")
    return [int(number) for number in numbers]


def lock_tokens(arguments: Arguments, seal: int, name: str = "lock-tokens") -> list[LockToken]:
    """Lock tokens, under the entity's seal. Raises LockLost for one that was never handed out."""
    tokens = items(arguments, name)
    if any(not isinstance(token, UUID) for token in tokens):
        raise InvalidRequest(f"{name} are UUIDs")
    return [LockToken.from_uuid(token, seal) for token in tokens]


def changes(arguments: Arguments, name: str) -> dict[str, Encoded | None]:
    """A map of properties to change, null to take one away; empty where there is none."""
    return changes_of(named(arguments.get(name), name))


def named(value: Value, name: str) -> dict[str, Value]:
    """A map whose keys are text, or nothing."""
    if value is None:
        return {}
    if not isinstance(value, dict) or any(not isinstance(key, str) for key in value):
        raise InvalidRequest(f"{name} is a map whose keys are text")
    return {str(key): entry for key, entry in value.items()}


def changes_of(properties: Mapping[str, Value]) -> dict[str, Encoded | None]:
    """Properties as they are kept: encoded, so that they come back with the type that they were given."""
    for name, value in properties.items():
        if isinstance(value, list | dict | Array):  # AMQP 1.0 §3.2.5
            raise InvalidRequest(f"the property {name!r} is a list or a map; application properties have simple values")
    return {name: None if value is None else Encoded(encode(value)) for name, value in properties.items()}
