"""What the demo shows while it works, and remembers for its picture."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

SECONDS_BETWEEN_SAMPLES = 0.2
SECONDS_BETWEEN_LINES = 1.0
SECONDS_OF_SILENCE_MAX = 10.0  # where nothing changes, as while Spark is on its first batch


class Sample(NamedTuple):
    """Where things stood at one moment; seconds since the first message."""

    at_s: float
    acknowledged: int
    consumed: int


class Progress:
    """One line that stays in its place on a terminal, one line a second elsewhere."""

    def __init__(self, messages: int, acknowledged: Callable[[], int], consumed: Callable[[], int]) -> None:
        self.samples: list[Sample] = []
        self.kills_s: list[float] = []
        self._messages = messages
        self._acknowledged = acknowledged
        self._consumed = consumed
        self._started = time.monotonic()
        self._line_is_open = False
        self._shown = Sample(0.0, 0, 0)

    def start(self) -> None:
        """The first message leaves now."""
        self._started = time.monotonic()
        self._shown = Sample(0.0, self._acknowledged(), self._consumed())
        self.samples = [self._shown]

    @property
    def elapsed_s(self) -> float:
        """Since the first message."""
        return time.monotonic() - self._started

    async def show(self) -> None:
        """Show until cancelled."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_SAMPLES)
            now = self._sample()
            news = (now.acknowledged, now.consumed) != (self._shown.acknowledged, self._shown.consumed)
            since_s = now.at_s - self._shown.at_s
            restless = news or sys.stdout.isatty() or since_s >= SECONDS_OF_SILENCE_MAX
            if since_s >= SECONDS_BETWEEN_LINES and restless:
                self.show_now()

    def _sample(self) -> Sample:
        self.samples.append(Sample(self.elapsed_s, self._acknowledged(), self._consumed()))
        return self.samples[-1]

    def show_now(self) -> None:
        """Show how things stand, and the rates since they were shown last."""
        before, now = self._shown, self._sample()
        self._shown = now
        seconds = max(now.at_s - before.at_s, 1e-3)
        rate_out = (now.consumed - before.consumed) / seconds
        self._show(
            f"{now.at_s:5.0f} s   in {now.acknowledged:>9,} of {self._messages:,}"
            f"  {(now.acknowledged - before.acknowledged) / seconds:>9,.0f}/s"
            + (
                f"   out {now.consumed:>9,}  {rate_out:>9,.0f}/s"
                if now.consumed
                else "   out: Spark is on its first batch"
            )
        )

    def _show(self, text: str) -> None:
        if sys.stdout.isatty():
            print(f"\r\x1b[K{text}", end="", flush=True)
            self._line_is_open = True
        else:
            print(text, flush=True)

    def say(self, text: str) -> None:
        """A line of its own."""
        if self._line_is_open:
            print()
            self._line_is_open = False
        print(text, flush=True)
