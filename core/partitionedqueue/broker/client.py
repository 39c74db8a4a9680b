"""The asyncio client of one broker: one connection, any number of calls in flight, written once a loop turn."""

import asyncio
from collections import deque
from typing import Any, Final, TypeVar

import hiredis

from partitionedqueue.broker import calls
from partitionedqueue.broker.calls import Argument, Call
from partitionedqueue.broker.library import library_text, library_version
from partitionedqueue.broker.refusals import error_of
from partitionedqueue.broker.replies import Raw
from partitionedqueue.model import limits
from partitionedqueue.model.errors import BrokerUnavailable, PartitionedQueueError
from partitionedqueue.model.placement import BrokerAddress

T = TypeVar("T")
_CHECK_S: Final = 0.25  # how often the oldest call in flight is looked at


class _Connection(asyncio.Protocol):
    """Replies come in the order of the calls: a queue of futures is all the bookkeeping."""

    def __init__(self, address: BrokerAddress, timeout_s: float) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader()
        self._waiting: deque[tuple[asyncio.Future[Raw], float]] = deque()
        self._unwritten: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._check: asyncio.TimerHandle | None = None
        self.lost: PartitionedQueueError | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._check = self._loop.call_later(_CHECK_S, self._check_oldest)

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not False:
                future, _ = self._waiting.popleft()
                if future.done():
                    continue
                if isinstance(reply, hiredis.ReplyError):
                    future.set_exception(error_of(self._address, str(reply)))
                else:
                    future.set_result(reply)
        except (hiredis.ProtocolError, IndexError) as error:
            self.drop(f"spoke no RESP: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        self.drop(str(exc) if exc else "the connection was closed")

    def drop(self, why: str) -> None:
        """Give the connection up; every call in flight fails, its outcome unknown."""
        if self.lost is not None:
            return
        self.lost = BrokerUnavailable(f"broker {self._address}: {why}", outcome_unknown=True)
        if self._check is not None:
            self._check.cancel()
        if self._transport is not None:
            self._transport.abort()
        for future, _ in self._waiting:
            if not future.done():
                future.set_exception(self.lost)
        self._waiting.clear()
        self._unwritten.clear()

    def ask(self, words: tuple[Argument, ...]) -> "asyncio.Future[Raw]":
        if not self._unwritten:
            self._loop.call_soon(self._write)
        packed = hiredis.pack_command(words)  # type: ignore[arg-type]  # its stub knows tuples of one
        self._unwritten.append(packed)
        future: asyncio.Future[Raw] = self._loop.create_future()
        self._waiting.append((future, self._loop.time() + self._timeout_s))
        return future

    def _write(self) -> None:
        if self._unwritten and self._transport is not None:
            self._transport.write(b"".join(self._unwritten))
        self._unwritten.clear()

    def _check_oldest(self) -> None:
        if self._waiting and self._waiting[0][1] < self._loop.time():
            self.drop(f"did not answer within {self._timeout_s:g} s")
        else:
            self._check = self._loop.call_later(_CHECK_S, self._check_oldest)


class BrokerClient:
    """Speaks to one broker from one event loop. Errors as in `blocking.BlockingBroker`.

    Connects when there is something to ask. At most `limits.CALLS_IN_FLIGHT_MAX` calls are in flight; others wait.
    """

    def __init__(
        self,
        address: BrokerAddress,
        *,
        timeout_s: float = limits.CALL_TIMEOUT_S_DEFAULT,
        username: str | None = None,
        password: str | None = None,
    ) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._login = ("AUTH", username or "default", password) if password is not None else None
        self._connection: _Connection | None = None
        self._connecting = asyncio.Lock()
        self._places = asyncio.Semaphore(limits.CALLS_IN_FLIGHT_MAX)

    @property
    def connected(self) -> bool:
        """Whether there is a connection that is not known to be lost."""
        return self._connection is not None and self._connection.lost is None

    async def call(self, call: Call[T], *, patience_s: float = 0.0) -> T:
        """Carry one call.

        For `patience_s` seconds a broker that is away is tried again, as long as that cannot do a thing twice: the call
        had not been sent yet, or is repeatable.
        """
        deadline = asyncio.get_running_loop().time() + patience_s
        delay = limits.RECONNECT_DELAY_S_MIN
        while True:
            try:
                return call.parse(await self._ask(call.words))
            except BrokerUnavailable as error:
                may_repeat = call.repeatable or not error.outcome_unknown
                if not may_repeat or asyncio.get_running_loop().time() + delay > deadline:
                    raise
            await asyncio.sleep(delay)
            delay = min(delay * 2, limits.RECONNECT_DELAY_S_MAX)

    async def load_library(self) -> None:
        """Load this version of the library, if the broker does not run it yet."""
        try:
            if (await self.call(calls.about())).library == library_version():
                return
        except BrokerUnavailable as error:
            if "no library" not in str(error):
                raise
        await self._ask(("FUNCTION", "LOAD", "REPLACE", library_text()))

    async def close(self) -> None:
        """Close the connection; calls in flight fail."""
        if self._connection is not None:
            self._connection.drop("the client was closed")
            self._connection = None
            await asyncio.sleep(0)

    async def _ask(self, words: tuple[Argument, ...]) -> Any:
        async with self._places:
            connection = self._connection
            if connection is None or connection.lost is not None:
                connection = await self._connect()
            return await connection.ask(words)

    async def _connect(self) -> _Connection:
        async with self._connecting:
            if self._connection is not None and self._connection.lost is None:
                return self._connection
            loop = asyncio.get_running_loop()
            try:
                async with asyncio.timeout(self._timeout_s):
                    _, connection = await loop.create_connection(
                        lambda: _Connection(self.address, self._timeout_s), self.address.host, self.address.port
                    )
            except OSError as error:
                why = f"no connection within {self._timeout_s:g} s" if isinstance(error, TimeoutError) else str(error)
                raise BrokerUnavailable(f"broker {self.address} cannot be reached: {why}") from error
            if self._login is not None:
                try:
                    await connection.ask(self._login)
                except PartitionedQueueError as error:
                    connection.drop(str(error))
                    raise
            self._connection = connection
            return connection
