"""`BrokerProperties`: what the service itself knows of a message, as one JSON object in a header or in a batch."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from partitionedqueue.model import stored_message
from partitionedqueue.model.identifiers import sequence_number
from partitionedqueue.model.lock_token import LockToken
from partitionedqueue.model.message import Message, check_keys
from partitionedqueue_gateway.entities.addresses import SubQueue
from partitionedqueue_gateway.entities.entity import Entity
from partitionedqueue_gateway.entities.taken import Taken
from partitionedqueue_gateway.rest.data_plane import times
from partitionedqueue_gateway.rest.refusals import InvalidRequest

HEADER: Final = "BrokerProperties"
_FOR_EVER_S: Final = 922337203685.47754  # .NET's longest TimeSpan, as Azure writes it; longer ones are this
_FOR_EVER_MS: Final = 922_337_203_685_477
_SHORTEST: Final = (",", ":")
_dumps: Final = json.JSONEncoder(separators=_SHORTEST).encode

_TEXTS: Final = {
    "MessageId": "message_id",
    "SessionId": "session_id",
    "PartitionKey": "partition_key",
    "Label": "subject",
    "CorrelationId": "correlation_id",
    "To": "to",
    "ReplyTo": "reply_to",
    "ReplyToSessionId": "reply_to_session_id",
    "ContentType": "content_type",
}


def read_header(header: str) -> dict[str, Any]:
    """What `Message` takes, of a header. Raises InvalidRequest, InvalidMessage."""
    return read(read_json(header, f"The header {HEADER}"), f"The header {HEADER}")


def read_json(text: str | bytes, where: str) -> Any:
    """A JSON document of somebody else's. Raises InvalidRequest."""
    try:
        return _decoder(text) if isinstance(text, str) else json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise InvalidRequest(f"{where} is JSON that is nested too deep.") from None
    except ValueError as error:  # UnicodeDecodeError too, and numbers of thousands of digits
        at = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidRequest(f"{where} is no JSON{at}.") from None


def _no_number(name: str) -> Any:
    raise ValueError(name)


_decoder: Final = json.JSONDecoder(parse_constant=_no_number).decode


def read(given: Any, where: str) -> dict[str, Any]:
    """What `Message` takes, of a JSON value. What is empty counts as not there; unknown names are passed over.

    Raises InvalidRequest, and InvalidMessage for a key that is too long.
    """
    if not isinstance(given, dict):
        raise InvalidRequest(f"{where} is no JSON object.")
    found: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or value == "":
            continue
        if (field := _TEXTS.get(name)) is not None:
            found[field] = _text(value, name, where)
        elif (reader := _OTHERS.get(name)) is not None:
            reader(found, value, name, where)
    return found


def _text(value: Any, name: str, where: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{where} has a {name} that is no text.")
    return value


def _time_to_live(found: dict[str, Any], value: Any, name: str, where: str) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
        raise InvalidRequest(f"{where} has a {name} that is no number of seconds above 0.")
    found["time_to_live_ms"] = min(max(round(min(value, _FOR_EVER_S) * 1000), 1), _FOR_EVER_MS)


def _time_span(found: dict[str, Any], value: Any, name: str, where: str) -> None:
    span = times.read_span(_text(value, name, where))
    if not span:
        raise InvalidRequest(f"{where} has a {name} that is no length of time above 0, 0.00:00:40 say.")
    found["time_to_live_ms"] = min(span, _FOR_EVER_MS)


def _scheduled(found: dict[str, Any], value: Any, name: str, where: str) -> None:
    moment = times.read_moment(_text(value, name, where))
    if moment is None or moment <= 0:
        raise InvalidRequest(f"{where} has a {name} that is no time; write Sun, 06 Nov 1994 08:49:37 GMT.")
    found["scheduled_enqueue_time_ms"] = moment


def _via(_found: dict[str, Any], value: Any, name: str, where: str) -> None:
    check_keys(None, None, _text(value, name, where))  # it places transfers in transactions, which HTTP has none of


_OTHERS: Final[Mapping[str, Callable[[dict[str, Any], Any, str, str], None]]] = {
    "TimeToLive": _time_to_live,
    "TimeToLiveTimeSpan": _time_span,
    "ScheduledEnqueueTimeUtc": _scheduled,
    "ViaPartitionKey": _via,
}
NAMES: Final = (*_TEXTS, *_OTHERS)
"""What senders may say; everything else is passed over."""
_SHOWN_TEXTS: Final = tuple((name, field) for name, field in _TEXTS.items() if name not in {"ContentType"})


def write(message: Message, taken: Taken, entity: Entity) -> str:
    """The header of a message that somebody receives; it is ASCII, whatever is in it."""
    partition, sequence, lock, deliveries, enqueued_ms, locked_until_ms, stored = taken
    number = sequence_number(partition, sequence)
    first = stored_message.first_sequence_number(stored)
    shown: dict[str, Any] = {
        "DeliveryCount": stored_message.deliveries_before(stored) + deliveries,
        "EnqueuedSequenceNumber": sequence_number(partition, first) if first else number,
        "EnqueuedTimeUtc": times.http_date(enqueued_ms),
    }
    for name, field in _SHOWN_TEXTS:
        value = getattr(message, field)
        if value is not None:
            shown[name] = value
    if lock:
        shown["LockToken"] = str(LockToken(partition, sequence, lock).sealed(entity.seal).uuid)
        shown["LockedUntilUtc"] = times.http_date(locked_until_ms)
    if message.scheduled_enqueue_time_ms is not None:
        shown["ScheduledEnqueueTimeUtc"] = times.http_date(message.scheduled_enqueue_time_ms)
    if entity.address.sub_queue is not SubQueue.NONE:
        shown["DeadLetterSource"] = entity.address.name
    shown["SequenceNumber"] = number
    shown["State"] = "Active"
    shown["TimeToLive"] = _time_to_live_of(message, entity)
    return _dumps(shown)


def write_lock(locked_until_ms: int) -> str:
    """The header of a renewed lock."""
    return _dumps({"LockedUntilUtc": times.http_date(locked_until_ms)})


def _time_to_live_of(message: Message, entity: Entity) -> float:
    own, longest = message.time_to_live_ms, entity.spec.default_message_time_to_live_ms
    given = [ms for ms in (own, longest) if ms is not None]
    return min(min(given) / 1000, _FOR_EVER_S) if given else _FOR_EVER_S
