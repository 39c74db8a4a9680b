"""The asyncio client of one broker: one connection, any number of calls in flight, written once a loop turn."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

import hiredis

from partitionedqueue.broker import calls
from partitionedqueue.broker.calls import Call, Words
from partitionedqueue.broker.library import library_text, must_load
from partitionedqueue.broker.logins import NO_LOGIN, Credentials, Login
from partitionedqueue.broker.packing import packed
from partitionedqueue.broker.refusals import error_in, error_of
from partitionedqueue.broker.replies import Raw
from partitionedqueue.model import limits
from partitionedqueue.model.errors import BrokerUnavailable, LoginRefused, PartitionedQueueError, QueueFull
from partitionedqueue.model.placement import BrokerAddress

T = TypeVar("T")
_CHECK_S: Final = 0.25  # how often the oldest call in flight is looked at


class _Asked:
    """What waits for replies."""

    __slots__ = ("counted", "deadline", "error", "future", "replies")

    def __init__(self, future: "asyncio.Future[Raw]", deadline: float, counted: bool, replies: int) -> None:
        self.future = future
        self.deadline = deadline
        self.counted = counted  # whether it has one of the places for calls in flight
        self.replies = replies  # that are still to come
        self.error: str | None = None  # the first among them


class _Connection(asyncio.Protocol):
    """Replies come in the order of the calls: a queue of futures is all the bookkeeping."""

    def __init__(self, address: BrokerAddress, timeout_s: float, answered: Callable[[], None]) -> None:
        self._answered = answered  # once for each call, whatever became of it
        self._address = address
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader()
        self._waiting: deque[_Asked] = deque()
        self._unwritten: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._check: asyncio.TimerHandle | None = None
        self.lost: PartitionedQueueError | None = None
        self.takes_pushes = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if transport.get_extra_info("sockname") == transport.get_extra_info("peername"):
            # TCP joins a socket to itself where nobody listens on a port that the kernel may hand out: our own words
            # would come back as replies.
            self.drop("nobody listens there")
            return
        self._check = self._loop.call_later(_CHECK_S, self._check_oldest)

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not False:
                asked = self._waiting[0]
                asked.error = asked.error or error_in(reply)
                asked.replies -= 1
                if asked.replies:
                    continue
                self._waiting.popleft()
                if asked.counted:
                    self._answered()
                if asked.future.done():
                    continue
                if asked.error is not None:
                    asked.future.set_exception(error_of(self._address, asked.error))
                else:
                    asked.future.set_result(reply)
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
        for asked in self._waiting:
            if asked.counted:
                self._answered()
            if not asked.future.done():
                asked.future.set_exception(self.lost)
        self._waiting.clear()
        self._unwritten.clear()

    def ask(self, *commands: Words, counted: bool = True) -> "asyncio.Future[Raw]":
        """Ask something; the future has the reply to the last command, or the first error among all replies."""
        if self.lost is not None:  # it was lost between the look and the call: nothing was sent
            if counted:
                self._answered()
            raise BrokerUnavailable(str(self.lost))
        if not self._unwritten:
            self._loop.call_soon(self._write)
        for words in commands:
            self._unwritten += packed(words)
        future: asyncio.Future[Raw] = self._loop.create_future()
        self._waiting.append(_Asked(future, self._loop.time() + self._timeout_s, counted, len(commands)))
        return future

    def _write(self) -> None:
        if self._unwritten and self._transport is not None:
            self._transport.write(b"".join(self._unwritten))
        self._unwritten.clear()

    def _check_oldest(self) -> None:
        if self._waiting and self._waiting[0].deadline < self._loop.time():
            self.drop(f"did not answer within {self._timeout_s:g} s")
        else:
            self._check = self._loop.call_later(_CHECK_S, self._check_oldest)


class BrokerClient:
    """Speaks to one broker from one event loop. Errors as in `blocking.BlockingBroker`.

    `login` is asked for the password with each connection, and once more where the broker refuses it. Connects when
    there is something to ask. At most `limits.CALLS_IN_FLIGHT_MAX` calls are in flight; others wait.
    """

    def __init__(
        self,
        address: BrokerAddress,
        *,
        timeout_s: float = limits.CALL_TIMEOUT_S_DEFAULT,
        login: Login = NO_LOGIN,
    ) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._login = login
        self._connection: _Connection | None = None
        self._connecting: asyncio.Task[_Connection] | None = None
        self._closed = False
        self._places = asyncio.Semaphore(limits.CALLS_IN_FLIGHT_MAX)

    @property
    def connected(self) -> bool:
        """Whether there is a connection that is not known to be lost."""
        return self._connection is not None and self._connection.lost is None

    @property
    def takes_pushes(self) -> bool:
        """Whether calls with pushes may be made: there is a connection, and a library there that knows them."""
        return self._connection is not None and self._connection.lost is None and self._connection.takes_pushes

    async def call(self, call: Call[T], *, patience_s: float = 0.0) -> T:
        """Carry one call.

        For `patience_s` seconds a broker that is away is tried again, as long as that cannot do a thing twice: the call
        had not been sent yet, or is repeatable.
        """
        # Asking for the loop is a system call in Python 3.11, and most calls need no deadline.
        deadline = asyncio.get_running_loop().time() + patience_s if patience_s else 0.0
        delay, unsure = limits.RECONNECT_DELAY_S_MIN, False
        while True:
            try:
                reply = await self._ask(*call.commands)
                return call.parse(reply[-1] if call.pushes else reply)
            except QueueFull as error:
                if unsure:  # an earlier try may have been carried out; this one was refused before it was looked at
                    raise BrokerUnavailable(str(error), outcome_unknown=True) from error
                raise
            except BrokerUnavailable as error:
                unsure = unsure or error.outcome_unknown
                may_repeat = call.repeatable or not error.outcome_unknown
                if not may_repeat or self._closed or asyncio.get_running_loop().time() + delay > deadline:
                    error.outcome_unknown = unsure
                    raise
            await asyncio.sleep(delay)
            delay = min(delay * 2, limits.RECONNECT_DELAY_S_MAX)

    async def load_library(self) -> None:
        """Load this program's library, unless the broker runs it or a later one. Raises BrokerTooNew."""
        try:
            about = await self.call(calls.about())
            if not must_load(about.library, about.layout, self.address):
                return
        except BrokerUnavailable as error:
            if "no library" not in str(error):
                raise
        load = ("FUNCTION", "LOAD", "REPLACE", library_text())
        try:
            await self._ask(load)
        except QueueFull:  # Redis takes no library beyond maxmemory, and a full broker may need this one to be emptied
            maxmemory = (await self._ask(("CONFIG", "GET", "maxmemory")))[1]
            await self._ask(("CONFIG", "SET", "maxmemory", 0))
            try:
                await self._ask(load)
            finally:
                await self._ask(("CONFIG", "SET", "maxmemory", maxmemory))
        if self._connection is not None:
            self._connection.takes_pushes = True

    async def close(self) -> None:
        """Close for good; calls in flight fail, and so does every later one."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        if self._connection is not None:
            self._connection.drop("the client was closed")
            self._connection = None
            await asyncio.sleep(0)

    async def _ask(self, *commands: Words) -> Any:
        await self._places.acquire()
        try:
            connection = self._connection
            if connection is None or connection.lost is not None:
                connection = await self._connected()
        except BaseException:
            self._places.release()
            raise
        return await connection.ask(*commands)  # its place is free again when the reply has come

    async def _connected(self) -> _Connection:
        """One attempt at a time, for all that wait for it."""
        if self._closed:
            raise BrokerUnavailable(f"the client of broker {self.address} is closed")
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._connect_ended)
        try:
            return await asyncio.shield(self._connecting)
        except asyncio.CancelledError:
            if self._closed:
                raise BrokerUnavailable(f"the client of broker {self.address} was closed") from None
            raise

    @staticmethod
    async def _knows_pushes(connection: _Connection) -> bool:
        """Whether the broker's library takes pushes in: MULTI would carry them out before an older one says no."""
        about = calls.about()
        try:
            return about.parse(await connection.ask(about.words, counted=False)).layout >= limits.LAYOUT_WITH_PUSHES
        except PartitionedQueueError:  # no library yet
            if connection.lost is not None:
                raise
            return False

    def _connect_ended(self, task: "asyncio.Task[_Connection]") -> None:
        self._connecting = None
        if not task.cancelled():
            task.exception()  # all that waited may have left

    async def _connect(self) -> _Connection:
        try:
            async with asyncio.timeout(self._timeout_s):
                credentials = await self._login(None)
                try:
                    connection = await self._logged_in(credentials)
                except LoginRefused:
                    newer = await self._login(credentials)
                    if newer == credentials:
                        raise
                    connection = await self._logged_in(newer)
        except (OSError, UnicodeError) as error:
            why = f"no connection within {self._timeout_s:g} s" if isinstance(error, TimeoutError) else str(error)
            raise BrokerUnavailable(f"broker {self.address} cannot be reached: {why}") from error
        self._connection = connection
        return connection

    async def _logged_in(self, credentials: Credentials | None) -> _Connection:
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: _Connection(self.address, self._timeout_s, self._places.release),
            self.address.host,
            self.address.port,
        )
        try:
            if credentials is not None:
                await connection.ask(("AUTH", *credentials), counted=False)
            connection.takes_pushes = await self._knows_pushes(connection)
        except BaseException:
            connection.drop("it did not let us in")
            raise
        return connection
