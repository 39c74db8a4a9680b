"""`…/messages/{id}/{lock token}`: what is done with a message that somebody holds.

The token alone says which message it is and who holds it, so that any gateway settles what another has handed out; the
id or sequence number before it, which clients put there, says nothing more.
"""

from uuid import UUID

from aiohttp import web

from partitionedqueue.model.errors import LockLost
from partitionedqueue.model.lock_token import LockToken
from partitionedqueue_gateway.access.policies import Right
from partitionedqueue_gateway.entities.entity import Entity
from partitionedqueue_gateway.entities.ranges import LOCK_LOST
from partitionedqueue_gateway.rest.data_plane import broker_properties
from partitionedqueue_gateway.rest.data_plane.requests import Door


class Settling:
    """Completes, abandons, renews."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def complete(self, request: web.Request) -> web.Response:
        """The message is done with."""
        entity, token = self._held(request)
        await entity.complete(token)
        return web.Response()

    async def abandon(self, request: web.Request) -> web.Response:
        """It goes back, and its deliveries are counted."""
        entity, token = self._held(request)
        for error in (await entity.abandon([token])).values():
            raise error
        return web.Response()

    async def renew(self, request: web.Request) -> web.Response:
        """It stays locked for as long again as from now on."""
        entity, token = self._held(request)
        (until_ms,) = await entity.renew([token])
        return web.Response(headers={broker_properties.HEADER: broker_properties.write_lock(until_ms)})

    def _held(self, request: web.Request) -> tuple[Entity, LockToken]:
        entity = self._door.entity(request, Right.LISTEN)
        try:
            uuid = UUID(request.match_info["token"])
        except ValueError:
            raise LockLost(LOCK_LOST) from None
        return entity, LockToken.from_uuid(uuid, entity.seal)
