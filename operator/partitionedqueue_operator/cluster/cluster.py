"""Acts on the cluster: makes objects so, deletes, writes the status, posts Events. It decides nothing."""

import hashlib
import json
import logging
from collections import OrderedDict
from datetime import datetime
from typing import Any, Final

from partitionedqueue.model.placement import broker_name
from partitionedqueue.model.queue_spec import API_VERSION, KIND
from partitionedqueue_operator.cluster.api import CONFLICT, NOT_FOUND, Api, ApiFault
from partitionedqueue_operator.cluster.cache import Cache
from partitionedqueue_operator.cluster.differences import differs
from partitionedqueue_operator.cluster.kinds import BY_NAME, CHILDREN, CLAIMS, EVENTS, QUEUES, Kind
from partitionedqueue_operator.conditions.telling import Telling
from partitionedqueue_operator.observed import APPLIED, OPERATOR, Key, Manifest, Queue
from partitionedqueue_operator.status import timestamp

_EVENTS_REMEMBERED: Final = 4_096
_NOTE_CHARACTERS_MAX: Final = 1_000  # Kubernetes takes 1024
_log = logging.getLogger(__name__)


class NotOurs(Exception):
    """There is an object of that name, and the operator has not made it."""


class Cluster:
    """What has been decided is done here, and costs nothing where it is so already."""

    def __init__(self, api: Api, cache: Cache) -> None:
        self._api = api
        self._cache = cache
        self._accepted: dict[tuple[str, str, str], tuple[str, str | None]] = {}  # what applying made of it last
        self._told: OrderedDict[tuple[str, str, str], tuple[str, int]] = OrderedDict()

    async def make_so(self, key: Key, wanted: dict[str, Any]) -> bool:
        """Apply an object where it is not as wanted; whether there was something to do. Raises NotOurs, ApiFault."""
        kind = BY_NAME[wanted["kind"]]
        if kind is CLAIMS:  # the StatefulSet's controller has made it; by its uid it is known to be that one
            self._cache.answered(kind, await self._api.apply(kind, wanted))
            return True
        stamped = _stamped(wanted)
        name = stamped["metadata"]["name"]
        live = self._cache.children(key).get((kind.name, name))
        place, digest = (kind.name, key.namespace, name), stamped["metadata"]["annotations"][APPLIED]
        if live is not None and not differs(stamped, live):
            return False
        if live is not None and self._accepted.get(place) == (digest, live["metadata"].get("resourceVersion")):
            return False  # somebody's admission webhook wants it otherwise: nobody has touched it since
        if live is None or APPLIED not in (live["metadata"].get("annotations") or {}):
            await self._must_be_ours(kind, key, name)
        body = await self._api.apply(kind, stamped)
        self._cache.answered(kind, body)
        self._accepted[place] = (digest, body["metadata"].get("resourceVersion"))
        return True

    async def _must_be_ours(self, kind: Kind, key: Key, name: str) -> None:
        """Server-side apply would take over anything of that name; what somebody else has made is left to them."""
        body = await self._api.get(kind, key.namespace, name)
        managers = (body or {}).get("metadata", {}).get("managedFields") or []
        if body is not None and all(entry.get("manager") != OPERATOR for entry in managers):
            raise NotOurs(f"{kind.name} {name}")

    async def has_gone(self, key: Key) -> bool:
        """Whether there is no such queue, by the API server's own word and not by what a watch has told."""
        body = await self._api.get(QUEUES, key.namespace, key.name)
        if body is None:
            return True
        self._cache.answered(QUEUES, body)
        return False

    async def delete(self, key: Key, kind_name: str, name: str, uid: str) -> None:
        """Delete an object by its name and uid."""
        await self._api.delete(BY_NAME[kind_name], key.namespace, name, uid=uid)

    async def remove(self, key: Key, kind_name: str, name: str) -> bool:
        """See that there is no such object of ours; whether there was one."""
        live = self._cache.children(key).get((kind_name, name))
        if live is None or "deletionTimestamp" in live["metadata"]:
            return False
        await self.delete(key, kind_name, name, live["metadata"]["uid"])
        return True

    def forget(self, key: Key) -> None:
        """A queue and all that belonged to it are gone."""
        name = broker_name(key.name)
        for kind in CHILDREN:
            self._accepted.pop((kind.name, key.namespace, name), None)

    async def write_status(self, queue: Queue, status: Manifest) -> bool:
        """Write a status; whether the queue is still there."""
        metadata = {"name": queue.key.name, "namespace": queue.key.namespace, "uid": queue.uid}
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "status": status}
        try:
            self._cache.answered(QUEUES, await self._api.apply(QUEUES, body, part="status"))
        except ApiFault as fault:
            if fault.status not in (NOT_FOUND, CONFLICT):  # gone, or another one of its name has come
                raise
            live = await self._api.get(QUEUES, queue.key.namespace, queue.key.name)
            if live is not None and live["metadata"]["uid"] == queue.uid:
                raise
            return False
        return True

    async def tell(self, key: Key, uid: str, telling: Telling, now: datetime) -> None:
        """Post an Event on the queue; the same once more only counts up. It never fails: an Event is a courtesy."""
        digest = hashlib.sha256(f"{uid} {telling.reason} {telling.message}".encode()).hexdigest()[:16]
        place = (key.namespace, key.name, digest)
        name, count = self._told.pop(place, (f"{key.name}.{digest}", 0))
        self._told[place] = (name, count + 1)
        if len(self._told) > _EVENTS_REMEMBERED:
            self._told.popitem(last=False)
        _log.info("queue %s: %s: %s", key, telling.reason, telling.message)
        try:
            if count:
                again = {"count": count + 1, "lastTimestamp": timestamp(now)}
                await self._api.merge(EVENTS, key.namespace, name, again)
            else:
                await self._api.create(EVENTS, _event(key, uid, name, telling, now))
        except ApiFault as fault:
            if fault.status == NOT_FOUND:  # it has outlived its hour
                self._told.pop(place, None)
            _log.debug("queue %s: the Event is not posted: %s", key, fault)


def _stamped(wanted: dict[str, Any]) -> dict[str, Any]:
    """With a digest of itself: fields that are wanted no longer make a difference too."""
    digest = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:16]
    metadata = wanted["metadata"]
    annotations = {**metadata.get("annotations", {}), APPLIED: digest}
    return {**wanted, "metadata": {**metadata, "annotations": annotations}}


def _event(key: Key, uid: str, name: str, telling: Telling, now: datetime) -> dict[str, Any]:
    involved = {"apiVersion": API_VERSION, "kind": KIND, "namespace": key.namespace, "name": key.name, "uid": uid}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": key.namespace},
        "involvedObject": involved,
        "type": "Warning" if telling.warning else "Normal",
        "reason": telling.reason,
        "message": telling.message[:_NOTE_CHARACTERS_MAX],
        "firstTimestamp": timestamp(now),
        "lastTimestamp": timestamp(now),
        "count": 1,
        "source": {"component": OPERATOR},
        "reportingComponent": OPERATOR,
    }
