"""All queues that this gateway knows. Sources write it, everything else reads it and hears of changes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, TypeAlias

from partitionedqueue_gateway.entities.queue import Queue, QueueName

Listener: TypeAlias = Callable[[QueueName, Queue | None], None]
"""Is told of a queue that is new or has changed, or that it has gone (None)."""


class CatalogSource(Protocol):
    """Where queues are written down."""

    async def feed(self, catalog: "Catalog") -> None:
        """Keep the catalog true, through every trouble, until cancelled."""

    async def password(self, queue: Queue) -> str | None:
        """The gateway's password at a queue's brokers, read afresh; None: they ask for none. Raises NoCredentials."""


@dataclass(slots=True)
class Scope:
    """A part of the queues that a source keeps true by itself: a Kubernetes namespace, or everything ("").

    Times are the loop's: when it was last tried to learn something, and when something was learnt.
    """

    tried_s: float
    heard_s: float
    synced: bool = False
    trouble: str | None = None


class Catalog:
    """The queues, and how well they are known."""

    def __init__(self) -> None:
        self._queues: dict[QueueName, Queue] = {}
        self._unreadable: dict[QueueName, str] = {}
        self._scopes: dict[str, Scope] = {}
        self._listeners: list[Listener] = []

    @property
    def queues(self) -> Mapping[QueueName, Queue]:
        """Every queue, by its name."""
        return MappingProxyType(self._queues)

    @property
    def unreadable(self) -> Mapping[QueueName, str]:
        """Queues that this version does not understand, and why; they are not served."""
        return MappingProxyType(self._unreadable)

    @property
    def scopes(self) -> Mapping[str, Scope]:
        """How well each part is known."""
        return MappingProxyType(self._scopes)

    @property
    def synced(self) -> bool:
        """Whether every part has been read whole once. What was read stays, should its source fall silent."""
        return bool(self._scopes) and all(scope.synced for scope in self._scopes.values())

    def knows(self, namespace: str) -> bool:
        """Whether what it says of a namespace is all there is: it has been read whole, or nobody reads it."""
        scope = self._scopes.get(namespace) or self._scopes.get("")
        return scope.synced if scope is not None else bool(self._scopes)

    def age_s(self, now_s: float) -> float:
        """How long ago the part that has been silent longest was heard of."""
        return max((now_s - scope.heard_s for scope in self._scopes.values()), default=0.0)

    def idle_s(self, now_s: float) -> float:
        """How long ago it was last tried to learn something, in the part where that is longest ago."""
        return max((now_s - scope.tried_s for scope in self._scopes.values()), default=0.0)

    def listen(self, listener: Listener) -> None:
        """Be told of every change from now on."""
        self._listeners.append(listener)

    def expect(self, scope: str, now_s: float) -> None:
        """A source is going to keep this part true: the catalog is not synced before it is."""
        self._scopes[scope] = Scope(tried_s=now_s, heard_s=now_s)

    def try_at(self, scope: str, now_s: float) -> None:
        """A source begins to ask for something."""
        self._scopes[scope].tried_s = now_s

    def hear(self, scope: str, now_s: float) -> None:
        """The source has answered: as far as it is concerned, the part is true."""
        heard = self._scopes[scope]
        heard.tried_s = heard.heard_s = now_s
        heard.trouble = None

    def miss(self, scope: str, trouble: str) -> None:
        """The source could not be asked; the words say why. What is known stays."""
        self._scopes[scope].trouble = trouble

    def replace(self, scope: str, queues: Iterable[Queue], unreadable: Mapping[QueueName, str]) -> None:
        """A part was read whole: what is not in it has gone."""
        found = {queue.name: queue for queue in queues}
        for name in [*self._queues, *self._unreadable]:
            if scope in ("", name.namespace) and name not in found and name not in unreadable:
                self.remove(name)
        for queue in found.values():
            self.put(queue)
        for name, words in unreadable.items():
            self.put_unreadable(name, words)
        self._scopes[scope].synced = True

    def put(self, queue: Queue) -> None:
        """A queue is new or has changed."""
        self._unreadable.pop(queue.name, None)
        if self._queues.get(queue.name) != queue:
            self._queues[queue.name] = queue
            self._tell(queue.name, queue)

    def put_unreadable(self, name: QueueName, words: str) -> None:
        """There is a queue of that name, and this version does not understand it."""
        self.remove(name)
        self._unreadable[name] = words

    def remove(self, name: QueueName) -> None:
        """A queue has gone."""
        self._unreadable.pop(name, None)
        if self._queues.pop(name, None) is not None:
            self._tell(name, None)

    def _tell(self, name: QueueName, queue: Queue | None) -> None:
        for listener in self._listeners:
            listener(name, queue)
