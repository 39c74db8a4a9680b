"""What a policy or a token reaches: everything, one Kubernetes namespace, or one entity and what is inside it.

A scope is a tuple of segments, lower-case; one holds for a path that begins with it, segment by segment. A path's first
segment is always its Kubernetes namespace, so that queue `shop` of the default one does not reach namespace `shop`:

    sb://host:5672/orders/$management  ->  ("default", "orders", "$management")
    team-a/orders                      ->  ("team-a", "orders")
    team-a/*                           ->  ("team-a",)
    sb://host/                         ->  ()
"""

import re
from typing import Final, TypeAlias
from urllib.parse import unquote

Scope: TypeAlias = tuple[str, ...]
EVERYTHING: Final[Scope] = ()
_AUTHORITY: Final = re.compile(r"\A[a-z][a-z0-9+.-]*://[^/]*", re.IGNORECASE)


def scope_of(text: str, default_namespace: str) -> Scope:
    """What an address, an audience or a policy's `entity` names; scheme, host and port say nothing about it."""
    path = unquote(_AUTHORITY.sub("", text, count=1)).partition("?")[0].lower()
    segments = tuple(segment for segment in path.split("/") if segment)
    if not segments:
        return EVERYTHING
    if len(segments) == 2 and segments[1] == "*":
        return segments[:1]
    return (default_namespace, *segments) if len(segments) == 1 or _is_inside(segments[1:]) else segments


def _is_inside(rest: Scope) -> bool:
    """Whether this follows an entity's name: `$management`, `subscriptions/invoices`, but no queue of such a name."""
    return rest[0].startswith("$") or (rest[0] == "subscriptions" and len(rest) > 1 and not rest[1].startswith("$"))


def reaches(scope: Scope, other: Scope) -> bool:
    """Whether all of the other one lies within a scope."""
    return other[: len(scope)] == scope
