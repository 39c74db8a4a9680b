"""Requests to the API server: a method each, with a timeout, counted, and its refusals as errors."""

import json
from collections import Counter
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from partitionedqueue_operator.cluster.access import Access
from partitionedqueue_operator.cluster.kinds import Kind
from partitionedqueue_operator.observed import OPERATOR

REQUEST_S_MAX: Final = 15.0
_APPLY: Final = "application/apply-patch+yaml"
_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
NOT_FOUND: Final = 404
CONFLICT: Final = 409
FORBIDDEN: Final = 403
SERVER_ERROR: Final = 500
TOO_MANY: Final = 429


class ApiFault(Exception):
    """The API server said no, or nothing. `status` is HTTP's, 0 where there was no answer."""

    def __init__(self, status: int, words: str, causes: tuple[str, ...] = ()) -> None:
        super().__init__(words)
        self.status = status
        self.causes = causes

    @property
    def namespace_ending(self) -> bool:
        """Whether it was refused because the namespace is being deleted: nothing is to be done there any more."""
        return self.status == FORBIDDEN and ("NamespaceTerminating" in self.causes or "being terminated" in str(self))

    @property
    def passing(self) -> bool:
        """Whether the API server itself is in trouble, which says nothing about what was asked."""
        return self.status in (0, TOO_MANY) or self.status >= SERVER_ERROR


class Api:
    """Speaks to the API server from one event loop. `requests` counts them by verb, kind and status."""

    def __init__(self, access: Access, requests: Counter[tuple[str, str, int]] | None = None) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None
        self.requests: Counter[tuple[str, str, int]] = Counter() if requests is None else requests

    async def __aenter__(self) -> Self:
        self._session = self._access.session()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        """An object, or None where there is none."""
        try:
            return await self._ask("get", kind, kind.path(namespace, name))
        except ApiFault as fault:
            if fault.status == NOT_FOUND:
                return None
            raise

    async def served(self, kind: Kind) -> bool:
        """Whether the API server has such a custom resource; everybody may ask that."""
        try:
            found = await self._ask("discover", kind, f"/apis/{kind.api_version}")
        except ApiFault as fault:
            if fault.status == NOT_FOUND:
                return False
            raise
        return any(resource.get("name") == kind.plural for resource in found.get("resources") or [])

    async def names(self, kind: Kind, namespace: str, selector: str) -> set[tuple[str, str, str]]:
        """Namespace, name and uid of all objects there are; of their contents nothing is sent."""
        params = {"resourceVersion": "0"} | ({"labelSelector": selector} if selector else {})
        found = await self._ask("list", kind, kind.path(namespace), params=params, headers={"Accept": _METADATA})
        return {
            (item["metadata"]["namespace"], item["metadata"]["name"], item["metadata"]["uid"])
            for item in found.get("items") or []
        }

    async def create(self, kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
        """Make an object; ApiFault with status 409 where there is one of that name."""
        return await self._ask("create", kind, kind.path(body["metadata"]["namespace"]), method="POST", body=body)

    async def replace(self, kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
        """Write an object over; ApiFault with status 409 where it has changed since it was read."""
        path = kind.path(body["metadata"]["namespace"], body["metadata"]["name"])
        return await self._ask("update", kind, path, method="PUT", body=body)

    async def apply(self, kind: Kind, body: dict[str, Any], *, part: str = "") -> dict[str, Any]:
        """Server-side apply: what is in the body becomes so, and what was applied before and no longer is, goes."""
        path = kind.path(body["metadata"]["namespace"], body["metadata"]["name"], part)
        params = {"fieldManager": OPERATOR, "force": "true"}
        return await self._ask(
            "apply", kind, path, method="PATCH", params=params, body=body, headers={"Content-Type": _APPLY}
        )

    async def merge(self, kind: Kind, namespace: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
        """Change some fields of an object."""
        headers = {"Content-Type": "application/merge-patch+json"}
        return await self._ask("patch", kind, kind.path(namespace, name), method="PATCH", body=body, headers=headers)

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        """Delete an object, and no other of its name; it is well if it is gone already."""
        body = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        try:
            await self._ask("delete", kind, kind.path(namespace, name), method="DELETE", body=body)
        except ApiFault as fault:
            if fault.status not in (NOT_FOUND, CONFLICT):
                raise

    async def _ask(
        self,
        verb: str,
        kind: Kind,
        path: str,
        *,
        method: str = "GET",
        params: dict[str, str] | None = None,
        body: object = None,
        headers: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        assert self._session is not None
        said = {"Content-Type": "application/json", **(headers or {}), **await self._access.headers()}
        status = 0
        try:
            async with self._session.request(
                method,
                self._access.server + path,
                params=params,
                data=None if body is None else json.dumps(body),
                headers=said,
                timeout=aiohttp.ClientTimeout(total=REQUEST_S_MAX),
            ) as response:
                status = response.status
                answer: dict[str, Any] = json.loads(await response.read() or b"{}")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ApiFault(status, f"the API server does not answer: {str(error) or type(error).__name__}") from error
        finally:
            self.requests[verb, kind.name, status] += 1
        if not response.ok:
            causes = (answer.get("details") or {}).get("causes") or []
            reasons = tuple(str(cause.get("reason", "")) for cause in causes)
            raise ApiFault(status, str(answer.get("message") or response.reason), reasons)
        return answer
