"""Waiting for what a cluster brings about in its own time."""

import time
from collections.abc import Callable
from typing import Literal, TypeVar

T = TypeVar("T")


def eventually(holds: Callable[[], T | Literal[False] | None], words: str, seconds: float) -> T:
    """Wait until something holds, and give what it is; fails with the words."""
    deadline = time.monotonic() + seconds
    while not (value := holds()):
        assert time.monotonic() < deadline, words
        time.sleep(0.1)
    return value
