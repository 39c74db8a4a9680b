"""Plain aiohttp, each request one call to one Redis: what an HTTP server in Python that stores something costs.

`python http_edge.py PORT REDIS_PORT`. A message is pushed to a list, popped from it, and completing one counts it: the
same paths and answers as the gateway's, nothing is looked into, nobody is refused.
"""

import asyncio
import signal
import sys
from typing import Any

import redis.asyncio
from aiohttp import web

QUEUE, DONE = "messages", "done"
LOCATION = "/measured/messages/1/00000000-0000-0000-0000-000000000000"


class Edge:
    """What it answers."""

    def __init__(self, client: Any) -> None:  # redis' stubs are of both its clients
        self._redis = client

    async def send(self, request: web.Request) -> web.Response:
        """Keep a message."""
        await self._redis.rpush(QUEUE, await request.read())
        return web.Response(status=201)

    async def lock(self, _request: web.Request) -> web.Response:
        """Hand one out."""
        body = await self._redis.lpop(QUEUE)
        if body is None:
            return web.Response(status=204)
        return web.Response(status=201, body=body, headers={"Location": LOCATION})

    async def complete(self, _request: web.Request) -> web.Response:
        """Be done with it."""
        await self._redis.incr(DONE)
        return web.Response()


async def main(port: int, redis_port: int) -> None:
    """Serve until SIGTERM."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with redis.asyncio.Redis(port=redis_port) as client:
        edge = Edge(client)
        app = web.Application()
        app.router.add_post("/measured/messages", edge.send)
        app.router.add_post("/measured/messages/head", edge.lock)
        app.router.add_delete("/measured/messages/{id}/{token}", edge.complete)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await ended.wait()
        await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
