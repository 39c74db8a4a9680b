"""A broker whose clock the test sets: the real server and the real library, one reading of the time replaced.

The library reads the clock in one place. For tests that reading becomes a reading of a key, where the key is there;
a broker without it goes by its own time.
"""

from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.library import library_text

CLOCK_KEY = "clock of the test"
START_MS = 1_800_000_000_000  # 2027; nothing depends on it

_READING = "local t = call('TIME')"
_INSTEAD = f"local t = call('EXISTS', '{CLOCK_KEY}') == 1 and call('HMGET', '{CLOCK_KEY}', 's', 'us') or call('TIME')"


def clocked_library(text: str | None = None) -> str:
    """The library, today's or that of `text`, with its one reading of the clock replaced."""
    text = library_text() if text is None else text
    assert text.count(_READING) == 1, (
        "the library reads its clock in another place, or in other words, than this expects"
    )
    return text.replace(_READING, _INSTEAD)


class Clock:
    """The broker's clock: it stands still until it is moved."""

    def __init__(self, broker: BlockingBroker, now_ms: int = START_MS) -> None:
        self._broker = broker
        self.now_ms = now_ms
        self.set(now_ms)

    def set(self, now_ms: int) -> None:
        """Set it, backwards too. Microseconds are set as well: they must not matter."""
        self.now_ms = now_ms
        self._broker.raw(("HSET", CLOCK_KEY, "s", now_ms // 1000, "us", now_ms % 1000 * 1000 + 789))

    def advance(self, ms: int) -> int:
        """Let time pass; gives the new time."""
        self.set(self.now_ms + ms)
        return self.now_ms
