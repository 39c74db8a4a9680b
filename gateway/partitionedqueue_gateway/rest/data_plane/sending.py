"""`POST /{entity}/messages`: one message, or a batch that is stored all or none in one partition."""

import base64
import binascii
import uuid
from collections.abc import Sequence
from typing import Any, Final

from aiohttp import web

from partitionedqueue.model import limits as model_limits
from partitionedqueue.model.errors import MessageTooLarge
from partitionedqueue.model.message import Message
from partitionedqueue.model.storable import Storable, storable
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.policies import Right
from partitionedqueue_gateway.entities.entity import Entity
from partitionedqueue_gateway.rest.bodies import Bodies
from partitionedqueue_gateway.rest.data_plane import broker_properties, custom_properties
from partitionedqueue_gateway.rest.data_plane.requests import Door, timeout_s
from partitionedqueue_gateway.rest.refusals import InvalidRequest

BATCH: Final = "application/vnd.microsoft.servicebus.json"
_FIELDS: Final = frozenset({"Body", "BrokerProperties", "UserProperties", "IsBodyBase64Encoded"})


class Sending:
    """Takes messages in."""

    def __init__(self, door: Door, bodies: Bodies) -> None:
        self._door = door
        self._bodies = bodies

    async def send(self, request: web.Request) -> web.Response:
        """Answered once the message, or every one of a batch, is durable. HOT."""
        entity = self._door.entity(request, Right.SEND)
        entity.check_sending()
        within_s = timeout_s(request, least=limits.HTTP_SEND_S_MIN)
        content_type = request.headers.get("Content-Type")
        batched = content_type is not None and content_type.partition(";")[0].strip().lower() == BATCH
        most = entity.message_bytes_max * (limits.BATCH_BODY_FACTOR if batched else 1)
        with self._bodies.room() as room:
            body = await room.read(request, most)
            messages = read_batch(body, entity) if batched else (_read(request, body, content_type, entity),)
            await entity.send(messages, within_s=within_s)
        return web.Response(status=201)


def _read(request: web.Request, body: bytes, content_type: str | None, entity: Entity) -> Storable:
    header = request.headers.get(broker_properties.HEADER)
    fields = broker_properties.read_header(header) if header is not None else {}
    if content_type is not None:
        fields["content_type"] = content_type
    fields["application_properties"] = custom_properties.read(request.headers.items())
    return _storable(body, fields, entity.message_bytes_max)


def _storable(body: bytes, fields: dict[str, Any], bytes_most: int) -> Storable:
    """Stored as every wire stores it; a message without an id is given one, which is no key and nobody's duplicate."""
    own_id = fields.setdefault("message_id", None)
    if own_id is None:
        fields["message_id"] = uuid.uuid4().hex
    return storable(Message(body=body, **fields), bytes_most=bytes_most)._replace(message_id=own_id)


def read_batch(body: bytes, entity: Entity) -> Sequence[Storable]:
    """The messages of a batch's body. Raises InvalidRequest, InvalidMessage, MessageTooLarge."""
    given = broker_properties.read_json(body, "The body of the batch")
    if not isinstance(given, list) or not 0 < len(given) <= model_limits.BATCHED_MESSAGES_MAX:
        most = model_limits.BATCHED_MESSAGES_MAX
        raise InvalidRequest(f"The body of the batch is no JSON array of 1 to {most:,} messages.")
    most = entity.message_bytes_max
    found = [_batched(one, f"Message {number} of the batch", most) for number, one in enumerate(given, 1)]
    size = sum(len(one.stored) for one in found)
    if len(found) > 1 and size > most:
        raise MessageTooLarge(f"a batch of {size:,} bytes with its properties is over the limit of {most:,}")
    return found


def _batched(given: Any, where: str, bytes_most: int) -> Storable:
    if not isinstance(given, dict) or not given.keys() <= _FIELDS:
        raise InvalidRequest(f"{where} is no JSON object of {', '.join(sorted(_FIELDS))}.")
    fields = broker_properties.read(given.get("BrokerProperties") or {}, f"The BrokerProperties of {where.lower()}")
    properties = given.get("UserProperties") or {}
    if not isinstance(properties, dict) or any(isinstance(value, dict | list) for value in properties.values()):
        raise InvalidRequest(f"{where} has UserProperties that are no JSON object of text, numbers, true and false.")
    fields["application_properties"] = properties
    return _storable(_body(given, where), fields, bytes_most)


def _body(given: dict[str, Any], where: str) -> bytes:
    body = given.get("Body")
    if not isinstance(body, str):
        raise InvalidRequest(f"{where} has no Body that is text.")
    try:
        if given.get("IsBodyBase64Encoded") is True:
            return base64.b64decode(body, validate=True)
        return body.encode()
    except binascii.Error:
        raise InvalidRequest(f"{where} has a Body that is no base64.") from None
    except UnicodeEncodeError:
        raise InvalidRequest(f"{where} has a Body with a half of a surrogate pair in it.") from None
