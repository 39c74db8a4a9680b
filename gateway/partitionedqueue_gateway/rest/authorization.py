"""The header `Authorization`: who asks, and whether they may."""

import time

from aiohttp import web

from partitionedqueue_gateway.access.access import Access, Claims
from partitionedqueue_gateway.access.policies import Right
from partitionedqueue_gateway.rest.refusals import MissingToken


class Authorization:
    """Looks at each request by itself: HTTP's clients show their token every time, and nothing is remembered."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def claims(self, request: web.BaseRequest, path: str) -> Claims:
        """What somebody may do with an entity ("": the namespace). Raises TokenRefused, of whatever kind.

        The token comes as it is, without a word before it, as every SDK of Azure's sends it.
        """
        token = request.headers.get("Authorization")
        if token is not None:
            return self._access.verify_sas(token, path, time.time())
        if self._access.anonymous:
            return self._access.anybody()
        raise MissingToken

    def demand(self, request: web.BaseRequest, right: Right, path: str) -> Claims:
        """Raises TokenRefused, and Unauthorized where they may not do this. HOT."""
        claims = self.claims(request, path)
        claims.demand(right, path, time.time())
        return claims
