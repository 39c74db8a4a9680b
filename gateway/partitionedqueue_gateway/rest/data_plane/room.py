"""The data plane's routes."""

from collections.abc import Sequence
from typing import Final

from aiohttp import web

from partitionedqueue_gateway.entities.entities import Entities
from partitionedqueue_gateway.rest.authorization import Authorization
from partitionedqueue_gateway.rest.bodies import Bodies
from partitionedqueue_gateway.rest.data_plane.description import Description
from partitionedqueue_gateway.rest.data_plane.receiving import Receiving
from partitionedqueue_gateway.rest.data_plane.requests import Door
from partitionedqueue_gateway.rest.data_plane.sending import Sending
from partitionedqueue_gateway.rest.data_plane.settling import Settling
from partitionedqueue_gateway.rest.paths import ENTITY

MESSAGES: Final = f"/{ENTITY}/messages"
HEAD: Final = f"{MESSAGES}/head"
HELD: Final = f"{MESSAGES}/{{id}}/{{token}}"


class DataPlane:
    """Messages of all queues."""

    waits = True

    def __init__(self, entities: Entities, authorization: Authorization) -> None:
        door = Door(entities, authorization)
        self._sending = Sending(door, Bodies())
        self._receiving = Receiving(door)
        self._settling = Settling(door)

    def routes(self) -> Sequence[web.RouteDef]:
        """What is answered here. A slash at the end changes nothing, as with Azure."""
        own = [
            (web.post, HEAD, self._receiving.lock),
            (web.delete, HEAD, self._receiving.delete),
            (web.delete, HELD, self._settling.complete),
            (web.put, HELD, self._settling.abandon),
            (web.post, HELD, self._settling.renew),
            (web.post, MESSAGES, self._sending.send),
        ]
        slashed = [route(f"{path}/", handler) for route, path, handler in own]
        return [*Description().routes(), *(route(path, handler) for route, path, handler in own), *slashed]

    def drain(self) -> None:
        """This process ends: nobody waits here for messages any more."""
        self._receiving.drain()
