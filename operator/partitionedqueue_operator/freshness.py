"""Whether the watches live: each must have heard from the API server lately, be it news or the end of a request.

Watch requests are made to end by themselves within a minute, so one that hears nothing for longer is frozen.

One that the API server does not allow is tried for ever, since rights may come back. An operator that is blind in one
of its namespaces goes on for the others; one that is blind in all of them is no operator.
"""

import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Final

import aiohttp

from partitionedqueue_operator.cluster.kinds import Kind

WATCH_S_MAX: Final = 40
STALE_S: Final = 150.0
_OK: Final = 300
_FORBIDDEN: Final = 403


class Freshness:
    """Listens to the HTTP requests of the watches, from their thread.

    `relisted` is called when a watch begins, or begins anew, with a list.
    """

    def __init__(
        self, kinds: Sequence[Kind], relisted: Callable[[Kind], object], namespaces: Sequence[str] = ()
    ) -> None:
        self._namespaces = namespaces or ("",)  # one watch of a kind over all of them, or one in each
        self._watches = {kind.path(namespace): (kind, namespace) for kind in kinds for namespace in self._namespaces}
        self._heard: dict[tuple[Kind, str], float] = {}
        self._refused: set[tuple[Kind, str]] = set()
        self._relisted = relisted

    def begin(self) -> None:
        """The watches begin now: until then there is nothing to hear, and nothing that a new start would cure."""
        self._heard = dict.fromkeys(self._watches.values(), time.monotonic())

    def stale(self) -> list[str]:
        """The watches that have heard nothing for too long."""
        now = time.monotonic()
        silent = {watch: now - at for watch, at in self._heard.items() if now - at > STALE_S}
        living = {kind for kind, namespace in self._heard if (kind, namespace) not in silent}
        return [
            f"{_named((kind, namespace))} for {since_s:.0f} s"
            for (kind, namespace), since_s in silent.items()
            if (kind, namespace) not in self._refused or kind not in living
        ]

    def refused(self) -> list[str]:
        """The watches that the API server does not allow."""
        return sorted(map(_named, self._refused.copy()))

    def heard(self, kind: Kind, namespace: str) -> None:
        """Something has come."""
        self._heard[kind, namespace if namespace in self._namespaces else ""] = time.monotonic()

    def trace(self) -> aiohttp.TraceConfig:
        """For the HTTP session of the watches."""
        config = aiohttp.TraceConfig()
        config.on_request_end.append(self._ended)
        config.on_request_exception.append(self._failed)
        return config

    async def _ended(
        self, _session: aiohttp.ClientSession, _context: SimpleNamespace, params: aiohttp.TraceRequestEndParams
    ) -> None:
        watch = self._watch(params.url.path)
        if watch is None or params.response.status >= _OK:
            if watch is not None and params.response.status == _FORBIDDEN:
                self._refused.add(watch)
            return
        self._refused.discard(watch)
        self.heard(*watch)
        if "watch" not in params.url.query:
            self._relisted(watch[0])

    async def _failed(
        self, _session: aiohttp.ClientSession, _context: SimpleNamespace, params: aiohttp.TraceRequestExceptionParams
    ) -> None:
        """An API server that is away is no fault of the watch: it has noticed, and tries again."""
        if (watch := self._watch(params.url.path)) is not None:
            self.heard(*watch)

    def _watch(self, path: str) -> tuple[Kind, str] | None:
        """The API server may be behind another's path."""
        return next((watch for end, watch in self._watches.items() if path.endswith(end)), None)


def _named(watch: tuple[Kind, str]) -> str:
    kind, namespace = watch
    return f"{kind.plural} in {namespace}" if namespace else kind.plural
