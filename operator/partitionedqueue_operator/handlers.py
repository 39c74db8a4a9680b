"""The watches, by kopf: what they tell goes to the controller, and nothing else is done here.

Of kopf's features only its watching is used. Its finalizers would hold a namespace that has lost its operator, its
progress annotations would be writes, and its peering is no leader election.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import kopf

from partitionedqueue_operator.cluster.access import Access
from partitionedqueue_operator.cluster.kinds import QUEUES, WATCHED, Kind
from partitionedqueue_operator.controller import Controller
from partitionedqueue_operator.freshness import WATCH_S_MAX, Freshness
from partitionedqueue_operator.observed import COMPONENT, MANAGED_BY, OPERATOR
from partitionedqueue_operator.settings import Settings

MADE_BY_US: Final = f"{MANAGED_BY}={OPERATOR},{COMPONENT}=broker"
LONGEST_RETRY_S: Final = 5.0
END_S_MAX: Final = 5.0


_QUIET: Final = {
    "kopf.objects": logging.WARNING,
    "kopf.activities": logging.WARNING,
    "kopf._core.engines.activities": logging.WARNING,
    "kopf._core.reactor.running": logging.ERROR,  # it warns that signals are not its business, which is so
}


class _ForEver:
    """Pauses between tries, without end: an API server that is away comes back."""

    def __iter__(self) -> Iterator[float]:
        pause = 0.5
        while True:
            yield pause
            pause = min(pause * 2, LONGEST_RETRY_S)


def selector_of(kind: Kind) -> str:
    """The labels that objects of a kind must have to concern us; the server leaves the others out."""
    return "" if kind is QUEUES else MADE_BY_US


class Watches:
    """kopf, in a thread and event loop of its own: when it ends it cancels every task of its loop that it finds."""

    def __init__(self, settings: Settings, access: Access, controller: Controller, freshness: Freshness) -> None:
        self._settings = settings
        self._registry = kopf.OperatorRegistry()
        self._stop = threading.Event()
        self._freshness = freshness
        loop = asyncio.get_running_loop()
        kopf.on.login(registry=self._registry)(_login(access, freshness))
        for kind in WATCHED:
            tell = _teller(loop, kind, controller, freshness)
            kopf.on.event(kind.group, kind.version, kind.plural, registry=self._registry, id=kind.plural)(tell)

    async def run(self) -> None:
        """Watch until cancelled. Raises what kopf cannot recover from."""
        self._freshness.begin()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def work() -> None:
            error = self._run()
            with contextlib.suppress(RuntimeError):  # nobody waits for it any more
                loop.call_soon_threadsafe(_settle, ended, error)

        # A daemon: kopf may take long to end, and whoever was asked to end must not wait for it.
        threading.Thread(target=work, name="watches", daemon=True).start()
        try:
            await asyncio.shield(ended)
        finally:
            self._stop.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_S_MAX):
                    await asyncio.shield(ended)
        raise WatchesEnded("the watches have ended by themselves")

    def _run(self) -> BaseException | None:
        try:
            asyncio.run(
                kopf.operator(
                    registry=self._registry,
                    settings=_configured(),
                    standalone=True,
                    clusterwide=not self._settings.watch_namespaces,
                    namespaces=self._settings.watch_namespaces,
                    stop_flag=self._stop,
                )
            )
        except BaseException as error:  # noqa: BLE001 -- it is raised where it is waited for
            return error
        return None


def _settle(ended: "asyncio.Future[None]", error: BaseException | None) -> None:
    if error is None:
        ended.set_result(None)
    else:
        ended.set_exception(error if isinstance(error, Exception) else WatchesEnded(repr(error)))


class WatchesEnded(Exception):
    """Without watches an operator is blind, and must begin anew."""


def _configured() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.server_timeout = WATCH_S_MAX
    settings.watching.client_timeout = WATCH_S_MAX + 20
    settings.watching.connect_timeout = 10
    settings.watching.inactivity_timeout = WATCH_S_MAX + 20
    settings.watching.chunk_size = 500
    settings.networking.request_timeout = 60
    settings.networking.connect_timeout = 10
    settings.networking.error_backoffs = _ForEver()
    settings.queueing.exit_timeout = 1.0
    settings.process.ultimate_exiting_timeout = 20
    for kind in WATCHED:
        if selector := selector_of(kind):
            settings.watching.label_selectors[kind.group, kind.version, kind.plural] = selector
    for name, level in _QUIET.items():
        logging.getLogger(name).setLevel(level)
    return settings


def _login(access: Access, freshness: Freshness) -> Callable[..., Awaitable[kopf.AiohttpSession]]:
    async def login(**_: Any) -> kopf.AiohttpSession:
        """Called at the start, and again when the API server no longer takes the token."""
        session = access.session(headers=await access.headers(), traces=[freshness.trace()])
        return kopf.AiohttpSession(server=access.server, aiohttp_session=session)

    return login


def _teller(
    loop: asyncio.AbstractEventLoop, kind: Kind, controller: Controller, freshness: Freshness
) -> Callable[..., Awaitable[None]]:
    async def tell(event: Any, **_: Any) -> None:
        """Of one object: how it is now, or that it is gone."""
        freshness.heard(kind, event["object"]["metadata"]["namespace"])
        gone = event["type"] == "DELETED"
        loop.call_soon_threadsafe(lambda: controller.seen(kind, event["object"], gone=gone))

    return tell
