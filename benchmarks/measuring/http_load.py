"""HTTP requests by the thousand over connections that are kept, with as little of a client as can be.

`python http_load.py PORT MODE MESSAGES CONNECTIONS TOKEN`. MODE is `send`, one request a message, or `receive`, two: it
is locked, then completed where its Location says. Prints {"requests": …, "seconds": …}.
"""

import asyncio
import json
import re
import sys
import time

BODY = b"x" * 1024
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
_LOCATION = re.compile(rb"\r\nlocation: (?:http://[^/]+)?(\S+)", re.IGNORECASE)


class Load:
    """What is still to be asked, over all connections."""

    def __init__(self, mode: str, messages: int, token: str) -> None:
        self.left = messages
        self.waiting = messages
        self.requests = 0
        self.locks = mode == "receive"
        self.ended = asyncio.get_running_loop().create_future()
        self.host = f"Host: localhost\r\nAuthorization: {token}\r\n".encode()
        self.send = (
            b"POST /measured/messages HTTP/1.1\r\n"
            + self.host
            + (
                b'Content-Type: text/plain\r\nBrokerProperties: {"Label":"measured"}\r\n'
                b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
            )
        )
        self.lock = b"POST /measured/messages/head?timeout=60 HTTP/1.1\r\n" + self.host + b"Content-Length: 0\r\n\r\n"


class Connection(asyncio.Protocol):
    """Asks again as soon as it has its answer."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._came = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody hangs up on us."""
        if not self._load.ended.done() and not self._transport.is_closing():
            self._load.ended.set_exception(exc or ConnectionResetError("the server has hung up"))

    def _next(self) -> None:
        load = self._load
        if load.left:
            load.left -= 1
            self._transport.write(load.lock if load.locks else load.send)
        else:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """An answer, or a part of one."""
        self._came += data
        end = self._came.find(b"\r\n\r\n")
        if end < 0:
            return
        length = _LENGTH.search(self._came, 0, end)
        if length is None or len(self._came) < end + 4 + int(length[1]):
            return
        head, self._came = self._came[:end], b""
        self._answered(head)

    def _answered(self, head: bytes) -> None:
        load = self._load
        if head[9:12] not in {b"200", b"201"}:
            load.ended.set_exception(RuntimeError(head.decode()))
            return
        load.requests += 1
        location = _LOCATION.search(head) if load.locks else None
        if location is not None:
            self._transport.write(b"DELETE %b HTTP/1.1\r\n%b\r\n" % (location[1], load.host))
            return
        load.waiting -= 1
        if not load.waiting:
            load.ended.set_result(None)
        self._next()


async def main(port: int, mode: str, messages: int, connections: int, token: str) -> None:
    """Ask, and tell how long it took."""
    loop = asyncio.get_running_loop()
    load = Load(mode, messages, token)
    began = time.perf_counter()
    for _ in range(connections):
        await loop.create_connection(lambda: Connection(load), "127.0.0.1", port)
    await load.ended
    print(json.dumps({"requests": load.requests, "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]))
