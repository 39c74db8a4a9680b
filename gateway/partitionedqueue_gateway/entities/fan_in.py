"""Asking many partitions for what some want together: never for more than is wanted, and none that has nothing.

What is known of each partition is its standing. Partitions that are worth asking stand in line, and whoever was asked
goes to its end. The bell of a partition, the time that its last reply named, or its coming back make it worth asking
again; so waiting costs nothing. Where more partitions might have something than may be asked, because asking locks what
it finds, they are looked into first, which locks nothing.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import partial
from typing import Final

from partitionedqueue.broker.bell import Listening
from partitionedqueue.broker.waiting import AT_ONCE
from partitionedqueue.model import limits as core_limits
from partitionedqueue.model.errors import (
    BrokerUnavailable,
    EntityDisabled,
    PartitionedQueueError,
    SessionLockLost,
    SessionRequired,
    SessionsNotSupported,
)
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.background import Background
from partitionedqueue_gateway.entities.brokers import QueueBrokers

_CONCERNS_ALL: Final = (EntityDisabled, SessionRequired, SessionsNotSupported, SessionLockLost)
_log = logging.getLogger(__name__)


class Standing(Enum):
    """What is known of a partition."""

    UNKNOWN = auto()
    READY = auto()
    EMPTY = auto()
    DOWN = auto()


class Source:
    """One partition, as those see it who want something of it."""

    __slots__ = ("again_s", "asked", "asked_s", "busy", "delay_s", "hope", "listening", "number", "rung", "standing",
                 "timer")  # fmt: skip

    def __init__(self, number: int) -> None:
        self.number = number
        self.standing = Standing.UNKNOWN
        self.hope = 1  # messages that it may well have
        self.busy = False  # being asked, or looked into
        self.asked = 0  # messages that it may lock and that are counted on
        self.asked_s = 0.0
        self.rung = False  # while busy
        self.again_s = 0.0  # when it is worth asking though it has not rung
        self.delay_s = core_limits.RECONNECT_DELAY_S_MIN
        self.listening: Listening | None = None
        self.timer: asyncio.TimerHandle | None = None


class FanIn(ABC):
    """The asking. What is wanted, how to ask, and for whom, is for those who derive from it to say."""

    ask_most = core_limits.RECEIVE_MESSAGES_MAX
    """At once, of one partition."""

    def __init__(self, brokers: QueueBrokers, channel: str, partitions: Sequence[int], background: Background) -> None:
        self._brokers = brokers
        self._channel = channel
        self._background = background
        self._loop = asyncio.get_running_loop()
        self._sources = [Source(number) for number in partitions]
        self._worth: dict[Source, None] = dict.fromkeys(self._sources)  # not busy, and UNKNOWN or READY; in turn
        self._under_way = 0
        self._pumping = False
        self._watch: asyncio.TimerHandle | None = None
        self._lingering: asyncio.TimerHandle | None = None
        self._drains: dict[asyncio.Future[None], Callable[[], bool]] = {}

    # ---- for those who derive

    @property
    @abstractmethod
    def wanted(self) -> int:
        """How much may still be handed out."""

    @abstractmethod
    async def ask(self, source: Source, most: int) -> tuple[int, float]:
        """Ask for up to `most`, and hand out what comes; gives how many came, and how long asking is pointless."""

    @abstractmethod
    async def look(self, source: Source) -> tuple[int, float]:
        """Look how many there are without taking any; otherwise as `ask`."""

    @abstractmethod
    def refused(self, error: PartitionedQueueError) -> None:
        """A refusal that all partitions would give: whoever wants something is told."""

    def concerns(self, payload: bytes) -> bool:
        """Whether what was published may be for those who wait here."""
        return True

    # ---- for those who want

    def begin(self) -> None:
        """Somebody is going to want something: listen."""
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None
        if not self.is_listening:
            for source in self._sources:
                rung = partial(self._rung, source)
                source.listening = self._brokers.bell(source.number).listen(self._channel, rung)

    @property
    def is_listening(self) -> bool:
        """Between `begin` and `end`."""
        return self._sources[0].listening is not None

    def linger(self) -> None:
        """Nobody is going to want anything, for the time being."""
        if self._lingering is None:
            self._lingering = self._loop.call_later(limits.LINGER_S, self.end)

    def end(self) -> None:
        """Listen no more; what was known is forgotten."""
        for timer in (self._lingering, self._watch, *(source.timer for source in self._sources)):
            if timer is not None:
                timer.cancel()
        self._lingering = self._watch = None
        for source in self._sources:
            source.timer = None
            if source.listening is not None:
                source.listening.end()
                source.listening = None
            self._stand(source, Standing.UNKNOWN)

    def pump_soon(self) -> None:
        """What is wanted has changed: ask once this turn of the loop has ended."""
        if not self._pumping:
            self._pumping = True
            self._loop.call_soon(self._pump)

    async def drained(self, enough: Callable[[], bool]) -> None:
        """Wait until every partition that answers has been asked from now on, or there is enough."""
        for source in self._sources:
            if source.standing is Standing.EMPTY:
                self._stand(source, Standing.UNKNOWN)
            source.rung = source.rung or source.busy
        quiet: asyncio.Future[None] = self._loop.create_future()
        self._drains[quiet] = enough
        self.pump_soon()
        try:
            async with asyncio.timeout(limits.FAN_IN_DRAIN_S_MAX):
                await quiet
        except TimeoutError:
            pass
        finally:
            del self._drains[quiet]

    @property
    def all_down(self) -> bool:
        """Whether no partition answers."""
        return all(source.standing is Standing.DOWN for source in self._sources)

    # ---- asking

    def _pump(self) -> None:
        self._pumping = False
        free = self.wanted - self._under_way
        if free > 0 and self._worth:
            asked = [*self._worth]
            if free < len(asked):
                for source in asked:
                    if source.standing is Standing.UNKNOWN:
                        self._start(source, 0)
                asked = [*self._worth]
            fair = -(-free // len(asked)) if asked else 0
            for source in asked:
                most = min(free, max(fair, min(source.hope, limits.SHARE_MIN)), self.ask_most)
                self._start(source, most)
                free -= most
                if not free:
                    break
        if self._drains:
            quiet = self.wanted <= self._under_way == 0 or not (
                self._worth or any(map(self._will_answer, self._sources))
            )
            for drain, enough in self._drains.items():
                if not drain.done() and (quiet or enough()):
                    drain.set_result(None)

    def _will_answer(self, source: Source) -> bool:
        """Whether a partition is being asked, and neither failed the last time nor has been long in answering."""
        healthy = source.delay_s == core_limits.RECONNECT_DELAY_S_MIN
        return source.busy and healthy and self._loop.time() - source.asked_s < limits.SLOW_ASK_S

    def _start(self, source: Source, most: int) -> None:
        """Ask a partition for so many, or (0) look into it."""
        del self._worth[source]
        source.busy, source.rung, source.asked, source.asked_s = True, False, most, self._loop.time()
        self._under_way += most
        if self._watch is None and most:
            self._watch = self._loop.call_later(limits.SLOW_ASK_S / 2, self._look_at_the_slow)
        self._background.start(self._work(source, most))

    async def _work(self, source: Source, most: int) -> None:
        standing = Standing.DOWN
        try:
            count, pause_s = await (self.ask(source, most) if most else self.look(source))
            standing = self._standing_after(source, count, most, pause_s)
        except _CONCERNS_ALL as error:
            source.again_s = self._loop.time() + source.delay_s
            self.refused(error)
        except PartitionedQueueError as error:
            self._rest(source, error)
        finally:  # a defect is logged by whoever owns the task, and rests like any failure
            if standing is Standing.DOWN:
                source.again_s = max(source.again_s, self._loop.time() + source.delay_s)
            self._under_way -= source.asked
            source.asked, source.busy = 0, False
            self._stand(source, standing)
            self.pump_soon()

    def _standing_after(self, source: Source, count: int, most: int, pause_s: float) -> Standing:
        source.delay_s = core_limits.RECONNECT_DELAY_S_MIN
        if source.listening is None:
            return Standing.UNKNOWN  # nobody listens any more: what is known is old at once
        if (pause_s <= AT_ONCE or source.rung) if most else count:
            source.hope = max(1, 2 * count if most else count)
            return Standing.READY
        if source.rung:
            return Standing.UNKNOWN
        if not source.listening.in_effect:
            pause_s = min(pause_s, core_limits.UNHEARD_ASK_S)
        source.again_s = self._loop.time() + max(pause_s, core_limits.SWEEP_S_MIN)
        return Standing.EMPTY

    def _rest(self, source: Source, error: PartitionedQueueError) -> None:
        if not isinstance(error, BrokerUnavailable) and source.delay_s == core_limits.RECONNECT_DELAY_S_MIN:
            _log.warning("partition %d of %s: %s", source.number, self._channel, error)
        source.again_s = self._loop.time() + source.delay_s
        source.delay_s = min(source.delay_s * 2, core_limits.RECONNECT_DELAY_S_MAX)

    def _stand(self, source: Source, standing: Standing) -> None:
        source.standing = standing
        if source.busy:
            return
        if standing in {Standing.UNKNOWN, Standing.READY}:
            self._worth.setdefault(source)
            return
        self._worth.pop(source, None)
        if source.timer is None or source.timer.when() > source.again_s:
            if source.timer is not None:
                source.timer.cancel()
            source.timer = self._loop.call_at(source.again_s, self._again, source)

    def _again(self, source: Source) -> None:
        source.timer = None
        if source.busy or source.standing in {Standing.UNKNOWN, Standing.READY}:
            return
        if source.again_s > self._loop.time():
            source.timer = self._loop.call_at(source.again_s, self._again, source)
            return
        self._stand(source, Standing.UNKNOWN)
        self.pump_soon()

    def _rung(self, source: Source, payload: bytes | None) -> None:
        if payload is not None and not self.concerns(payload):
            return
        if source.busy:
            source.rung = True
            return
        if payload is None:
            self._stand(source, Standing.UNKNOWN)
        else:
            source.hope = 1
            self._stand(source, Standing.READY)
        if self.wanted > 0:
            self.pump_soon()

    def _look_at_the_slow(self) -> None:
        """What a partition does not answer is not counted on: others may be asked for it."""
        self._watch = None
        before = self._loop.time() - limits.SLOW_ASK_S
        for source in self._sources:
            if source.asked and source.asked_s < before:
                self._under_way -= source.asked
                source.asked = 0
        if self._under_way:
            self._watch = self._loop.call_later(limits.SLOW_ASK_S / 2, self._look_at_the_slow)
        self.pump_soon()
