"""The blocking client of one broker, for threads and Spark executors: one connection, pipelines."""

import itertools
import socket
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import hiredis

from partitionedqueue.broker import calls
from partitionedqueue.broker.calls import Call, Words
from partitionedqueue.broker.library import library_text, must_load
from partitionedqueue.broker.refusals import error_in, error_of
from partitionedqueue.broker.replies import Raw
from partitionedqueue.model import limits
from partitionedqueue.model.errors import BrokerUnavailable, PartitionedQueueError, QueueFull
from partitionedqueue.model.placement import BrokerAddress

T = TypeVar("T")
_READ_BYTES = 1 << 18


class BlockingBroker:
    """Speaks to one broker. Connects at the first call, and anew at the next call after a connection was lost.

    For `patience_s` seconds a broker that is away is tried again, where that cannot do a thing twice: what had not been
    sent yet, and what is repeatable. Not for several threads at once. Errors: BrokerUnavailable (`outcome_unknown`
    where the call had been sent), the refusals of `model.errors`, BrokerFault.
    """

    def __init__(
        self,
        address: BrokerAddress,
        *,
        timeout_s: float = limits.CALL_TIMEOUT_S_DEFAULT,
        patience_s: float = 0.0,
        username: str | None = None,
        password: str | None = None,
    ) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._login = ("AUTH", username or "default", password) if password is not None else None
        self._socket: socket.socket | None = None
        self._reader = hiredis.Reader()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next call opens one again."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def call(self, call: Call[T]) -> T:
        """Carry one call. A repeatable one is tried at least twice, should the connection turn out to be dead."""
        return self.pipeline([call])[0]

    def pipeline(self, several: Sequence[Call[T]]) -> list[T]:
        """Carry several calls at once; the first error among the replies is raised after all have been read."""
        commands = [call.commands for call in several]
        raw = self.raw(*itertools.chain(*commands), repeatable=all(call.repeatable for call in several))
        last = itertools.accumulate(map(len, commands))
        replies = [raw[n - 1] for n in last]
        return [call.parse(reply[-1] if call.pushes else reply) for call, reply in zip(several, replies, strict=True)]

    def raw(self, *commands: Words, repeatable: bool = False) -> list[Raw]:
        """Run native commands in one pipeline; replies are bytes, ints and lists."""
        deadline = time.monotonic() + self._patience_s
        delay, tries, unsure = limits.RECONNECT_DELAY_S_MIN, 0, False
        while True:
            try:
                return self._raw_once(commands)
            except QueueFull as error:
                if unsure:  # the first try may have been carried out; this one was refused before it was looked at
                    raise BrokerUnavailable(str(error), outcome_unknown=True) from error
                raise
            except BrokerUnavailable as error:
                tries += 1
                unsure = unsure or error.outcome_unknown
                late = time.monotonic() + delay > deadline
                stale_connection = repeatable and error.outcome_unknown and tries == 1
                if (late and not stale_connection) or (error.outcome_unknown and not repeatable):
                    error.outcome_unknown = unsure
                    raise
            time.sleep(delay if tries > 1 else 0)
            delay = min(delay * 2, limits.RECONNECT_DELAY_S_MAX)

    def _raw_once(self, commands: tuple[Words, ...]) -> list[Raw]:
        packed = [hiredis.pack_command(c) for c in commands]  # type: ignore[arg-type]  # its stub knows tuples of one
        replies = self._exchange(packed)
        for reply in replies:
            if (words := error_in(reply)) is not None:
                error = error_of(self.address, words)
                if isinstance(error, BrokerUnavailable):
                    error.outcome_unknown = len(commands) > 1  # others of the pipeline may have been carried out
                raise error
        return replies

    def load_library(self) -> None:
        """Load this program's library, unless the broker runs it or a later one. Raises BrokerTooNew."""
        try:
            about = self.call(calls.about())
            if not must_load(about.library, about.layout, self.address):
                return
        except BrokerUnavailable as error:
            if "no library" not in str(error):
                raise
        load = ("FUNCTION", "LOAD", "REPLACE", library_text())
        try:
            self.raw(load)
        except QueueFull:  # Redis takes no library beyond maxmemory, and a full broker may need this one to be emptied
            maxmemory = self.raw(("CONFIG", "GET", "maxmemory"))[0][1]
            self.raw(("CONFIG", "SET", "maxmemory", 0))
            try:
                self.raw(load)
            finally:
                self.raw(("CONFIG", "SET", "maxmemory", maxmemory))

    def _connected(self) -> socket.socket:
        if self._socket is not None:
            return self._socket
        try:
            fresh = socket.create_connection((self.address.host, self.address.port), self._timeout_s)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise BrokerUnavailable(f"broker {self.address} cannot be reached: {why}") from error
        if fresh.getsockname() == fresh.getpeername():  # joined to itself, as TCP does where nobody listens
            fresh.close()
            raise BrokerUnavailable(f"broker {self.address} cannot be reached: nobody listens there")
        fresh.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket, self._reader = fresh, hiredis.Reader()
        if self._login is not None:
            try:
                self._raw_once((self._login,))
            except PartitionedQueueError:
                self.close()
                raise
        return fresh

    def _exchange(self, packed: list[bytes]) -> list[Any]:
        connection = self._connected()
        replies: list[Any] = []
        try:
            connection.sendall(b"".join(packed))
            while len(replies) < len(packed):
                reply = self._reader.gets()
                if reply is not False:
                    replies.append(reply)
                    continue
                data = connection.recv(_READ_BYTES)
                if not data:
                    raise ConnectionError("the connection was closed")
                self._reader.feed(data)
        except (OSError, hiredis.ProtocolError) as error:
            self.close()
            what = f"did not answer within {self._timeout_s:g} s" if isinstance(error, TimeoutError) else str(error)
            raise BrokerUnavailable(f"broker {self.address}: {what}", outcome_unknown=True) from error
        except BaseException:  # an interrupt: what is left of the replies belongs to nobody
            self.close()
            raise
        return replies
