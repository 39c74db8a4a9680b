"""Queues that are due: each by one worker, again after trouble, never forgotten."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from partitionedqueue_operator.observed import Key
from partitionedqueue_operator.work import Work

A, B = Key("n", "a"), Key("n", "b")


@contextlib.asynccontextmanager
async def working(do: Callable[[Key], Awaitable[float | None]]) -> AsyncIterator[Work]:
    work = Work(do)
    running = asyncio.create_task(work.run())
    yield work
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 -- what is waited for tells nobody
            await asyncio.sleep(0.01)


async def test_a_key_that_is_added_twice_is_worked_on_once() -> None:
    done: list[Key] = []

    async def do(key: Key) -> None:
        done.append(key)

    async with working(do) as work:
        for key in (A, A, B):
            work.add(key)
        await until(lambda: len(done) == 2)
        await asyncio.sleep(0.05)
    assert sorted(done) == [A, B]


async def test_a_key_that_is_added_while_it_is_worked_on_is_worked_on_once_more_and_never_twice_at_once() -> None:
    running, most, done = 0, 0, 0
    free = asyncio.Event()

    async def do(_key: Key) -> None:
        nonlocal running, most, done
        running += 1
        most = max(most, running)
        await free.wait()
        running -= 1
        done += 1

    async with working(do) as work:
        work.add(A)
        await until(lambda: running == 1)
        for _ in range(5):
            work.add(A)
        free.set()
        await until(lambda: done == 2)
        await asyncio.sleep(0.05)
    assert (most, done) == (1, 2)


async def test_what_fails_is_tried_again_and_holds_nobody_else_up() -> None:
    tries: list[Key] = []

    async def do(key: Key) -> None:
        tries.append(key)
        if key == A and tries.count(A) < 3:
            raise OSError("not now")

    async with working(do) as work:
        work.add(A)
        work.add(B)
        await until(lambda: tries.count(A) == 3)
        assert work.failed == 2
    assert tries.count(B) == 1


async def test_a_queue_may_ask_to_be_looked_at_again() -> None:
    looks = 0

    async def do(_key: Key) -> float | None:
        nonlocal looks
        looks += 1
        return 0.05 if looks == 1 else None

    async with working(do) as work:
        work.add(A)
        await until(lambda: looks == 2)
        await asyncio.sleep(0.1)
    assert looks == 2


async def test_the_sooner_of_two_times_holds() -> None:
    looks = 0

    async def do(_key: Key) -> None:
        nonlocal looks
        looks += 1

    async with working(do) as work:
        work.add(A, after_s=60)
        work.add(A, after_s=0.02)
        work.add(A, after_s=30)
        await until(lambda: looks == 1)
        await asyncio.sleep(0.1)
    assert looks == 1


async def test_a_fault_of_the_program_is_logged_with_where_it_was_and_once(caplog: pytest.LogCaptureFixture) -> None:
    tries = 0

    async def do(_: Key) -> None:
        nonlocal tries
        tries += 1
        raise LookupError("nobody has thought of this") if tries < 3 else OSError("away")

    work = Work(do, expected=OSError)
    for _ in range(3):
        await work._once(A)
    assert [record.levelname for record in caplog.records if record.exc_info] == ["ERROR"]
