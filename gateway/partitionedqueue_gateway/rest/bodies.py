"""Bodies of requests, each within its bounds of bytes and time, and all together within theirs."""

import asyncio

from aiohttp import web

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.rest.refusals import BodyTooLarge, BodyTooSlow, InvalidRequest, TooManyRequests


class Bodies:
    """Those that are being read, or have been and wait for what is done with them."""

    def __init__(self) -> None:
        self._bytes = 0

    async def read(self, request: web.BaseRequest, most: int) -> bytes:
        """One body, up to so many bytes; a longer one is refused without being read to its end.

        Raises BodyTooLarge, BodyTooSlow, TooManyRequests, InvalidRequest.
        """
        if not request.body_exists:
            return b""
        encoding = request.headers.get("Content-Encoding", "identity").lower()
        if encoding != "identity":
            raise InvalidRequest(f"The body of the request is encoded ({encoding}); send it as it is.")
        length = request.content_length
        if length is None:
            length = most
        elif length > most:
            raise BodyTooLarge(_too_large(length, most))
        if self._bytes + length > limits.BODIES_BYTES_MAX:
            raise TooManyRequests("too much is being sent at the same time; send it again in a moment")
        self._bytes += length
        try:
            async with asyncio.timeout(limits.BODY_S_MAX):
                return await _read(request, most)
        except TimeoutError:
            words = f"the body of the request did not come within {limits.BODY_S_MAX:g} s"
            raise BodyTooSlow(words) from None
        except web.RequestPayloadError:
            raise InvalidRequest("The body of the request is cut short or malformed.") from None
        finally:
            self._bytes -= length


async def _read(request: web.BaseRequest, most: int) -> bytes:
    body = await request.content.readany()
    while not request.content.at_eof():
        more = await request.content.readany()
        body += more
        if len(body) > most:
            break
    if len(body) > most:
        raise BodyTooLarge(_too_large(len(body), most))
    return body


def _too_large(length: int, most: int) -> str:
    return f"the body of the request has {length:,} bytes or more; at most {most:,} are taken"
