"""What became of a delivery (§3.4): as bytes on the hot path, as values for those who look inside."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from partitionedqueue_gateway.amqp.engine.decoding import DecodeError, decode, decode_at
from partitionedqueue_gateway.amqp.engine.encoding import encode, performative
from partitionedqueue_gateway.amqp.engine.performatives import AmqpError, descriptor_code, error_value, read_error
from partitionedqueue_gateway.amqp.engine.values import Described

ACCEPTED_CODE: Final = 0x24
REJECTED_CODE: Final = 0x25
RELEASED_CODE: Final = 0x26
MODIFIED_CODE: Final = 0x27
TRANSACTIONAL_CODE: Final = 0x34
_NAMES: Final = {
    "amqp:received:list": 0x23,
    "amqp:accepted:list": ACCEPTED_CODE,
    "amqp:rejected:list": REJECTED_CODE,
    "amqp:released:list": RELEASED_CODE,
    "amqp:modified:list": MODIFIED_CODE,
    "amqp:transactional-state:list": TRANSACTIONAL_CODE,
}

ACCEPTED: Final = b"\x00\x53\x24\x45"
REJECTED: Final = b"\x00\x53\x25\x45"
"""Rejected without an error: the answer to a dead-lettering that was done."""
RELEASED: Final = b"\x00\x53\x26\x45"
NO_OUTCOME: Final = b""
"""Settled, and nothing said."""


class Accepted(NamedTuple):
    """Done with."""


class Rejected(NamedTuple):
    """Cannot be taken; to Service Bus: dead-letter it."""

    error: AmqpError | None = None


class Released(NamedTuple):
    """Was not looked at."""


class Modified(NamedTuple):
    """To Service Bus: abandon, or defer where undeliverable_here."""

    delivery_failed: bool = False
    undeliverable_here: bool = False
    annotations: Mapping[Any, Any] | None = None


class Transactional(NamedTuple):
    """An outcome within a transaction (§4.5.8)."""

    transaction_id: bytes
    outcome: Any = None


class Received(NamedTuple):
    """How far a delivery has come: no outcome yet."""

    section_number: int
    section_offset: int


Outcome = Accepted | Rejected | Released | Modified | Transactional | Received


def code_of(state: bytes) -> int:
    """Which state these bytes are, by its descriptor: ACCEPTED_CODE …; 0 for none."""
    if state[:2] == b"\x00\x53":
        return state[2]
    if not state:
        return 0
    descriptor, _ = decode_at(state, 1)
    return descriptor_code(descriptor, _NAMES)


def read(state: bytes) -> Outcome | None:
    """The state that these bytes are, None for none. Raises DecodeError for what is no known state."""
    if not state:
        return None
    value = decode(state)
    fields = value.value if isinstance(value, Described) else None
    if not isinstance(fields, list):
        raise DecodeError("a delivery's state is no described list")
    code = descriptor_code(value.descriptor, _NAMES)
    match code, [*fields, None, None, None]:
        case (0x23, [int(number), int(offset), *_]):
            return Received(number, offset)
        case (0x24, _):
            return Accepted()
        case (0x25, [None, *_]):
            return Rejected()
        case (0x25, [error, *_]):
            return Rejected(read_error(error))
        case (0x26, _):
            return Released()
        case (0x27, [(bool() | None) as failed, (bool() | None) as elsewhere, (dict() | None) as annotations, *_]):
            return Modified(bool(failed), bool(elsewhere), annotations)
        case (0x34, [bytes(transaction), outcome, *_]):
            return Transactional(transaction, None if outcome is None else read(encode(outcome)))
    raise DecodeError(f"a delivery's state has the unknown or malformed form 0x{code:x}")


def rejected(error: AmqpError) -> bytes:
    """Rejected for a reason."""
    return performative(REJECTED_CODE, [error_value(error)])


def modified(outcome: Modified) -> bytes:
    """Modified, encoded. An answer to abandon and defer echoes the state it answers: no need of this there."""
    return performative(MODIFIED_CODE, [outcome.delivery_failed, outcome.undeliverable_here, outcome.annotations])
