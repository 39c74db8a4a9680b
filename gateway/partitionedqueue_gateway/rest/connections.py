"""HTTP connections: when there are too many, the one that has asked for nothing the longest makes room."""

from typing import Final

from aiohttp import web

from partitionedqueue_gateway import limits

_FORGET_AT: Final = 2 * limits.CONNECTIONS_MAX


class Connections:
    """Of one server. Who has a request under way is left in peace; who is silent, or dribbles one, is not."""

    def __init__(self) -> None:
        self._idle: dict[web.RequestHandler, None] = {}  # in the order in which they fell silent

    def new(self, protocol: web.RequestHandler) -> None:
        """One is made; until its first request has come it is idle."""
        if len(self._idle) >= _FORGET_AT:  # most of them have gone by themselves
            self._idle = {one: None for one in self._idle if one.transport is not None}
        self._idle[protocol] = None

    def begin(self, protocol: web.RequestHandler) -> None:
        """A request has come."""
        self._idle.pop(protocol, None)

    def end(self, protocol: web.RequestHandler) -> None:
        """It is answered."""
        self._idle[protocol] = None

    def make_room(self) -> bool:
        """Close the one that has been idle longest; whether there was one."""
        while self._idle:
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            if oldest.transport is not None:
                oldest.transport.abort()
                return True
        return False
