"""One queue at a time: look, decide, act. The level-based loop behind the watches."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Final

from partitionedqueue.broker import access
from partitionedqueue.model.placement import broker_name
from partitionedqueue_operator import reconcile, status
from partitionedqueue_operator.brokers import Brokers
from partitionedqueue_operator.cluster.api import ApiFault
from partitionedqueue_operator.cluster.cache import Cache
from partitionedqueue_operator.cluster.cluster import Cluster, NotOurs
from partitionedqueue_operator.cluster.kinds import PODS, QUEUES, Kind
from partitionedqueue_operator.loops import Pulse
from partitionedqueue_operator.observed import Key, Manifest, Observed, queue_of
from partitionedqueue_operator.reconcile import Plan
from partitionedqueue_operator.resources.secret import password_in, users_in
from partitionedqueue_operator.settings import Settings
from partitionedqueue_operator.work import Work

REFUSED_AGAIN_S: Final = 30.0
_log = logging.getLogger(__name__)


class Controller:
    """Takes in what the watches tell; acts only while `leading`."""

    def __init__(self, settings: Settings, cache: Cache, cluster: Cluster, pulse: Pulse | None = None) -> None:
        self.cache = cache
        self.leading = False
        self._pulse = pulse or Pulse()
        self.work, self.brokers = self._anew()
        self._cluster = cluster
        self._settings = settings
        self._operator_key = b""
        self._conflicts: dict[Key, tuple[str, ...]] = {}
        self._faults: dict[Key, tuple[str, ...]] = {}
        self._written: dict[Key, float] = defaultdict(lambda: float("-inf"))
        self._alone_since: dict[Key, datetime] = {}
        self._last_policy: dict[Key, tuple[str, str]] = {}  # of a queue that is gone: its uid, its deletion policy

    async def lead(self, operator_key: bytes) -> None:
        """Look at every queue, and go on from there until cancelled; nothing is remembered of an earlier time."""
        self._operator_key = operator_key
        self.work, self.brokers = self._anew()
        self.leading = True
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.brokers.run())
                group.create_task(self.work.run())
                for key in self.cache.known():
                    self.work.add(key)
        finally:
            self.leading = False

    def _anew(self) -> tuple[Work, Brokers]:
        work = Work(self.reconcile, expected=ApiFault)
        return work, Brokers(self.cache.pods, self.look_at, self._pulse)

    def look_at(self, key: Key) -> None:
        """Something about a queue may have changed."""
        if self.leading:
            self.work.add(key)

    def seen(self, kind: Kind, body: Manifest, *, gone: bool) -> None:
        """A watch has told of an object, as it is now or as it was last."""
        metadata = body["metadata"]
        if gone:
            if kind is QUEUES:  # its owner's last word may never have reached the StatefulSet
                word = (body.get("spec") or {}).get("deletionPolicy", "")
                self._last_policy[Key(metadata["namespace"], metadata["name"])] = (metadata["uid"], word)
            self.lost(kind, metadata["namespace"], metadata["name"], metadata["uid"])
            return
        pods = _running(self.cache, kind, body)
        key = self.cache.put(kind, body)
        if key is None:
            return
        if kind is PODS and pods != _running(self.cache, kind, body):
            self.brokers.poke(key)
        self.look_at(key)

    def lost(self, kind: Kind, namespace: str, name: str, uid: str) -> None:
        """An object is gone."""
        key = self.cache.remove(kind, namespace, name, uid)
        if key is None:
            return
        if kind is PODS:
            self.brokers.poke(key)
        if kind is QUEUES:  # there may be room now for one that was refused
            for neighbour in self.cache.neighbours(namespace):
                self.look_at(neighbour)
        if self.cache.queue(key) is None and not self.cache.children(key):
            self._last_policy.pop(key, None)
        self.look_at(key)

    def observe(self, key: Key) -> Observed:
        """All that is known of a queue, at this moment."""
        queue = self.cache.queue(key)
        children = self.cache.children(key)
        if children and (queue is None or reconcile.is_left_by_another(children, queue)):
            self._alone_since.setdefault(key, datetime.now(UTC))
        else:
            self._alone_since.pop(key, None)
            self._last_policy.pop(key, None)
        return Observed(
            key=key,
            now=datetime.now(UTC),
            queue=queue,
            children=children,
            pods=self.cache.pods(key),
            claims=self.cache.claims(key),
            reports=self.brokers.reports(key),
            place=self.cache.place(key) if queue is not None else 0,
            conflicts=self._conflicts.get(key, ()),
            faults=self._faults.get(key, ()),
            alone_since=self._alone_since.get(key),
            last_policy=self._last_word(key, children),
        )

    def _last_word(self, key: Key, children: Mapping[tuple[str, str], Manifest]) -> str:
        """The deletion policy of the queue that the StatefulSet was made for, and of no other of its name."""
        uid, policy = self._last_policy.get(key, ("", ""))
        made_for = {reconcile.queue_uid_of(body) for (kind, _), body in children.items() if kind == "StatefulSet"}
        return policy if uid in made_for else ""

    async def reconcile(self, key: Key) -> float | None:
        """Bring one queue nearer to what its spec says; when to look again, if nothing happens."""
        self._conflicts.pop(key, None)
        observed = self.observe(key)
        plan = reconcile.plan(observed, self._settings, self._operator_key)
        if observed.queue is None or plan.deletions:
            await self._settle_what_is_left(observed, plan)
            return plan.look_again_s
        changed, fault = await self._make_so(key, plan)
        if changed or key in self._conflicts or bool(fault) != bool(observed.faults):  # so it stands otherwise now
            plan = reconcile.plan(self.observe(key), self._settings, self._operator_key)
        self._see_to_brokers(key, plan)
        again_s = await self._tell(observed, plan)
        if fault is not None:
            raise fault
        refused_s = REFUSED_AGAIN_S if key in self._conflicts else None
        return min((s for s in (again_s, plan.look_again_s, refused_s) if s is not None), default=None)

    async def _make_so(self, key: Key, plan: Plan) -> tuple[bool, ApiFault | None]:
        """Apply each object, whatever becomes of the others; whether there was something to do."""
        changed = False
        conflicts, faults, first = [], [], None
        acts: list[tuple[str, Callable[[], Awaitable[bool]]]] = [
            (f"{wanted['kind']} {wanted['metadata']['name']}", partial(self._cluster.make_so, key, wanted))
            for wanted in (*plan.objects, *plan.claims)
        ]
        acts += [(f"{kind} {name}", partial(self._cluster.remove, key, kind, name)) for kind, name in plan.unwanted]
        for what, act in acts:
            try:
                changed |= await act()
            except NotOurs as conflict:
                conflicts.append(str(conflict))
            except ApiFault as fault:
                if fault.namespace_ending:
                    return changed, None
                first = first or fault
                if not fault.passing:
                    faults.append(f"{what}: {fault}")
        _put(self._conflicts, key, conflicts)
        _put(self._faults, key, faults)
        return changed, first

    def _see_to_brokers(self, key: Key, plan: Plan) -> None:
        if plan.target is not None:
            secret = self.cache.children(key).get(("Secret", broker_name(key.name)))
            password = password_in(secret, self._operator_key, key, access.OPERATOR)
            self.brokers.see_to(key, plan.target, password, users_in(secret))
        else:
            self.brokers.leave(key)

    async def _tell(self, observed: Observed, plan: Plan) -> float | None:
        """Write the status where it has changed; counts alone can wait."""
        queue = self.cache.queue(observed.key)
        if queue is None or plan.status is None or plan.status == queue.status:
            return None
        now = asyncio.get_running_loop().time()
        due = self._written[observed.key] + status.pause_s(queue.status, plan.status)
        if now < due:
            return due - now
        self._written[observed.key] = now
        if not await self._cluster.write_status(queue, plan.status):
            self.lost(QUEUES, queue.key.namespace, queue.key.name, queue.uid)
            return None
        for telling in plan.tellings:
            await self._cluster.tell(queue.key, queue.uid, telling, observed.now)
        return None

    async def _settle_what_is_left(self, observed: Observed, plan: Plan) -> None:
        """See a deleted queue off."""
        key = observed.key
        if observed.queue is None and (plan.target or plan.deletions) and not await self._cluster.has_gone(key):
            self.work.add(key)
            return
        self._see_to_brokers(key, plan)
        body = observed.stateful_set
        for telling in plan.tellings:
            uid = reconcile.queue_uid_of(body) if body is not None else ""
            await self._cluster.tell(key, uid, telling, observed.now)
        for deletion in plan.deletions:
            await self._cluster.delete(key, deletion.kind, deletion.name, deletion.uid)
        if not observed.children:
            for memory in (self._conflicts, self._faults, self._written, self._alone_since):
                memory.pop(key, None)
            self._cluster.forget(key)


def _running(cache: Cache, kind: Kind, body: Manifest) -> Mapping[int, tuple[str, bool]]:
    """Which brokers there are to speak to."""
    if kind is not PODS:
        return {}
    key = queue_of(body)
    return {n: (pod.incarnation, pod.ready) for n, pod in cache.pods(key).items()} if key is not None else {}


def _put(memory: dict[Key, tuple[str, ...]], key: Key, words: list[str]) -> None:
    if words:
        memory[key] = tuple(words)
    else:
        memory.pop(key, None)
