"""`/healthz`: restart this gateway or not. `/readyz`: send it requests or not. Both say why in words."""

import asyncio

from aiohttp import web

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.catalog import Catalog


class Health:
    """What the kubelet asks. `draining` is set once the gateway is about to end."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.draining = False

    def routes(self) -> list[web.RouteDef]:
        """What is answered here."""
        return [web.get("/healthz", self.alive), web.get("/readyz", self.ready)]

    async def alive(self, _request: web.Request) -> web.Response:
        """No, where the watching is stuck. A source that cannot be reached is no reason: a restart changes nothing."""
        idle_s = self._catalog.idle_s(asyncio.get_running_loop().time())
        if idle_s > limits.FROZEN_S_MIN:
            return _no(f"nothing has been asked of the source of the queues for {idle_s:.0f} s")
        return web.Response(text="ok\n")

    async def ready(self, _request: web.Request) -> web.Response:
        """No, before the queues are known and once the gateway is ending."""
        if self.draining:
            return _no("this gateway is ending")
        if not self._catalog.synced:
            troubles = {scope.trouble for scope in self._catalog.scopes.values() if scope.trouble is not None}
            return _no("; ".join(sorted(troubles)) or "the queues are not known yet")
        return web.Response(text="ok\n")


def _no(words: str) -> web.Response:
    return web.Response(status=503, text=words + "\n")
