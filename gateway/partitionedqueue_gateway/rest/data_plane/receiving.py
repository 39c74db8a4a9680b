"""`…/messages/head`: the next message, under a lock (POST) or deleted (DELETE); 204 where none came in time.

A message that its client cannot be told of goes back at once: the client has gone, or does not read.
"""

import asyncio
import socket
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from aiohttp import web

from partitionedqueue.model import stored_message
from partitionedqueue.model.errors import BrokerFault, InvalidMessage, PartitionedQueueError
from partitionedqueue.model.identifiers import sequence_number
from partitionedqueue.model.lock_token import LockToken
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.policies import Right
from partitionedqueue_gateway.entities.entity import Entity
from partitionedqueue_gateway.entities.taken import Taken
from partitionedqueue_gateway.rest.data_plane import broker_properties, custom_properties
from partitionedqueue_gateway.rest.data_plane.requests import Door, timeout_s
from partitionedqueue_gateway.rest.data_plane.stored_bodies import body_of
from partitionedqueue_gateway.rest.refusals import InvalidRequest, TooManyRequests

_ESTABLISHED: Final = 1  # Linux, tcp_states.h
_OCTETS: Final = "application/octet-stream"


class _Wait:
    """One who waits for one message."""

    def __init__(self, entity: Entity, *, delete: bool) -> None:
        self._found: asyncio.Future[Taken | None] = asyncio.get_running_loop().create_future()
        self._receiver = entity.receiver(self._take, delete=delete, on_lost=self._lost)

    async def message(self, within_s: float) -> Taken | None:
        """It, or None where none came in time. Raises what the receiver hears that it lost the entity by."""
        self._receiver.want(1)
        if not within_s:
            await self._receiver.drain()
            self.end()
        timer = asyncio.get_running_loop().call_later(within_s, self.end)
        try:
            return await self._found
        finally:
            timer.cancel()

    def end(self) -> None:
        """Wait no longer."""
        if not self._found.done():
            self._found.set_result(None)

    def close(self, *, delivered: bool) -> None:
        """It is over; what came and was not delivered goes back."""
        found = self._found
        came = found.done() and not found.cancelled() and found.exception() is None and found.result() is not None
        if came and not delivered and (taken := found.result()) is not None:
            self._receiver.give_back([taken])
        self._receiver.close()

    def _take(self, messages: Sequence[Taken]) -> None:
        if self._found.done():  # in this turn of the loop
            self._receiver.give_back(messages)
        else:
            (taken,) = messages  # no more was wanted
            self._found.set_result(taken)

    def _lost(self, error: PartitionedQueueError) -> None:
        if not self._found.done():
            self._found.set_exception(error)


class Receiving:
    """Hands messages out. `drain` ends all waiting: with 204, and with the connection, so that clients go elsewhere."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._waits: set[_Wait] = set()
        self._draining = False

    def drain(self) -> None:
        """Wait for nothing any more."""
        self._draining = True
        for wait in self._waits:
            wait.end()

    async def lock(self, request: web.Request) -> web.StreamResponse:
        """Peek-lock."""
        return await self._head(request, delete=False)

    async def delete(self, request: web.Request) -> web.StreamResponse:
        """Receive and delete."""
        return await self._head(request, delete=True)

    async def _head(self, request: web.Request, *, delete: bool) -> web.StreamResponse:
        entity = self._door.entity(request, Right.LISTEN)
        if entity.has_sessions:
            raise InvalidRequest(
                f"'{entity.address}' requires sessions, and HTTP has none to receive from: receive over AMQP."
            )
        if len(self._waits) >= limits.HTTP_WAITS_MAX:
            raise TooManyRequests(f"{len(self._waits)} requests wait for messages; ask again in a moment")
        within_s = 0.0 if self._draining else timeout_s(request)
        wait, delivered = _Wait(entity, delete=delete), False
        self._waits.add(wait)
        try:
            taken = await wait.message(within_s)
            if taken is None:
                return self._empty()
            try:
                response = _shown(request, entity, taken)
            except InvalidMessage as error:
                delivered = True  # its lock expires, and its deliveries are counted: in the end it is dead-lettered
                raise BrokerFault(f"a message of '{entity.address}' cannot be shown to its receiver") from error
            delivered = await _written(request, response)
            return response
        finally:
            self._waits.discard(wait)
            wait.close(delivered=delivered)

    def _empty(self) -> web.Response:
        response = web.Response(status=204)
        if self._draining:
            response.force_close()
        return response


async def _written(request: web.Request, response: web.Response) -> bool:
    """Whether all of an answer has gone out: as far as we can tell, the client has it."""
    try:
        if _has_hung_up(request):
            return False
        async with asyncio.timeout(limits.STALLED_S_MAX):
            await response.prepare(request)
            await response.write_eof()
    except ConnectionError:
        return False
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        return False
    return request.transport is not None and not request.transport.is_closing()  # asyncio keeps it to itself otherwise


def _has_hung_up(request: web.Request) -> bool:
    """Whether the client has closed the connection, though the loop may not have come to see it yet."""
    transport = request.transport
    if transport is None or transport.is_closing():
        return True
    state: bytes = transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
    return state[0] != _ESTABLISHED


def _shown(request: web.Request, entity: Entity, taken: Taken) -> web.Response:
    message = stored_message.decode(taken.stored)
    headers = [*custom_properties.write(message.application_properties)]
    headers.append((broker_properties.HEADER, broker_properties.write(message, taken, entity)))
    content_type = message.content_type
    headers.append(("Content-Type", custom_properties.header_text(content_type) if content_type else _OCTETS))
    if taken.lock:
        token = LockToken(taken.partition, taken.sequence, taken.lock).sealed(entity.seal).uuid
        number = sequence_number(taken.partition, taken.sequence)
        host = custom_properties.header_text(request.headers.get("Host", ""))
        path = quote(entity.address.path, safe="/$")
        headers.append(("Location", f"{request.scheme}://{host}/{path}/messages/{number}/{token}"))
    body = body_of(taken.stored, message.body)
    return web.Response(status=201 if taken.lock else 200, body=body, headers=headers)
