"""Receiving from one partition: any number of receivers, who wait without polling and are served in order."""

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from itertools import takewhile
from typing import Any, Final, TypeAlias, TypeVar

from partitionedqueue.broker import calls
from partitionedqueue.broker.bell import Bell
from partitionedqueue.broker.calls import QUEUES_LOCK, Call
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.fetching import Fetcher
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import AcceptedSession, Received, Run, SessionLock, Settlement
from partitionedqueue.broker.waiting import AT_ONCE, Line, Want, seconds_until
from partitionedqueue.model import limits
from partitionedqueue.model.errors import BrokerUnavailable, PartitionedQueueError

T = TypeVar("T")
Carry: TypeAlias = Callable[[Call[Any]], None]
"""Carries a call that nobody waits for."""
DELETE: Final = 0
"""No lock: what is received is gone."""


def _cut(runs: Sequence[Run], most: int) -> tuple[list[Run], list[Run]]:
    """The first `most` messages of some runs, and the others. Enqueued-time marks hold for any part of a run."""
    first: list[Run] = []
    for place, run in enumerate(runs):
        if most <= 0:
            return first, list(runs[place:])
        if len(run.messages) > most:
            rest = dataclasses.replace(run, first=run.first + most, messages=run.messages[most:])
            return [*first, dataclasses.replace(run, messages=run.messages[:most])], [rest, *runs[place + 1 :]]
        first.append(run)
        most -= len(run.messages)
    return first, []


class _MessageLine(Line[Received]):
    """Those who want messages of one queue, or of one session that is held."""

    def __init__(  # noqa: PLR0917 -- what it is made of, each of another type
        self,
        client: BrokerClient,
        bell: Bell,
        keys: QueueKeys,
        session: SessionLock | None,
        carry: Carry,
        ended: Callable[[], None],
    ) -> None:
        super().__init__(bell, keys.wake, ended)
        self._fetcher = Fetcher(client, keys, session)
        self._keys = keys
        self._session = session
        self._session_id = session.session_id.encode() if session is not None else b""
        self._carry = carry
        self._deleted: Received | None = None  # deleted for somebody who had left: there is no way back for it

    def concerns(self, payload: bytes) -> bool:
        return self._session is None or payload in (b"", self._session_id)

    async def ask(self, wants: Sequence[Want[Received]]) -> tuple[Received, float]:
        lock_ms = wants[0].lock_ms
        if lock_ms == DELETE and self._deleted is not None:
            kept, self._deleted = self._deleted, None
            self.hand_out(kept, DELETE)
            return kept, AT_ONCE
        wanted = sum(want.most for want in takewhile(lambda want: want.lock_ms == lock_ms, wants))
        most = min(wanted, limits.RECEIVE_MESSAGES_MAX)
        reply = await self._fetcher.receive(most=most, lock_ms=lock_ms)
        count = sum(len(run.messages) for run in reply.runs)
        self.hand_out(reply, lock_ms)
        return reply, AT_ONCE if count >= most else seconds_until(reply.ask_again_ms, reply.now_ms)

    def hand_out(self, found: Received, lock_ms: int) -> None:
        left = found.runs
        for want in self.waiting():
            if not left:
                return
            if want.lock_ms == lock_ms:
                part, left = _cut(left, want.most)
                want.result.set_result(dataclasses.replace(found, runs=part))
        if left and lock_ms == DELETE:
            before = self._deleted.runs if self._deleted is not None else []
            self._deleted = dataclasses.replace(found, runs=[*before, *left])
        elif left:
            settlements = [Settlement(run.lock, run.first, run.first + len(run.messages) - 1) for run in left]
            self._carry(calls.abandon(self._keys, settlements, counted=False, session=self._session))

    def nothing(self, reply: Received) -> Received:
        return dataclasses.replace(reply, runs=[])


class _SessionLine(Line[AcceptedSession]):
    """Those who want the next session that has something to receive."""

    def __init__(
        self, client: BrokerClient, bell: Bell, keys: QueueKeys, carry: Carry, ended: Callable[[], None]
    ) -> None:
        super().__init__(bell, keys.wake, ended)
        self._client = client
        self._keys = keys
        self._carry = carry

    async def ask(self, wants: Sequence[Want[AcceptedSession]]) -> tuple[AcceptedSession, float]:
        lock_ms = wants[0].lock_ms
        reply = await self._client.call(calls.accept_session(self._keys, lock_ms=lock_ms))
        if reply.session is None:
            return reply, seconds_until(reply.ask_again_ms, reply.now_ms)
        self.hand_out(reply, lock_ms)
        return reply, AT_ONCE

    def hand_out(self, found: AcceptedSession, lock_ms: int) -> None:
        if found.session is None:
            return
        for want in self.waiting():
            if want.lock_ms == lock_ms:
                want.result.set_result(found)
                return
        self._carry(calls.release_session(self._keys, found.session))

    def nothing(self, reply: AcceptedSession) -> AcceptedSession:
        return dataclasses.replace(reply, session=None, locked_until_ms=0)


class PartitionReceiver:
    """Receives from one queue (or sub-queue) in one broker, for everybody in this process who does.

    They stand in one line with one call under way: a message that comes costs a call or two, however many wait for it.
    What arrives for somebody who has left goes to the next in line, or back to the queue, uncounted. The client and the
    bell are the caller's, and one bell serves all queues of a broker.
    """

    def __init__(self, client: BrokerClient, bell: Bell, keys: QueueKeys) -> None:
        self.keys = keys
        self._client = client
        self._bell = bell
        self._lines: dict[SessionLock | None, _MessageLine] = {}
        self._next_session = _SessionLine(client, bell, keys, self._carry, lambda: None)
        self._carried: set[asyncio.Task[None]] = set()
        self._closed = False

    async def receive(
        self, *, most: int, lock_ms: int = QUEUES_LOCK, wait_s: float = 0.0, session: SessionLock | None = None
    ) -> Received:
        """Receive up to `most` messages (1..1000), waiting up to `wait_s` for the first; `runs` may be empty then.

        `lock_ms` 0 is receive-and-delete. Raises the broker's refusals; BrokerUnavailable where it was away at the end.
        """
        return await _awaited(self.want(most=most, lock_ms=lock_ms, session=session, patient=wait_s > 0), wait_s)

    async def accept_session(
        self, session_id: str | None = None, *, lock_ms: int = QUEUES_LOCK, wait_s: float = 0.0
    ) -> AcceptedSession:
        """Lock a session: the one named, at once (SessionCannotBeLocked), or the next that has something to receive.

        For the next one it waits up to `wait_s`; `session` is None where there was none. Errors as in `receive`.
        """
        if session_id is not None:
            return await self._accept(session_id, lock_ms)
        return await _awaited(self.want_session(lock_ms=lock_ms, patient=wait_s > 0), wait_s)

    def want(
        self, *, most: int, lock_ms: int = QUEUES_LOCK, session: SessionLock | None = None, patient: bool = True
    ) -> Want[Received]:
        """`receive` for those who wait at several brokers: the want's result, expiry and withdrawal are theirs."""
        line = self._lines.get(session)
        if line is None:
            line = _MessageLine(
                self._client, self._bell, self.keys, session, self._carry, lambda: self._line_ended(session)
            )
            self._lines[session] = line
        return self._joined(line, Want(line, most, lock_ms, patient=patient))

    def want_session(self, *, lock_ms: int = QUEUES_LOCK, patient: bool = True) -> Want[AcceptedSession]:
        """`accept_session` of the next one, for those who wait at several brokers."""
        return self._joined(self._next_session, Want(self._next_session, 1, lock_ms, patient=patient))

    async def close(self) -> None:
        """Send everybody away, and give back what is under way to them.

        What has not come within `limits.RECEIVER_CLOSE_S_MAX` is left to its locks' expiry.
        """
        self._closed = True
        lines: list[Line[Any]] = [*self._lines.values(), self._next_session]
        for line in lines:
            line.close()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limits.RECEIVER_CLOSE_S_MAX
        while (busy := {*(line.task for line in lines if line.task is not None), *self._carried}) and (
            loop.time() < deadline
        ):
            await asyncio.wait(busy, timeout=deadline - loop.time())
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)

    def _joined(self, line: Line[T], want: Want[T]) -> Want[T]:
        if self._closed:
            want.result.set_exception(BrokerUnavailable("the receiver is closed"))
        else:
            line.join(want)
        return want

    def _line_ended(self, session: SessionLock | None) -> None:
        if session is not None:  # there are many over time; the queue's own line may keep something
            del self._lines[session]

    async def _accept(self, session_id: str, lock_ms: int) -> AcceptedSession:
        call = calls.accept_session(self.keys, session_id, lock_ms=lock_ms)
        accepting = asyncio.ensure_future(self._client.call(call))
        try:
            return await asyncio.shield(accepting)
        except asyncio.CancelledError:
            self._in_background(self._release_when(accepting))
            raise

    async def _release_when(self, accepting: "asyncio.Future[AcceptedSession]") -> None:
        accepted = await accepting
        if accepted.session is not None:
            await self._client.call(calls.release_session(self.keys, accepted.session))

    def _carry(self, call: Call[Any]) -> None:
        self._in_background(self._client.call(call))

    def _in_background(self, work: Awaitable[Any]) -> None:
        """Do something that nobody waits for. Where it fails, the broker lets locks expire by themselves."""

        async def done() -> None:
            with contextlib.suppress(PartitionedQueueError):
                await work

        task = asyncio.create_task(done())
        self._carried.add(task)
        task.add_done_callback(self._carried.discard)


async def _awaited(want: Want[T], wait_s: float) -> T:
    late = asyncio.get_running_loop().call_later(wait_s, want.expire) if wait_s > 0 else None
    try:
        return await want.result
    except asyncio.CancelledError:
        want.withdraw()
        raise
    finally:
        if late is not None:
            late.cancel()
