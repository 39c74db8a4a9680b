"""What all requests for messages have in common: which entity, whether they may, how long they wait."""

import re
from functools import lru_cache
from typing import Final

from aiohttp import web

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.policies import Right
from partitionedqueue_gateway.entities import addresses
from partitionedqueue_gateway.entities.addresses import Node
from partitionedqueue_gateway.entities.entities import Entities
from partitionedqueue_gateway.entities.entity import Entity
from partitionedqueue_gateway.entities.failures import EntityNotFound
from partitionedqueue_gateway.rest import versions
from partitionedqueue_gateway.rest.authorization import Authorization
from partitionedqueue_gateway.rest.refusals import EntityGone, InvalidRequest

_address_of = lru_cache(maxsize=1_024)(addresses.parse_path)  # aiohttp has decoded the path
_SECONDS: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


class Door:
    """Lets requests in."""

    def __init__(self, entities: Entities, authorization: Authorization) -> None:
        self._entities = entities
        self._authorization = authorization

    def entity(self, request: web.Request, right: Right) -> Entity:
        """The entity that a request is about, for somebody who may do this with it.

        Who may not does not hear whether it is there. Raises TokenRefused, Unauthorized, EntityGone, InvalidRequest,
        BrokerUnavailable.
        """
        address, node = _address_of(request.match_info["path"])
        self._authorization.demand(request, right, address.path)
        if request.query_string:
            versions.check(request)
        try:
            if node is not Node.ENTITY:
                raise EntityNotFound(f"{address.path}/{node}")
            return self._entities.open(address)
        except EntityNotFound as error:
            raise EntityGone(str(error)) from error


def timeout_s(request: web.Request, least: float = 0.0) -> float:
    """How long a request is to wait; longer than the longest is that. Raises InvalidRequest."""
    text = request.query.get("timeout") if request.query_string else None
    if text is None:
        return limits.HTTP_TIMEOUT_S_DEFAULT
    if not _SECONDS.fullmatch(text):
        raise InvalidRequest(f"The timeout '{text}' is no number of seconds.")
    return min(max(float(text), least), limits.HTTP_TIMEOUT_S_MAX)
