"""Management operations on messages. Their requests and answers: docs/reference/amqp.md."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias
from uuid import UUID

from partitionedqueue.model import amqp_message, limits
from partitionedqueue.model.amqp_message import Shown
from partitionedqueue.model.amqp_types import Encoded
from partitionedqueue.model.identifiers import sequence_number
from partitionedqueue.model.storable import Storable
from partitionedqueue_gateway.amqp import arguments, conditions
from partitionedqueue_gateway.amqp.dispositions import Abandon, Complete, DeadLetter, Defer, Disposition
from partitionedqueue_gateway.amqp.engine.values import Array, Int, Value
from partitionedqueue_gateway.amqp.failures import InvalidRequest, NotSupported
from partitionedqueue_gateway.amqp.operation import NO_CONTENT, Reply, Work
from partitionedqueue_gateway.entities import taken
from partitionedqueue_gateway.entities.addresses import SubQueue
from partitionedqueue_gateway.entities.entity import Entity
from partitionedqueue_gateway.entities.taken import Taken

Changes: TypeAlias = Mapping[str, Encoded | None]
_DELETE: Final = 0  # the receiver's settle mode in receive-by-sequence-number: receive and delete
_NO_TOKEN: Final = UUID(int=0)
_NOTHING: Final = conditions.MESSAGE_NOT_FOUND.symbol


async def renew_lock(work: Work) -> Reply:
    """Hold messages for another lock duration."""
    until_ms = await work.entity.renew(arguments.lock_tokens(work.arguments, work.entity.seal))
    return Reply({"expirations": Array.of_timestamps(until_ms)})


async def peek_message(work: Work) -> Reply:
    """Show messages from a sequence number on. One partition away: what the others have, which the words say."""
    first = arguments.whole(work.arguments, "from-sequence-number", least=-(1 << 63))
    most = arguments.whole(work.arguments, "message-count", least=1, most=limits.PEEK_MESSAGES_MAX)
    session_id = arguments.text(work.arguments, "session-id")
    if session_id is None and work.linked is not None:
        session_id = work.linked.session_id  # Go names the link of a session only
    found = await work.entity.peek(max(0, first), most, session_id=session_id)
    words = "OK"
    if found.missing:
        if not found.messages:
            raise next(iter(found.missing.values()))
        words = f"without partitions {', '.join(map(str, sorted(found.missing)))}, which are away"
    if not found.messages:
        return Reply(None, NO_CONTENT, "There are no further messages.", _NOTHING)
    source = _source(work.entity)
    return Reply({"messages": [{"message": _peeked(one, source)} for one in found.messages]}, words=words)


def _source(entity: Entity) -> str:
    return entity.address.name if entity.address.sub_queue is not SubQueue.NONE else ""


def _peeked(one: taken.Shown, source: str) -> bytes:
    number = sequence_number(one.partition, one.sequence)
    shown = Shown(number, one.enqueued_time_ms, one.deliveries, 0, b"", int(one.state), source)
    return amqp_message.write(one.stored, shown)


async def schedule_message(work: Work) -> Reply:
    """Store messages that become visible at a time each."""
    messages = [_scheduled(work, one) for one in arguments.items(work.arguments, "messages")]
    numbers = await work.entity.schedule(messages, within_s=work.within_s)
    return Reply({"sequence-numbers": Array.of_longs(numbers)})


def _scheduled(work: Work, one: Value) -> Storable:
    encoded = one.get("message") if isinstance(one, dict) else None
    if not isinstance(encoded, bytes):
        raise InvalidRequest("messages is a list of maps, each with a message as binary")
    return amqp_message.read(encoded, new_message_id=work.new_message_id, bytes_most=work.entity.message_bytes_max)


async def cancel_scheduled_message(work: Work) -> Reply:
    """Take scheduled messages back before their time."""
    await work.entity.cancel_scheduled(arguments.sequence_numbers(work.arguments))
    return Reply({})


async def receive_by_sequence_number(work: Work) -> Reply:
    """Receive deferred messages."""
    deletes = arguments.whole(work.arguments, "receiver-settle-mode", least=0, otherwise=1) == _DELETE
    numbers = arguments.sequence_numbers(work.arguments)
    found = await work.entity.receive_deferred(numbers, delete=deletes, session=work.session_of_locks())
    source = _source(work.entity)
    return Reply({"messages": [_deferred(one, work.entity.seal, source) for one in found]})


def _deferred(one: Taken, seal: int, source: str) -> Mapping[str, Value]:
    token = one.token.sealed(seal)
    locked = bool(one.lock)
    shown = Shown(
        sequence_number(one.partition, one.sequence),
        one.enqueued_time_ms,
        one.deliveries - 1,
        one.locked_until_ms,
        token.uuid_bytes if locked else b"",
        1,
        source,
    )
    return {"message": amqp_message.write(one.stored, shown), "lock-token": token.uuid if locked else _NO_TOKEN}


async def update_disposition(work: Work) -> Reply:
    """Settle messages by their lock tokens."""
    given = work.arguments
    status = arguments.text(given, "disposition-status") or ""
    if status not in _DISPOSITIONS:
        raise InvalidRequest(f"disposition-status is {status!r}; it is one of {', '.join(_DISPOSITIONS)}")
    changes = arguments.changes(given, "properties-to-modify")
    meant = _DISPOSITIONS[status](given, changes)
    tokens = arguments.lock_tokens(given, work.entity.seal)
    lost = await meant.settle(work.entity, tokens, work.session_of_locks())
    for error in lost.values():
        raise error
    return Reply({})


_DISPOSITIONS: Final[Mapping[str, Callable[[arguments.Arguments, Changes], Disposition]]] = {
    "completed": lambda _, __: Complete(),
    "abandoned": lambda _, changes: Abandon(changes=changes),
    "defered": lambda _, changes: Defer(changes),  # spelt so on the wire
    "suspended": lambda given, changes: DeadLetter(
        arguments.text(given, "deadletter-reason") or "",
        arguments.text(given, "deadletter-description") or "",
        changes,
    ),
}


async def batch_delete_messages(work: Work) -> Reply:
    """Remove messages that nobody holds and that were enqueued before a time."""
    if arguments.text(work.arguments, "session-id") is not None:
        raise NotSupported("messages are deleted in batches from a whole entity, not from one session")
    most = arguments.whole(work.arguments, "message-count", least=1, most=limits.SEQUENCES_MAX)
    before_ms = arguments.whole(work.arguments, "enqueued-time-utc", least=0, most=limits.BROKER_NUMBER_MAX)
    deleted = await work.entity.delete_batch(most, before_ms)
    if not deleted:
        return Reply(None, NO_CONTENT, "There are no such messages.", _NOTHING)
    return Reply({"message-count": Int(deleted)})
