"""Two event loops: one for the work, one for what must be in time however much work there is; and how late one is.

All queues are looked after in one loop. With hundreds of them on a processor that others use too, a turn of it takes
seconds: a Lease that is renewed there is lost, and who begins anew with everything has more to do still.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

BEAT_S: Final = 0.25
BEATS_KEPT: Final = 240  # a minute's, where they are in time
LATE_S: Final = 1.0
"""A loop that is later than this proves nothing by what it has not heard in time."""
_END_S_MAX: Final = 10.0


@contextmanager
def another_loop(name: str) -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=name, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_END_S_MAX)
        if not thread.is_alive():
            loop.close()


async def done_in(loop: asyncio.AbstractEventLoop, work: Callable[[], Awaitable[None]]) -> None:
    """Do the work in another thread's event loop, and wait for it here. Raises what the work raises.

    To cancel this is to cancel the work; and it ends when the work has ended, so that nothing of it goes on unseen.
    """
    here = asyncio.get_running_loop()
    ended: asyncio.Future[None] = here.create_future()
    tasks: list[asyncio.Task[None]] = []

    async def do() -> None:
        await work()

    def begin() -> None:
        tasks.append(loop.create_task(do()))
        tasks[0].add_done_callback(lambda done: here.call_soon_threadsafe(_settle, ended, done))

    loop.call_soon_threadsafe(begin)
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError:
        loop.call_soon_threadsafe(lambda: tasks[0].cancel())  # noqa: PLW0108 -- by then there is one
        await asyncio.wait({ended})
        raise
    finally:
        if ended.done() and not ended.cancelled():
            ended.exception()  # whoever has cancelled this does not ask for it


def _settle(ended: "asyncio.Future[None]", done: "asyncio.Task[None]") -> None:
    if done.cancelled():
        ended.cancel()
    elif error := done.exception():
        ended.set_exception(error)
    else:
        ended.set_result(None)


class Pulse:
    """How late an event loop is: it beats there, and is felt from any thread."""

    def __init__(self) -> None:
        self._due = 0.0  # the beat that has not come yet; 0 before the first
        self._late: deque[tuple[float, float]] = deque(maxlen=BEATS_KEPT)  # beats: when each came, how late

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._due = time.monotonic() + BEAT_S
            await asyncio.sleep(BEAT_S)
            now = time.monotonic()
            self._late.append((now, now - self._due))

    def late_s(self, since: float = 0.0) -> float:
        """How late the latest beat was since then (time.monotonic), the one that is due now among them."""
        overdue = time.monotonic() - self._due if self._due else 0.0
        return max(0.0, overdue, *(late for at, late in tuple(self._late) if at >= since))
