"""What a person who waits is told, on stderr; stdout belongs to what a shell evaluates."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def say(text: str) -> None:
    sys.stderr.write(f"cluster: {text}\n")
    sys.stderr.flush()


@contextmanager
def timed(text: str) -> Iterator[None]:
    """Say what begins, and how long it took if that was long enough to wonder."""
    say(f"{text} …")
    started = time.monotonic()
    yield
    seconds = time.monotonic() - started
    if seconds >= 2:
        say(f"{text}: {seconds:.0f} s")
