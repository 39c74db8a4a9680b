"""Bodies of requests, each within its bounds of bytes and time, and all together within theirs."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.rest.refusals import BodyTooLarge, BodyTooSlow, InvalidRequest, TooManyRequests


class Bodies:
    """Those that are under way: being read, or waiting for what is done with them. What has come of them counts."""

    def __init__(self) -> None:
        self.bytes = 0

    @contextmanager
    def room(self) -> Iterator["Room"]:
        """For one body, until it is done with."""
        room = Room(self)
        try:
            yield room
        finally:
            self.bytes -= room.bytes

    async def read(self, request: web.BaseRequest, most: int) -> bytes:
        """As `Room.read`, for a body that is done with at once."""
        with self.room() as room:
            return await room.read(request, most)


class Room:
    """What one body takes."""

    def __init__(self, bodies: Bodies) -> None:
        self.bytes = 0
        self._bodies = bodies

    async def read(self, request: web.BaseRequest, most: int) -> bytes:
        """The body, up to so many bytes; a longer one is refused without being read to its end.

        Raises BodyTooLarge, BodyTooSlow, TooManyRequests, InvalidRequest.
        """
        if not request.body_exists:
            return b""
        encoding = request.headers.get("Content-Encoding", "identity").lower()
        if encoding != "identity":
            raise InvalidRequest(f"The body of the request is encoded ({encoding}); send it as it is.")
        if (request.content_length or 0) > most:
            raise BodyTooLarge(_too_large(request.content_length or 0, most))
        try:
            if request.content.is_eof():  # it came with its head, as small ones do
                return self._taken(request.content.read_nowait(), most)
            async with asyncio.timeout(limits.BODY_S_MAX):
                return await self._pieces(request, most)
        except TimeoutError:
            raise BodyTooSlow(f"the body of the request did not come within {limits.BODY_S_MAX:g} s") from None
        except web.RequestPayloadError:
            raise InvalidRequest("The body of the request is cut short or malformed.") from None

    async def _pieces(self, request: web.BaseRequest, most: int) -> bytes:
        pieces = []
        while not request.content.at_eof():
            pieces.append(self._taken(await request.content.readany(), most))
        return b"".join(pieces)

    def _taken(self, piece: bytes, most: int) -> bytes:
        self.bytes += len(piece)
        self._bodies.bytes += len(piece)
        if self.bytes > most:
            raise BodyTooLarge(_too_large(self.bytes, most))
        if self._bodies.bytes > limits.BODIES_BYTES_MAX:
            raise TooManyRequests("too much is being sent at the same time; send it again in a moment")
        return piece


def _too_large(length: int, most: int) -> str:
    return f"the body of the request has {length:,} bytes or more; at most {most:,} are taken"
