"""The bell of a real broker: who hears what, and what happens when the connection goes."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from harness.redis_servers import Broker
from partitionedqueue.broker.bell import Bell, Listening
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.logins import Credentials, fixed
from partitionedqueue.model import limits

CHANNEL = "pq:q:wake"


async def until(what: Callable[[], object], *, seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not what():  # noqa: ASYNC110 -- somebody else's event loop or process decides
            await asyncio.sleep(0.01)


class Ears:
    """Listens, and notes what it heard."""

    def __init__(self, bell: Bell, channel: str = CHANNEL) -> None:
        self.heard: list[bytes | None] = []
        self.listening: Listening = bell.listen(channel, self.heard.append)

    async def begun(self) -> None:
        await until(lambda: self.listening.in_effect)
        self.heard.clear()


def publish(server: Broker, payload: str, channel: str = CHANNEL) -> int:
    """Gives how many connections heard it."""
    with contextlib.closing(server.connect()) as connection:
        return int(connection.publish(channel, payload))


def channels(server: Broker) -> list[str]:
    with contextlib.closing(server.connect()) as connection:
        return [name.decode() if isinstance(name, bytes) else name for name in connection.pubsub_channels()]


async def test_everybody_who_listens_to_a_channel_hears_it_over_one_connection(server: Broker, bell: Bell) -> None:
    first, second, other = Ears(bell), Ears(bell), Ears(bell, "pq:other:wake")
    for ears in (first, second, other):
        await ears.begun()
    assert publish(server, "session") == 1
    await until(lambda: first.heard)
    assert (first.heard, second.heard, other.heard) == ([b"session"], [b"session"], [])
    first.listening.end()
    publish(server, "")
    await until(lambda: len(second.heard) == 2)
    assert first.heard == [b"session"]


async def test_who_begins_to_listen_is_rung_once_that_is_in_effect(bell: Bell) -> None:
    ears = Ears(bell)
    begun = [ears.listening.in_effect]
    await until(lambda: ears.heard)
    assert ears.heard == [None]
    assert [*begun, ears.listening.in_effect] == [False, True]


async def test_everybody_is_rung_when_the_broker_is_killed_and_when_it_is_back(server: Broker, bell: Bell) -> None:
    first, other = Ears(bell), Ears(bell, "pq:other:wake")
    await first.begun()
    await other.begun()
    await asyncio.to_thread(server.kill)
    await until(lambda: first.heard and other.heard)
    assert (first.heard, first.listening.in_effect) == ([None], False)
    await asyncio.to_thread(server.start)
    await until(lambda: first.listening.in_effect and other.listening.in_effect)
    assert (first.heard, other.heard) == ([None, None], [None, None])
    publish(server, "again")
    await until(lambda: first.heard[2:])
    assert first.heard[2:] == [b"again"]


async def test_a_broker_that_hangs_is_taken_for_gone(
    server: Broker, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BELL_PING_S", 0.1)
    ears = Ears(bell)
    await ears.begun()
    await asyncio.sleep(0.5)
    assert ears.heard == [], "pings are answered"
    server.pause()
    try:
        await until(lambda: ears.heard)
    finally:
        server.resume()
    await until(lambda: len(ears.heard) == 2)
    assert ears.listening.in_effect


async def test_a_channel_is_kept_for_a_while_and_the_connection_goes_with_the_last(
    server: Broker, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BELL_LINGER_S", 0.3)
    first, other = Ears(bell), Ears(bell, "pq:other:wake")
    await first.begun()
    await other.begun()
    first.listening.end()
    first.listening.end()
    again = Ears(bell)
    assert again.listening.in_effect, "it was kept"
    again.listening.end()
    await until(lambda: channels(server) == ["pq:other:wake"])
    other.listening.end()
    await until(lambda: channels(server) == [])
    back = Ears(bell)
    await back.begun()
    publish(server, "x")
    await until(lambda: back.heard)


async def test_a_bell_gives_its_password_and_waits_where_it_is_wrong(server: Broker) -> None:
    with BlockingBroker(server.address) as broker:
        broker.raw(("CONFIG", "SET", "requirepass", "secret"), ("AUTH", "default", "secret"))
        right, wrong = Bell(server.address, login=fixed("secret")), Bell(server.address, login=fixed("wrong"))
        ears, deaf = Ears(right), Ears(wrong)
        await ears.begun()
        await asyncio.sleep(0.3)
        assert (deaf.listening.in_effect, deaf.heard) == (False, [])
        broker.raw(("CONFIG", "SET", "requirepass", "wrong"))
        await until(lambda: deaf.listening.in_effect)
        await right.close()
        await wrong.close()


async def test_a_bell_says_which_password_was_refused(server: Broker) -> None:
    async def login(refused: Credentials | None) -> Credentials:
        return Credentials("default", "secret" if refused == Credentials("default", "old") else "old")

    with BlockingBroker(server.address) as broker:
        broker.raw(("CONFIG", "SET", "requirepass", "secret"), ("AUTH", "default", "secret"))
        bell = Bell(server.address, login=login)
        ears = Ears(bell)
        await ears.begun()
        await bell.close()


async def test_nobody_is_rung_after_the_bell_was_closed(server: Broker) -> None:
    bell = Bell(server.address)
    ears = Ears(bell)
    await ears.begun()
    await bell.close()
    assert not ears.listening.in_effect
    assert publish(server, "x") == 0
    ears.listening.end()
    assert ears.heard == []
