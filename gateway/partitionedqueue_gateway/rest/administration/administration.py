"""The room of the administration API: which request is what, who may ask it, and the answer."""

import operator
import time
from collections.abc import Callable, Sequence
from typing import Final

from aiohttp import web

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.access import Claims
from partitionedqueue_gateway.access.failures import InvalidAudience, Unauthorized
from partitionedqueue_gateway.access.policies import Right
from partitionedqueue_gateway.entities.failures import EntityNotFound
from partitionedqueue_gateway.entities.queue import Queue
from partitionedqueue_gateway.entities.totals import Standings
from partitionedqueue_gateway.rest.administration import atom, shown
from partitionedqueue_gateway.rest.administration.asked import Asked
from partitionedqueue_gateway.rest.administration.queue_properties import QUEUE
from partitionedqueue_gateway.rest.administration.queues import Queues
from partitionedqueue_gateway.rest.authorization import Authorization
from partitionedqueue_gateway.rest.bodies import Bodies
from partitionedqueue_gateway.rest.paths import ENTITY
from partitionedqueue_gateway.rest.refusals import BodyTooLarge, InvalidRequest, NotSupported

_ENTRY: Final = "application/atom+xml;type=entry;charset=utf-8"
_FEED: Final = "application/atom+xml;type=feed;charset=utf-8"
_OWN_PATHS: Final = frozenset({"health", "healthz", "readyz", "metrics"})
_LISTS: Final = {"queues": "Queues", "topics": "Topics"}


class Administration:
    """Everything here asks for the right Manage, as on Azure."""

    waits: Final = False
    """What waits for long is bounded by itself."""

    def __init__(
        self, queues: Queues, standings: Standings, authorization: Authorization, *, default_namespace: str
    ) -> None:
        self._queues = queues
        self._standings = standings
        self._authorization = authorization
        self._default_namespace = default_namespace
        self._bodies = Bodies()

    def routes(self) -> Sequence[web.RouteDef]:
        """What is answered here. A path that is an entity's is looked at last; a slash at its end changes nothing."""
        return [
            web.get("/health", self.health),
            web.get(r"/{info:\$(?i:namespaceinfo)}", self.namespace),
            web.get(r"/{resources:\$(?i:resources)}/{kind}", self.page),
            *(
                route
                for path in (f"/{ENTITY}", f"/{ENTITY}/")
                for route in (
                    web.get(path, self.get, allow_head=False),
                    web.put(path, self.put),
                    web.delete(path, self.delete),
                )
            ),
        ]

    async def health(self, _request: web.Request) -> web.Response:
        """What Azure's emulator answers, which is waited for before anything is asked."""
        return web.json_response({"status": "healthy", "message": "Service is healthy."})

    async def namespace(self, request: web.Request) -> web.Response:
        """What SDKs know of a namespace."""
        self._demand_namespace(request)
        made = min((queue.created_ms for queue in self._queues.all() if queue.created_ms), default=0)
        return _answer(atom.entry(shown.namespace_entry(self._default_namespace, made), request.host), _ENTRY)

    async def page(self, request: web.Request) -> web.Response:
        """The queues that the bearer may manage, a page of them, in the order of their names; no topics yet."""
        may_manage = self._demand_namespace(request)
        kind = _LISTS.get(request.match_info["kind"].lower())
        if kind is None:
            raise NotSupported(f"There is no list of {request.match_info['kind']}; there are queues and topics.")
        skip, top = _number(request, "$skip", 0, limits.LIST_SKIP_MAX), _number(request, "$top", 100, 1 << 31)
        top = min(top, limits.LIST_ENTRIES_MAX)
        queues = self._manageable(may_manage) if kind == "Queues" else []
        here = queues[skip : skip + top]
        reports = await self._standings.of_all(here)
        entries = [
            shown.queue_entry(queue, report, self._default_namespace, request.host)
            for queue, report in zip(here, reports, strict=True)
        ]
        address = f"https://{request.host}{request.path}?$skip={{}}&$top={top}&api-version={_version(request)}"
        updated = max((entry.updated for entry in entries), default=shown.NEVER)
        after = address.format(skip + top) if len(queues) > skip + top else ""
        return _answer(atom.feed(kind, address.format(skip), updated, entries, request.host, after=after), _FEED)

    async def get(self, request: web.Request) -> web.Response:
        """One queue; where there is none, an empty feed, which SDKs take for that."""
        asked = self._asked(request)
        queue = await self._queues.find(asked.name) if asked.may_be_queue else None
        if queue is None:
            address = f"https://{request.host}{request.path}"
            return _answer(atom.feed(atom.MISSING_TITLE, address, shown.NEVER, (), request.host), _FEED)
        return await self._shown(queue, request.host, 200)

    async def put(self, request: web.Request) -> web.Response:
        """A new queue; with `If-Match: *` one that there is already, changed."""
        asked = self._asked(request)
        given = atom.read(await self._body(request))
        if given.kind != QUEUE:
            raise NotSupported(f"A {given.kind} is not served yet: there are queues, but no topics and subscriptions.")
        if not asked.may_be_queue:
            raise InvalidRequest(
                f"'{asked.path}' cannot name a queue: use letters, digits, '.', '-', '_' and '/', "
                "with a letter or a digit first and last, and at most 260 of them."
            )
        if asked.title.lower() in _OWN_PATHS:
            raise InvalidRequest(f"'{asked.path}' cannot name a queue here: the gateway has a page of that name.")
        if "If-Match" in request.headers:
            return await self._shown(await self._queues.change(asked.name, given), request.host, 200)
        return await self._shown(await self._queues.create(asked.name, asked.title, given), request.host, 201)

    async def delete(self, request: web.Request) -> web.Response:
        """A queue and what it holds go at once, as on Azure."""
        asked = self._asked(request)
        if not asked.may_be_queue:
            raise EntityNotFound(asked.path)
        await self._queues.delete(asked.name, asked.path)
        return web.Response()

    async def _body(self, request: web.Request) -> bytes:
        most = limits.ADMINISTRATION_BYTES_MAX
        try:
            return await self._bodies.read(request, most)
        except BodyTooLarge:  # the data plane's word is Azure's for a message
            raise web.HTTPRequestEntityTooLarge(most, request.content_length or most) from None

    async def _shown(self, queue: Queue, host: str, status: int) -> web.Response:
        report = await self._standings.of(queue)
        entry = shown.queue_entry(queue, report, self._default_namespace, host)
        return _answer(atom.entry(entry, host), _ENTRY, status)

    def _asked(self, request: web.Request) -> Asked:
        """The entity that a request is about, for somebody who may manage that very one."""
        asked = Asked.of(request.match_info["path"], self._default_namespace)
        self._authorization.demand(request, Right.MANAGE, asked.path)
        return asked

    def _demand_namespace(self, request: web.Request) -> Callable[[str], bool]:
        """Which paths the bearer may manage. Who manages one namespace only may ask too, and sees that one's queues."""
        try:
            claims, own = self._claims_of_namespace(request), False
        except InvalidAudience:  # Go's and JavaScript's clients sign for the very list
            claims, own = self._authorization.claims(request, request.path), True
        if Right.MANAGE not in claims.rights:
            raise Unauthorized(Right.MANAGE)
        return lambda path: own or claims.allow(Right.MANAGE, path, time.time())

    def _claims_of_namespace(self, request: web.Request) -> Claims:
        try:
            return self._authorization.claims(request, "")
        except InvalidAudience:
            return self._authorization.claims(request, f"{self._default_namespace}/*")

    def _manageable(self, may_manage: Callable[[str], bool]) -> list[Queue]:
        named = [(shown.path_of(queue, self._default_namespace), queue) for queue in self._queues.all()]
        allowed = [(path.lower(), queue) for path, queue in named if may_manage(path)]
        return [queue for _, queue in sorted(allowed, key=operator.itemgetter(0))]


def _number(request: web.Request, name: str, otherwise: int, most: int) -> int:
    words = request.query.get(name, str(otherwise))
    if not (words.isascii() and words.isdigit() and len(words) <= 10 and int(words) <= most):
        raise InvalidRequest(f"{name} is {words!r}; write a whole number from 0 to {most}.")
    return int(words)


def _version(request: web.Request) -> str:
    """Any is taken; where the next page is says the same one."""
    words = request.query.get("api-version", "")
    return words if words.replace("-", "").isalnum() and len(words) <= 32 else "2021-05"


def _answer(document: str, kind: str, status: int = 200) -> web.Response:
    return web.Response(status=status, body=document.encode(), headers={"Content-Type": kind})
