"""Waiting in line: those who want the same of one broker ask with one call, and are served in the order they came."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar

from partitionedqueue.broker.bell import Bell, Listening
from partitionedqueue.model import limits
from partitionedqueue.model.errors import BrokerUnavailable, TryAgain

T = TypeVar("T")
AT_ONCE: Final = 0.0


def seconds_until(ask_again_ms: int, now_ms: int) -> float:
    """How long asking again is pointless, by the broker's clock: AT_ONCE, or up to `limits.ASK_AGAIN_S_MAX`."""
    if ask_again_ms < 0:
        return limits.ASK_AGAIN_S_MAX
    return min(max(AT_ONCE, (ask_again_ms - now_ms) / 1000), limits.ASK_AGAIN_S_MAX)


class Want(Generic[T]):
    """What somebody waits for; `result` is done when it is there, or when it is refused.

    One that is not patient gets an empty result once it has been asked for and there was nothing, or BrokerUnavailable.
    """

    def __init__(self, line: "Line[T]", most: int, lock_ms: int, *, patient: bool) -> None:
        self.most = most
        self.lock_ms = lock_ms
        self.patient = patient
        self.result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._line = line

    def expire(self) -> None:
        """Be patient no longer."""
        if not self.result.done():
            self.patient = False
            self._line.hurry(self)

    def withdraw(self) -> None:
        """Want it no more. What has come goes to the next in line, or back: not to be called once it was used."""
        if self.result.cancel() or self.result.cancelled():
            return
        if self.result.exception() is None:
            self._line.hand_out(self.result.result(), self.lock_ms)


class Line(ABC, Generic[T]):
    """Those who want the same, in the order they came, with one call under way for all of them.

    While nothing is there it waits for the bell, or for the time that the broker gave. A broker that is away is asked
    again, ever less often; who is patient does not hear of it.
    """

    def __init__(self, bell: Bell, channel: str, ended: Callable[[], None]) -> None:
        self._bell = bell
        self._channel = channel
        self._ended = ended
        self._wants: list[Want[T]] = []
        self._live = 0
        self._rang = asyncio.Event()
        self._known: T | Exception | None = None  # what the last call said, as long as it stands
        self._delay_s = limits.RECONNECT_DELAY_S_MIN
        self.task: asyncio.Task[None] | None = None

    @abstractmethod
    async def ask(self, wants: Sequence[Want[T]]) -> tuple[T, float]:
        """Ask for those in front and hand out what comes; gives the reply, and how long asking again is pointless."""

    @abstractmethod
    def hand_out(self, found: T, lock_ms: int) -> None:
        """Give what was found to those who want it under such a lock; what nobody wants goes back."""

    @abstractmethod
    def nothing(self, reply: T) -> T:
        """The reply to somebody for whom there was nothing."""

    def concerns(self, payload: bytes) -> bool:
        """Whether what was published may be for those who wait here."""
        return True

    def join(self, want: Want[T]) -> None:
        """Stand in line."""
        self._wants.append(want)
        self._live += 1
        want.result.add_done_callback(self._left)
        if not want.patient:
            self._rang.set()  # it must be asked for: its caller may know of a message that we have not heard of yet
        if self.task is None:
            self.task = asyncio.create_task(self._work())

    def hurry(self, want: Want[T]) -> None:
        """Somebody in line is patient no longer."""
        if self._known is not None and not self._rang.is_set():
            self._tell(want, self._known)
        else:
            self._rang.set()

    def close(self) -> None:
        """Send everybody away."""
        for want in self.waiting():
            want.result.set_exception(BrokerUnavailable("the receiver was closed"))

    def waiting(self) -> list[Want[T]]:
        """Those who still wait, in order."""
        return [want for want in self._wants if not want.result.done()]

    def _left(self, _result: "asyncio.Future[T]") -> None:
        self._live -= 1
        if not self._live:
            self._rang.set()

    def _rung(self, payload: bytes | None) -> None:
        if payload is None or self.concerns(payload):
            self._rang.set()

    async def _work(self) -> None:
        listening: Listening | None = None
        try:
            while wants := self.waiting():
                self._wants = wants
                if listening is None and any(want.patient for want in wants):
                    listening = self._bell.listen(self._channel, self._rung)
                    if not listening.in_effect:
                        await self._rung_or_after(limits.BELL_BEGIN_S_MAX)
                        continue
                self._rang.clear()  # what is rung from here on may be news to the call
                pause_s = await self._ask(tuple(wants))
                if listening is not None:
                    pause_s = pause_s if listening.in_effect else min(pause_s, limits.UNHEARD_ASK_S)
                    await self._rung_or_after(pause_s)
                self._known = None
        finally:
            self.task = None
            self._known = None
            if listening is not None:
                listening.end()
            self._ended()

    async def _rung_or_after(self, pause_s: float) -> None:
        if pause_s > AT_ONCE and not self._rang.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._rang.wait()

    async def _ask(self, wants: Sequence[Want[T]]) -> float:
        try:
            reply, pause_s = await self.ask(wants)
        except (BrokerUnavailable, TryAgain) as error:
            self._known = error
            self._tell_the_impatient(wants, error)
            delay_s, self._delay_s = self._delay_s, min(self._delay_s * 2, limits.RECONNECT_DELAY_S_MAX)
            return delay_s
        except Exception as error:  # noqa: BLE001 -- whoever was asked for is told
            for want in wants:
                if want.lock_ms == wants[0].lock_ms:
                    self._tell(want, error)
            return AT_ONCE
        self._delay_s = limits.RECONNECT_DELAY_S_MIN
        if pause_s > AT_ONCE:
            self._known = reply
            self._tell_the_impatient(wants, reply)
        return pause_s

    def _tell_the_impatient(self, wants: Iterable[Want[T]], what: T | Exception) -> None:
        for want in wants:
            if not want.patient:
                self._tell(want, what)

    def _tell(self, want: Want[T], what: T | Exception) -> None:
        if want.result.done():
            return
        if isinstance(what, Exception):
            want.result.set_exception(what)
        else:
            want.result.set_result(self.nothing(what))
