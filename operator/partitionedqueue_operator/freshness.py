"""Whether the watches live: each must have heard from the API server lately, be it news or the end of a request.

Watch requests are made to end by themselves within a minute, so one that hears nothing for longer is frozen.
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


class Freshness:
    """Listens to the HTTP requests of the watches, from their thread.

    `relisted` is called when a watch begins, or begins anew, with a list.
    """

    def __init__(self, kinds: Sequence[Kind], relisted: Callable[[Kind], object]) -> None:
        self._paths = {f"/{kind.plural}": kind for kind in kinds}
        self._heard: dict[Kind, float] = {}
        self._relisted = relisted

    def begin(self) -> None:
        """The watches begin now: until then there is nothing to hear, and nothing that a new start would cure."""
        self._heard = dict.fromkeys(self._paths.values(), time.monotonic())

    def stale(self) -> list[str]:
        """The watches that have heard nothing for too long."""
        now = time.monotonic()
        return [f"{kind.plural} for {now - at:.0f} s" for kind, at in self._heard.items() if now - at > STALE_S]

    def heard(self, kind: Kind) -> None:
        """Something has come."""
        self._heard[kind] = time.monotonic()

    def trace(self) -> aiohttp.TraceConfig:
        """For the HTTP session of the watches."""
        config = aiohttp.TraceConfig()
        config.on_request_end.append(self._ended)
        config.on_request_exception.append(self._failed)
        return config

    async def _ended(
        self, _session: aiohttp.ClientSession, _context: SimpleNamespace, params: aiohttp.TraceRequestEndParams
    ) -> None:
        kind = self._kind(params.url.path)
        if kind is None or params.response.status >= _OK:
            return
        self.heard(kind)
        if "watch" not in params.url.query:
            self._relisted(kind)

    async def _failed(
        self, _session: aiohttp.ClientSession, _context: SimpleNamespace, params: aiohttp.TraceRequestExceptionParams
    ) -> None:
        """An API server that is away is no fault of the watch: it has noticed, and tries again."""
        if (kind := self._kind(params.url.path)) is not None:
            self.heard(kind)

    def _kind(self, path: str) -> Kind | None:
        return self._paths.get(path[path.rindex("/") :])
