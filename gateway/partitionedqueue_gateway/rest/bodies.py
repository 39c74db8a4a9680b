"""Bodies of requests, each within its bounds of bytes and time, and all together within theirs."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.rest.refusals import BodyTooLarge, BodyTooSlow, InvalidRequest, TooManyRequests


class Bodies:
    """Those that are under way: being read, or waiting for what is done with them."""

    def __init__(self) -> None:
        self._bytes = 0

    @contextmanager
    def room(self, request: web.BaseRequest, most: int) -> Iterator[None]:
        """For one body of up to so many bytes, until it is done with. Raises BodyTooLarge, TooManyRequests."""
        length = request.content_length
        if length is None:
            length = most if request.body_exists else 0
        elif length > most:
            raise BodyTooLarge(_too_large(length, most))
        if self._bytes + length > limits.BODIES_BYTES_MAX:
            raise TooManyRequests("too much is being sent at the same time; send it again in a moment")
        self._bytes += length
        try:
            yield
        finally:
            self._bytes -= length

    async def read(self, request: web.BaseRequest, most: int) -> bytes:
        """One body, up to so many bytes; a longer one is refused without being read to its end.

        Raises BodyTooLarge, BodyTooSlow, TooManyRequests, InvalidRequest.
        """
        with self.room(request, most):
            return await read_whole(request, most)


async def read_whole(request: web.BaseRequest, most: int) -> bytes:
    """A body for which there is room. Raises BodyTooLarge, BodyTooSlow, InvalidRequest."""
    if not request.body_exists:
        return b""
    encoding = request.headers.get("Content-Encoding", "identity").lower()
    if encoding != "identity":
        raise InvalidRequest(f"The body of the request is encoded ({encoding}); send it as it is.")
    try:
        if request.content.is_eof():  # it came with its head, as small ones do
            return _within(most, request.content.read_nowait())
        async with asyncio.timeout(limits.BODY_S_MAX):
            return await _pieces(request, most)
    except TimeoutError:
        raise BodyTooSlow(f"the body of the request did not come within {limits.BODY_S_MAX:g} s") from None
    except web.RequestPayloadError:
        raise InvalidRequest("The body of the request is cut short or malformed.") from None


async def _pieces(request: web.BaseRequest, most: int) -> bytes:
    pieces, size = [], 0
    while size <= most and not request.content.at_eof():
        pieces.append(await request.content.readany())
        size += len(pieces[-1])
    return _within(most, b"".join(pieces))


def _within(most: int, body: bytes) -> bytes:
    if len(body) > most:
        raise BodyTooLarge(_too_large(len(body), most))
    return body


def _too_large(length: int, most: int) -> str:
    return f"the body of the request has {length:,} bytes or more; at most {most:,} are taken"
