"""`$management` of an entity: requests by name, each with the right that it takes, answered with a status code."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.policies import Right
from partitionedqueue_gateway.amqp import arguments, conditions, link_properties, message_operations, session_operations
from partitionedqueue_gateway.amqp.engine.values import Int, Symbol, Value
from partitionedqueue_gateway.amqp.failures import NotAllowed, NotSupported, OperationTimeout
from partitionedqueue_gateway.amqp.operation import Reply, Work
from partitionedqueue_gateway.amqp.peer import Peer
from partitionedqueue_gateway.amqp.requests import Answer, Request
from partitionedqueue_gateway.amqp.session_links import SessionLink
from partitionedqueue_gateway.entities.addresses import EntityAddress
from partitionedqueue_gateway.entities.entity import Entity
from partitionedqueue_gateway.entities.session import Session

Operation: TypeAlias = Callable[[Work], Awaitable[Reply]]
_PREFIX: Final = "com.microsoft:"
_TRACKING_ID: Final = "com.microsoft:tracking-id"
_log = logging.getLogger(__name__)


class Offer(NamedTuple):
    """An operation, and the right that it takes."""

    operation: Operation
    right: Right = Right.LISTEN


async def _no_rules(work: Work) -> Reply:
    raise NotAllowed(f"rules are a subscription's; '{work.entity.address.path}' is a queue")


OFFERS: Final[Mapping[str, Offer]] = {
    "renew-lock": Offer(message_operations.renew_lock),
    "peek-message": Offer(message_operations.peek_message),
    "schedule-message": Offer(message_operations.schedule_message, Right.SEND),
    "cancel-scheduled-message": Offer(message_operations.cancel_scheduled_message, Right.SEND),
    "receive-by-sequence-number": Offer(message_operations.receive_by_sequence_number),
    "update-disposition": Offer(message_operations.update_disposition),
    "batch-delete-messages": Offer(message_operations.batch_delete_messages),
    "renew-session-lock": Offer(session_operations.renew_session_lock),
    "get-session-state": Offer(session_operations.get_session_state),
    "set-session-state": Offer(session_operations.set_session_state),
    "get-message-sessions": Offer(session_operations.get_message_sessions),
    "add-rule": Offer(_no_rules),
    "remove-rule": Offer(_no_rules),
    "enumerate-rules": Offer(_no_rules),
}


class ManagementNode:
    """Answers for one entity and connection. `path`: the node's, which claims for the entity reach too."""

    def __init__(self, peer: Peer, address: EntityAddress, path: str) -> None:
        self._peer = peer
        self._address = address
        self._path = path

    async def respond(self, request: Request) -> Answer:
        """Carry a request out, within the time that its client gives."""
        within_s = _within_s(request)
        try:
            async with asyncio.timeout(within_s):
                return _answer(request, await self._carry_out(request, within_s))
        except PartitionedQueueError as error:
            return _refusal(request, error)
        except TimeoutError:
            return _refusal(request, OperationTimeout(within_s))
        except Exception as error:  # noqa: BLE001 -- a defect of ours: the client is told, and waits no longer
            _log.exception("%s of '%s' failed", request.operation, self._path)
            return _refusal(request, error)

    async def _carry_out(self, request: Request, within_s: float) -> Reply:
        name = request.operation.removeprefix(_PREFIX)
        offer = OFFERS.get(name) if request.operation.startswith(_PREFIX) else None
        if offer is None:
            raise NotSupported(f"there is no operation {request.operation!r}")
        self._peer.standing.demand(offer.right, self._path, time.time())
        entity = self._peer.services.entities.open(self._address)  # a queue may go and come again
        work = Work(
            entity=entity,
            arguments=arguments.of(request.body),
            sessions=self._peer.sessions,
            linked=self._linked(entity, request.text("associated-link-name")),
            new_message_id=self._peer.services.new_message_id,
            within_s=within_s,
        )
        return await offer.operation(work)

    def _linked(self, entity: Entity, name: str | None) -> Session | None:
        """The session of the link of that name, where it is one of this entity's."""
        if name is None:
            return None
        for endpoint in self._peer.endpoints.values():
            if isinstance(endpoint, SessionLink) and endpoint.link.name == name and endpoint.entity is entity:
                return endpoint.session
        return None


def _within_s(request: Request) -> float:
    given = next(
        (request.properties[key] for key in link_properties.SERVER_TIMEOUTS if key in request.properties), None
    )
    return link_properties.seconds(given, limits.AMQP_OPERATION_S_MAX)


def _properties(request: Request, status: int, words: str) -> dict[str, Value]:
    properties: dict[str, Value] = {"statusCode": Int(status), "statusDescription": words}
    tracking_id = request.text(_TRACKING_ID)
    if tracking_id is not None:
        properties[_TRACKING_ID] = tracking_id
    return properties


def _answer(request: Request, reply: Reply) -> Answer:
    properties = _properties(request, reply.status, reply.words)
    if reply.condition is not None:
        properties["errorCondition"] = Symbol(reply.condition)
    return Answer(properties, None if reply.body is None else dict(reply.body))


def _refusal(request: Request, error: Exception) -> Answer:
    symbol, status, words = conditions.told(error)
    return Answer({**_properties(request, status, words), "errorCondition": Symbol(symbol)})
