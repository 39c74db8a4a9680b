"""A door for HTTP in the test's own process, beside one for AMQP: the same queues over real brokers."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from aiohttp import ClientResponse, ClientSession
from yarl import URL

from harness.amqp_door import Door
from harness.entities_in_use import Bench
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.access import Access
from partitionedqueue_gateway.rest.authorization import Authorization
from partitionedqueue_gateway.rest.data_plane.room import DataPlane
from partitionedqueue_gateway.rest.server import Answered, for_everybody, serving

Headers: TypeAlias = Mapping[str, str] | Sequence[tuple[str, str]]
BATCH = "application/vnd.microsoft.servicebus.json"
_SUB_CODE = re.compile(r"<Detail>SubCode=(\d+)\. ")


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def properties(self) -> dict[str, Any]:
        """BrokerProperties."""
        found: dict[str, Any] = json.loads(self.headers["BrokerProperties"])
        return found

    @property
    def sub_code(self) -> int:
        """Of a refusal."""
        found = _SUB_CODE.search(self.body.decode())
        return int(found[1]) if found else 0

    @property
    def held(self) -> str:
        """Where a locked message is settled: a path."""
        return "/" + self.headers["Location"].split("/", 3)[3]


class Caller:
    """Somebody who asks over connections that are kept."""

    def __init__(self, session: ClientSession, port: int, data_plane: DataPlane | None = None) -> None:
        self.session = session
        self.port = port
        self._data_plane = data_plane

    @property
    def bodies_bytes(self) -> int:
        """Of bodies that are under way there."""
        assert self._data_plane is not None
        return self._data_plane._sending._bodies.bytes

    @property
    def waits(self) -> int:
        """Requests that wait for messages there."""
        assert self._data_plane is not None
        return len(self._data_plane._receiving._waits)

    def drain(self) -> None:
        """The gateway is about to end."""
        assert self._data_plane is not None
        self._data_plane.drain()

    async def ask(self, method: str, path: str, body: bytes | str = b"", headers: Headers | None = None) -> Answer:
        """One request; the path goes out as it is."""
        url = URL(f"http://127.0.0.1:{self.port}{path}", encoded=True)
        async with self.session.request(method, url, data=body or None, headers=headers) as response:
            return await _read(response)

    async def send(
        self,
        body: bytes | str = b"",
        queue: str = "orders",
        headers: Mapping[str, str] | None = None,
        **properties: Any,
    ) -> Answer:
        """Send a message; `properties` are BrokerProperties."""
        told = {"BrokerProperties": json.dumps(properties)} if properties else {}
        return await self.ask("POST", f"/{queue}/messages", body, {**told, **(headers or {})})

    async def batch(self, messages: Any, queue: str = "orders") -> Answer:
        """Send several."""
        return await self.ask("POST", f"/{queue}/messages", json.dumps(messages), {"Content-Type": BATCH})

    async def lock(self, queue: str = "orders", within: float = 10) -> Answer:
        """Peek-lock."""
        return await self.ask("POST", f"/{queue}/messages/head?timeout={within:g}")

    async def delete(self, queue: str = "orders", within: float = 10) -> Answer:
        """Receive and delete."""
        return await self.ask("DELETE", f"/{queue}/messages/head?timeout={within:g}")


async def _read(response: ClientResponse) -> Answer:
    return Answer(response.status, response.headers, await response.read())


@asynccontextmanager
async def answering(door: Door | Bench, access: Access | None = None) -> AsyncIterator[Caller]:
    """Somebody who asks, and what answers them; everybody may do everything unless `access` says otherwise."""
    data_plane = DataPlane(door.entities, Authorization(access or Access(None)))
    async with serving(for_everybody(Answered(), (), rooms=(data_plane,))) as protocol:
        server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            async with calling(port) as caller:
                yield Caller(caller.session, port, data_plane)
        finally:
            server.close()
            data_plane.drain()


@asynccontextmanager
async def calling(port: int) -> AsyncIterator[Caller]:
    """Somebody who asks what listens on a port."""
    most = limits.HEADER_BYTES_MAX
    skipped = ("Content-Type", "User-Agent", "Accept")
    async with ClientSession(max_field_size=most, max_line_size=most, skip_auto_headers=skipped) as session:
        yield Caller(session, port)
