"""Receivers that wait: they listen, ask, and ask again when woken or when the broker said. Do they miss anything?"""

from collections.abc import Callable
from dataclasses import dataclass

from harness.message_life import DEAD_LETTERS, ROOT
from harness.redis_servers import Broker
from harness.side_by_side import SideBySide
from partitionedqueue.broker import calls
from partitionedqueue.model.lifecycle import State


class Ear:
    """Listens to some channels."""

    def __init__(self, server: Broker, *channels: str) -> None:
        self._client = server.connect()
        self._heard = self._client.pubsub()  # type: ignore[no-untyped-call]  # redis-py's
        self._heard.subscribe(*channels)

    def heard(self) -> list[tuple[str, str]]:
        """Channel and words of all that was published by now: a ping comes back behind it."""
        found: list[tuple[str, str]] = []
        self._heard.ping()
        while True:
            message = self._heard.get_message(timeout=5.0)
            assert message is not None, "the broker does not answer"
            if message["type"] == "pong":
                return found
            if message["type"] == "message":
                found.append((message["channel"].decode(), message["data"].decode()))

    def close(self) -> None:
        self._heard.close()
        self._client.close()


@dataclass
class Waiter:
    """Waits since it found nothing; until then it asks by itself (-1: it waits to be woken)."""

    until_ms: int


class Waiting:
    """Those who wait for a queue, its dead letters, its next session, or in a session of theirs."""

    def __init__(self, both: SideBySide, server: Broker) -> None:
        self._both = both
        self._channels = {both.keys[path].wake: path for path in (ROOT, DEAD_LETTERS)}
        self._ear = Ear(server, *self._channels)
        self._waiters: dict[tuple[str, str], Waiter] = {}

    def close(self) -> None:
        self._ear.close()

    def _wants(self) -> dict[tuple[str, str], Callable[[], bool]]:
        """Who may wait, by path and session ('*': the next one), and whether there is something for them."""
        model = self._both.model

        def something(path: str, session: str) -> Callable[[], bool]:
            return lambda: any(kept.session == session for kept in model.queues[path].of(State.READY))

        wants = {(DEAD_LETTERS, ""): something(DEAD_LETTERS, "")}
        if not model.settings.sessions:
            return wants | {(ROOT, ""): something(ROOT, "")}
        wants[ROOT, "*"] = lambda: bool(model.acceptable_sessions())
        return wants | {(ROOT, name): something(ROOT, name) for name, held in model.sessions.items() if held.lock}

    def look(self) -> None:
        """After a command, when all due work is done: whoever has something to receive was woken, or asks by now."""
        rung = [(self._channels[channel], words) for channel, words in self._ear.heard()]
        now_ms, wants = self._both.clock.now_ms, self._wants()
        for who, has_something in wants.items():
            path, session = who
            waiter = self._waiters.get(who)
            woken = any(path == where and (session in {"", "*", words} or words == "") for where, words in rung)
            asks = waiter is None or woken or 0 <= waiter.until_ms <= now_ms
            assert asks or not has_something(), f"nobody woke who waits for {who}"
            if has_something():
                self._waiters.pop(who, None)
            elif asks:
                self._waiters[who] = Waiter(self._both.broker.call(calls.next_due(self._both.keys[path])))
        for gone in set(self._waiters) - set(wants):
            del self._waiters[gone]
