"""What the client of one connection may do: the latest claims that it has shown for each audience."""

import math
from collections.abc import Callable

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.access import Access, Claims
from partitionedqueue_gateway.access.failures import Unauthorized
from partitionedqueue_gateway.access.policies import Right
from partitionedqueue_gateway.amqp.failures import InvalidRequest


class Standing:
    """Claims by audience. `changed` is called with each new claim: there may be a sooner end to wait for."""

    def __init__(self, access: Access, changed: Callable[[], None]) -> None:
        self._access = access
        self._changed = changed
        self._claims: dict[str | None, Claims] = {None: access.anybody()}

    @property
    def is_somebody(self) -> bool:
        """Whether they may do anything at all."""
        return any(claims.rights for claims in self._claims.values())

    def log_in(self, name: str, key: str) -> None:
        """By SASL PLAIN, for as long as the connection stands. Raises TokenRefused."""
        self._put(None, self._access.verify_plain(name, key))

    def put(self, token: str, audience: str, now_s: float) -> None:
        """By a token. Raises TokenRefused; the earlier claims for the audience stay until they lapse."""
        self._put(audience.lower(), self._access.verify_sas(token, audience, now_s))

    def _put(self, audience: str | None, claims: Claims) -> None:
        if audience not in self._claims and len(self._claims) >= limits.TOKENS_MAX:
            raise InvalidRequest(f"a connection has tokens for at most {limits.TOKENS_MAX} audiences; open another one")
        self._claims[audience] = claims
        self._changed()

    def allow(self, right: Right, path: str, now_s: float) -> bool:
        """Whether any of the claims is good for this."""
        return any(claims.allow(right, path, now_s) for claims in self._claims.values())

    def demand(self, right: Right, path: str, now_s: float) -> None:
        """Raises Unauthorized."""
        if not self.allow(right, path, now_s):
            raise Unauthorized(right)

    def first_end_s(self) -> float:
        """When the first of the claims lapses (seconds since 1970), inf where none does."""
        return min((claims.expires_s for claims in self._claims.values()), default=math.inf)

    def forget_lapsed(self, now_s: float) -> None:
        """They let nobody in any more."""
        self._claims = {audience: claims for audience, claims in self._claims.items() if claims.expires_s > now_s}
