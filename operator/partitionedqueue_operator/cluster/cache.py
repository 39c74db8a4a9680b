"""What the watches have told, by queue. The one copy of the cluster that all decisions are made from."""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from partitionedqueue.model.placement import pod_name, volume_claim_name
from partitionedqueue_operator.cluster.kinds import CHILDREN, CLAIMS, PODS, QUEUES, Kind
from partitionedqueue_operator.observed import Claim, Key, Manifest, Pod, Queue, queue_of

_GONE_REMEMBERED: Final = 4_096


class Cache:
    """Queues and what belongs to them. Not for threads."""

    def __init__(self) -> None:
        self._queues: dict[Key, Queue] = {}
        self._namespaces: dict[str, set[Key]] = defaultdict(set)
        self._parts: dict[str, dict[Key, dict[str, tuple[str, Any]]]] = defaultdict(
            dict
        )  # kind, queue, name: uid, value
        self._homes: dict[tuple[str, str, str], Key] = {}  # kind, namespace, name: queue
        self._strangers: dict[tuple[str, str, str], str] = {}  # labelled as ours, and no queue's: kind … name: uid
        self._gone: OrderedDict[str, None] = OrderedDict()  # uids that were told to be gone, the latest

    def answered(self, kind: Kind, body: Manifest) -> None:
        """Take in what the API server has answered, unless a watch has told of its end before the answer came."""
        if body["metadata"]["uid"] not in self._gone:
            self.put(kind, body)

    def put(self, kind: Kind, body: Manifest) -> Key | None:
        """Take an object in, as it is now. Returns the queue that it concerns."""
        self._gone.pop(body["metadata"]["uid"], None)  # it had lost our labels, and has them again
        if kind is QUEUES:
            queue = Queue.of(body)
            self._queues[queue.key] = queue
            self._namespaces[queue.key.namespace].add(queue.key)
            return queue.key
        key = queue_of(body)
        metadata = body["metadata"]
        name = metadata["name"]
        place = (kind.name, metadata["namespace"], name)
        before = self._homes.get(place)
        if before is not None and before != key:
            self._drop(kind, before, name)
        value = _value(kind, body)
        if key is None or value is None:  # labelled as ours and not of our make: seen all the same, see `held`
            self._strangers[place] = metadata["uid"]
            return before
        self._strangers.pop(place, None)
        self._parts[kind.name].setdefault(key, {})[name] = (metadata["uid"], value)
        self._homes[place] = key
        return key

    def remove(self, kind: Kind, namespace: str, name: str, uid: str) -> Key | None:
        """An object is gone. Returns the queue that it concerned; another object of that name stays."""
        self._gone[uid] = None
        if len(self._gone) > _GONE_REMEMBERED:
            self._gone.popitem(last=False)
        if kind is QUEUES:
            queue = self._queues.get(Key(namespace, name))
            if queue is None or queue.uid != uid:
                return None
            self._namespaces[namespace].discard(queue.key)
            return self._queues.pop(queue.key).key
        place = (kind.name, namespace, name)
        if self._strangers.get(place) == uid:
            del self._strangers[place]
        key = self._homes.get(place)
        if key is None or self._parts[kind.name][key][name][0] != uid:
            return None
        self._drop(kind, key, name)
        return key

    def _drop(self, kind: Kind, key: Key, name: str) -> None:
        of_queue = self._parts[kind.name].get(key, {})
        of_queue.pop(name, None)
        if not of_queue:
            self._parts[kind.name].pop(key, None)
        self._homes.pop((kind.name, key.namespace, name), None)

    def queue(self, key: Key) -> Queue | None:
        """The queue itself."""
        return self._queues.get(key)

    def children(self, key: Key) -> dict[tuple[str, str], Manifest]:
        """What the operator has made of it, by kind and name."""
        return {
            (kind.name, name): value
            for kind in CHILDREN
            for name, (_, value) in self._parts[kind.name].get(key, {}).items()
        }

    def pods(self, key: Key) -> dict[int, Pod]:
        """Its broker pods by partition; a pod of somebody's that merely has the labels is none."""
        found = (pod for _, pod in self._parts[PODS.name].get(key, {}).values())
        return {pod.partition: pod for pod in found if pod.name == pod_name(key.name, pod.partition)}

    def claims(self, key: Key) -> tuple[Claim, ...]:
        """The claims for its volumes; what is somebody's and merely has the labels is none, and is never deleted."""
        found = (claim for _, claim in self._parts[CLAIMS.name].get(key, {}).values())
        return tuple(claim for claim in found if _is_a_partitions(key, claim.name))

    def place(self, key: Key) -> int:
        """How many partitioned queues of its namespace are older than it."""
        queue = self._queues[key]
        mine = (queue.created, queue.key.name)
        others = (self._queues[other] for other in self._namespaces[key.namespace])
        return sum(1 for other in others if other.partitioned and (other.created, other.key.name) < mine)

    def neighbours(self, namespace: str) -> list[Key]:
        """All queues of a namespace."""
        return list(self._namespaces[namespace])

    def known(self) -> set[Key]:
        """All queues, also those of which only something is left."""
        return set(self._queues).union(*(of_kind.keys() for of_kind in self._parts.values()))

    def held(self, kind: Kind) -> Iterator[tuple[str, str, str]]:
        """Namespace, name and uid of all that was told of a kind and is still there."""
        if kind is QUEUES:
            yield from ((queue.key.namespace, queue.key.name, queue.uid) for queue in self._queues.values())
            return
        for key, parts in self._parts[kind.name].items():
            yield from ((key.namespace, name, uid) for name, (uid, _) in parts.items())
        yield from ((place[1], place[2], uid) for place, uid in self._strangers.items() if place[0] == kind.name)

    def queues(self) -> Iterable[Queue]:
        """All queues."""
        return self._queues.values()


def _is_a_partitions(key: Key, claim: str) -> bool:
    number = claim.rpartition("-")[2]
    return number.isdecimal() and claim == volume_claim_name(key.name, int(number))


def _value(kind: Kind, body: Manifest) -> Any:
    """What is kept of an object: little of the many, all but the bookkeeping of the few; None of a stranger."""
    if kind is PODS:
        pod = Pod.of(body)
        return pod if pod.name.rpartition("-")[2].isdecimal() else None
    if kind is CLAIMS:
        return Claim.of(body)
    metadata = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    return {**body, "kind": kind.name, "metadata": metadata}
