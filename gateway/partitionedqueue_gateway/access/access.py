"""The door's question: who is this, and what may they do? Asked with a token or a password, answered with claims."""

import math
from dataclasses import dataclass
from typing import Final

from partitionedqueue_gateway.access import sas
from partitionedqueue_gateway.access.failures import InvalidAudience, InvalidSignature, Unauthorized
from partitionedqueue_gateway.access.policies import ALL_RIGHTS, Policies, Right
from partitionedqueue_gateway.access.scopes import EVERYTHING, Scope, reaches, scope_of


@dataclass(frozen=True, slots=True)
class Claims:
    """What somebody may do, where, and until when (seconds since 1970; inf: as long as the connection stands)."""

    policy: str
    rights: frozenset[Right]
    scope: Scope
    expires_s: float
    default_namespace: str

    def allow(self, right: Right, path: str, now_s: float) -> bool:
        """Whether they may do this with an entity: its path, an address or an audience in any of their forms."""
        return (
            right in self.rights
            and now_s < self.expires_s
            and reaches(self.scope, scope_of(path, self.default_namespace))
        )

    def demand(self, right: Right, path: str, now_s: float) -> None:
        """Raises Unauthorized where they may not."""
        if not self.allow(right, path, now_s):
            raise Unauthorized(right)


class Access:
    """Turns tokens and passwords into claims. `policies` None: everybody may do everything."""

    def __init__(self, policies: Policies | None, *, default_namespace: str = "default") -> None:
        self._policies = policies
        self._default_namespace = default_namespace

    @property
    def anonymous(self) -> bool:
        """Whether everybody may do everything, without a token too."""
        return self._policies is None

    def anybody(self) -> Claims:
        """What those may do who have shown nothing."""
        rights = ALL_RIGHTS if self.anonymous else frozenset[Right]()
        return Claims("", rights, EVERYTHING, math.inf, self._default_namespace)

    def verify_sas(self, token: str, audience: str, now_s: float) -> Claims:
        """What a shared access signature lets its bearer do; `audience` is what they say it is for.

        The claims reach as far as both the token's own resource and its policy do. Raises MalformedToken,
        InvalidSignature, ExpiredToken, InvalidAudience: all of them are TokenRefused.
        """
        if self._policies is None:
            return self.anybody()
        read = sas.parse(token)
        policy = self._policies.signer(read.policy, read.signed, read.signature)
        if policy is None:
            raise InvalidSignature
        sas.refuse_expired(read, now_s)
        own = scope_of(read.resource, self._default_namespace)
        scope = own if reaches(policy.scope, own) else policy.scope
        if not (reaches(own, scope) and reaches(scope, scope_of(audience, self._default_namespace))):
            raise InvalidAudience
        return Claims(policy.name, policy.rights, scope, read.expires_s, self._default_namespace)

    def verify_plain(self, name: str, key: str) -> Claims:
        """What SASL PLAIN lets somebody do: a policy's name and one of its keys. Raises InvalidSignature."""
        if self._policies is None:
            return self.anybody()
        policy = self._policies.holder(name, key.encode(errors="surrogatepass"))
        if policy is None:
            raise InvalidSignature
        return Claims(policy.name, policy.rights, policy.scope, math.inf, self._default_namespace)


TOKEN_PREFIX: Final = sas.PREFIX
