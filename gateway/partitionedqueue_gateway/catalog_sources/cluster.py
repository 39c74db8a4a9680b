"""The queues of a cluster: its PartitionedQueue objects, listed once and watched from then on.

A watch that ends goes on where it was. After 410 Gone, or anything else that cannot be gone on from, the objects are
listed anew, and what is missing has gone. While the API server is away, what is known stays.
"""

import asyncio
import base64
import binascii
import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final

from partitionedqueue.model import placement
from partitionedqueue.model.entity_name import shown_name
from partitionedqueue.model.errors import InvalidManifest
from partitionedqueue.model.queue_spec import API_VERSION, KIND, PLURAL, QueueSpec
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.catalog_sources.api_server import ApiRefused, ApiServer, ApiUnavailable
from partitionedqueue_gateway.entities.catalog import Catalog
from partitionedqueue_gateway.entities.failures import NoCredentials
from partitionedqueue_gateway.entities.queue import Queue, QueueName

PASSWORD_KEY: Final = "gateway-password"  # noqa: S105 -- where in a Secret it is
_log = logging.getLogger(__name__)
_GONE: Final = 410
_NOT_FOUND: Final = 404


class _Expired(Exception):
    """The watch cannot go on from where it was: 410 Gone."""


class ClusterSource:
    """PartitionedQueues of some namespaces, or of all where none is named."""

    def __init__(self, api: ApiServer, namespaces: Sequence[str] = ()) -> None:
        self._api = api
        self._scopes = tuple(namespaces) or ("",)

    async def feed(self, catalog: Catalog) -> None:
        """Keep the catalog true, each namespace by itself, until cancelled."""
        for scope in self._scopes:
            catalog.expect(scope, asyncio.get_running_loop().time())
        try:
            async with asyncio.TaskGroup() as following:
                for scope in self._scopes:
                    following.create_task(_Follower(self._api, catalog, scope).follow())
        finally:
            await self._api.close()

    async def password(self, queue: Queue) -> str | None:
        """Out of the Secret that the operator made for the queue. Raises NoCredentials."""
        namespace, secret = queue.spec.namespace, placement.secret_name(queue.spec.name)
        try:
            found = await self._api.get(f"/api/v1/namespaces/{namespace}/secrets/{secret}")
            return base64.b64decode(found["data"][PASSWORD_KEY], validate=True).decode()
        except ApiRefused as error:
            why = "is not there yet" if error.status == _NOT_FOUND else f"cannot be read: {error}"
            raise NoCredentials(f"Secret {namespace}/{secret} {why}") from error
        except ApiUnavailable as error:
            raise NoCredentials(f"Secret {namespace}/{secret} cannot be read: {error}") from error
        except (KeyError, TypeError, binascii.Error, UnicodeDecodeError) as error:
            raise NoCredentials(f"Secret {namespace}/{secret} has no usable {PASSWORD_KEY}") from error


class _Follower:
    """Keeps one scope of a catalog true."""

    def __init__(self, api: ApiServer, catalog: Catalog, scope: str) -> None:
        self._api = api
        self._catalog = catalog
        self._scope = scope
        group = f"/apis/{API_VERSION}"
        self._path = f"{group}/namespaces/{scope}/{PLURAL}" if scope else f"{group}/{PLURAL}"
        self._version: str | None = None  # of what is known; None: all must be listed
        self._delay_s = limits.RETRY_S_MIN

    async def follow(self) -> None:
        while True:
            self._catalog.try_at(self._scope, _now_s())
            began_s = _now_s()
            try:
                if self._version is None:
                    await self._list()
                await self._watch()
                if _now_s() - began_s > limits.RETRY_S_MAX:  # it came to its end in good order
                    self._delay_s = limits.RETRY_S_MIN
                    continue
            except _Expired:
                self._version = None
            except (ApiRefused, ApiUnavailable) as error:
                self._trouble(str(error))
            except (KeyError, TypeError, AttributeError) as error:
                self._version = None
                self._trouble(f"what the API server says of {self._path} is not understood: {error!r}")
            await asyncio.sleep(random.uniform(self._delay_s / 2, self._delay_s))
            self._delay_s = min(self._delay_s * 2, limits.RETRY_S_MAX)

    async def _list(self) -> None:
        queues: list[Queue] = []
        unreadable: dict[QueueName, str] = {}
        parameters = {"limit": str(limits.LIST_PAGE_MAX)}
        while True:
            page = await self._answer(parameters)
            for manifest in page.get("items", ()):
                # The items of a list go without what the list says of them all.
                found = queue_of({"apiVersion": API_VERSION, "kind": KIND, **manifest})
                if isinstance(found, Queue):
                    queues.append(found)
                else:
                    unreadable[_name_of(manifest)] = found
            metadata = page.get("metadata", {})
            if not metadata.get("continue"):
                break
            parameters["continue"] = metadata["continue"]
        self._catalog.replace(self._scope, queues, unreadable)
        for name, words in unreadable.items():
            _log.warning("queue %s is not served: %s", name, words)
        self._version = metadata.get("resourceVersion")
        self._heard()

    async def _answer(self, parameters: Mapping[str, str]) -> Any:
        try:
            return await self._api.get(self._path, parameters)
        except ApiRefused as error:
            if error.status == _GONE:  # the list took longer than the API server keeps what has changed
                raise _Expired from error
            if error.status == _NOT_FOUND:
                words = f"the cluster knows no {KIND}: its CustomResourceDefinition is not installed"
                raise ApiRefused(error.status, words) from error
            raise

    async def _watch(self) -> None:
        parameters = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version or "",
            "timeoutSeconds": str(random.randint(limits.WATCH_S_MIN, limits.WATCH_S_MAX)),
        }
        try:
            async with aclosing(self._api.watch(self._path, parameters)) as events:
                async for event in events:
                    self._take(event["type"], event["object"])
                    self._heard()
                    self._delay_s = limits.RETRY_S_MIN
        except ApiRefused as error:
            if error.status == _GONE:
                raise _Expired from error
            raise

    def _take(self, kind: str, manifest: dict[str, Any]) -> None:
        if kind == "ERROR":
            self._version = None
            if manifest.get("code") == _GONE:
                raise _Expired
            raise ApiUnavailable(f"the API server ended a watch: {manifest.get('message')}")
        if kind == "DELETED":
            self._catalog.remove(_name_of(manifest))
        elif kind in {"ADDED", "MODIFIED"}:
            found = queue_of(manifest)
            if isinstance(found, Queue):
                self._catalog.put(found)
            elif self._catalog.unreadable.get(_name_of(manifest)) != found:
                self._catalog.put_unreadable(_name_of(manifest), found)
                _log.warning("queue %s is not served: %s", _name_of(manifest), found)
        self._version = manifest["metadata"]["resourceVersion"]

    def _heard(self) -> None:
        if self._catalog.scopes[self._scope].trouble is not None:
            _log.info("the queues%s are known again", self._where)
        self._catalog.hear(self._scope, _now_s())

    def _trouble(self, words: str) -> None:
        if self._catalog.scopes[self._scope].trouble != words:  # once, not at every try
            _log.warning("the queues%s cannot be watched: %s", self._where, words)
        self._catalog.miss(self._scope, words)

    @property
    def _where(self) -> str:
        return f" of namespace {self._scope}" if self._scope else ""


def queue_of(manifest: Mapping[str, Any]) -> Queue | str:
    """A queue of the API server's words; in words of our own, why this version does not understand it."""
    try:
        spec = QueueSpec.from_manifest(manifest, source=str(_name_of(manifest)))
    except InvalidManifest as error:
        return str(error)
    addresses = (
        placement.pod_address(spec.name, partition, namespace=spec.namespace) for partition in range(spec.partitions)
    )
    metadata = manifest["metadata"]
    created_ms = _ms(metadata.get("creationTimestamp"))
    return Queue(
        spec=spec,
        uid=metadata["uid"],
        brokers=tuple(addresses),
        held_back=_held_back(manifest),
        title=shown_name(metadata),
        created_ms=created_ms,
        updated_ms=max(created_ms, *_written_ms(metadata), 0),
        generation=metadata.get("generation", 0),
    )


def _written_ms(metadata: Mapping[str, Any]) -> Iterator[int]:
    """When somebody wrote what the queue should be: what the operator says of it is a subresource."""
    for one in metadata.get("managedFields", ()):
        if not one.get("subresource"):
            yield _ms(one.get("time"))


def _ms(moment: object) -> int:
    """A time of Kubernetes' in ms since 1970; 0 where it is none."""
    try:
        return int(datetime.fromisoformat(str(moment)).timestamp() * 1000)
    except ValueError:
        return 0


def _held_back(manifest: Mapping[str, Any]) -> str | None:
    for condition in manifest.get("status", {}).get("conditions", ()):
        if condition.get("type") == "Accepted" and condition.get("status") == "False":
            return f"{condition.get('reason')}: {condition.get('message')}"
    return None


def _name_of(manifest: Mapping[str, Any]) -> QueueName:
    return QueueName(manifest["metadata"]["namespace"], manifest["metadata"]["name"])


def _now_s() -> float:
    return asyncio.get_running_loop().time()
