"""Two event loops in two threads: work goes from one to the other, its end and its errors come back."""

import asyncio
import threading
import time

import pytest

from partitionedqueue_operator.loops import BEAT_S, Pulse, another_loop, done_in


async def test_work_is_done_in_the_other_thread_and_its_error_comes_back() -> None:
    there: list[int] = []

    async def work() -> None:
        there.append(threading.get_ident())
        await asyncio.sleep(0)
        raise LookupError("lost")

    with another_loop("other") as other, pytest.raises(LookupError, match="lost"):
        await done_in(other, work)
    assert there
    assert there[0] != threading.get_ident()


async def test_who_is_cancelled_waits_until_the_work_has_ended() -> None:
    begun, ended = threading.Event(), threading.Event()

    async def work() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.2)
            ended.set()

    with another_loop("other") as other:
        waiting = asyncio.create_task(done_in(other, work))
        while not begun.is_set():  # noqa: ASYNC110 -- it is set in another thread
            await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled()
        assert ended.is_set()


async def test_work_that_is_cancelled_before_it_begins_ends_as_well() -> None:
    with another_loop("other") as other:
        waiting = asyncio.create_task(done_in(other, asyncio.Event().wait))  # type: ignore[arg-type] # it never ends
        await asyncio.sleep(0)
        waiting.cancel()
        async with asyncio.timeout(5):
            await asyncio.wait({waiting})
        assert waiting.cancelled()


async def test_what_comes_and_goes_between_two_loops_is_cancelled_through_both() -> None:
    """As the Lease does: it waits in its own loop for work that is done in the first one."""
    here, begun, ended = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    with another_loop("other") as other:
        waiting = asyncio.create_task(done_in(other, lambda: done_in(here, work)))
        await begun.wait()
        waiting.cancel()
        await asyncio.wait({waiting})
        assert ended.is_set()


async def test_the_other_loop_goes_on_while_this_one_is_stuck() -> None:
    beats: list[float] = []

    async def beat() -> None:
        while True:
            beats.append(time.monotonic())
            await asyncio.sleep(0.02)

    with another_loop("other") as other:
        waiting = asyncio.create_task(done_in(other, beat))
        await asyncio.sleep(0.05)
        before = len(beats)
        time.sleep(0.5)  # noqa: ASYNC251 -- nothing else happens in this loop
        assert len(beats) > before + 5
        waiting.cancel()
        await asyncio.wait({waiting})


async def test_a_pulse_tells_how_late_a_loop_is_and_from_when_on() -> None:
    pulse = Pulse()
    assert pulse.late_s() == 0
    beating = asyncio.create_task(pulse.run())
    await asyncio.sleep(2 * BEAT_S)
    time.sleep(3 * BEAT_S)  # noqa: ASYNC251 -- what is to be noticed
    assert pulse.late_s(time.monotonic()) > BEAT_S  # not over yet
    await asyncio.sleep(0.01)
    after = time.monotonic()
    assert pulse.late_s() > BEAT_S
    await asyncio.sleep(2 * BEAT_S)
    assert pulse.late_s(after) < BEAT_S
    beating.cancel()
