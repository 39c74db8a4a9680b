"""When something is to be said to a peer, or to be thought of one that says nothing."""

from enum import Enum
from typing import Final

from partitionedqueue_gateway.limits import AMQP_CLOSE_S_MAX, AMQP_GREETING_S_MAX

_SILENCES: Final = 2
"""How many of the idle time-outs that a peer was told of pass until it is taken for gone (§2.4.5 advises this)."""


class Due(Enum):
    """What the time has come for."""

    KEEP_ALIVE = "keep alive"
    NOT_OPENED = "not opened"
    SILENT = "silent"
    NOT_CLOSED = "not closed"


class Timers:
    """Of one connection; times in seconds, of the application's clock."""

    def __init__(self, now_s: float, idle_timeout_ms: int) -> None:
        self.heard_s = now_s
        """When the peer last said something."""
        self._silent_s = _SILENCES * idle_timeout_ms / 1000
        self._every_s = 0.0
        self._due: dict[Due, float] = {Due.NOT_OPENED: now_s + AMQP_GREETING_S_MAX}

    def opened(self, keep_alive_s: float) -> None:
        """From now on the peer is to hear of us so often (0: needs not), and we of it."""
        del self._due[Due.NOT_OPENED]
        self._every_s = keep_alive_s
        if keep_alive_s:
            self._due[Due.KEEP_ALIVE] = self.heard_s + keep_alive_s
        if self._silent_s:
            self._due[Due.SILENT] = self.heard_s + self._silent_s

    def closing(self) -> None:
        """We have sent our close; nothing else matters any more."""
        self._due = {Due.NOT_CLOSED: self.heard_s + AMQP_CLOSE_S_MAX}

    def due(self, now_s: float) -> list[Due]:
        """What the time has come for; each once, but keep-alives again and again."""
        if Due.SILENT in self._due:
            self._due[Due.SILENT] = self.heard_s + self._silent_s
        found = [due for due, at_s in self._due.items() if at_s <= now_s]
        for due in found:
            del self._due[due]
        if Due.KEEP_ALIVE in found:
            self._due[Due.KEEP_ALIVE] = now_s + self._every_s
        return found

    @property
    def next_s(self) -> float | None:
        """When to look again."""
        return min(self._due.values(), default=None)
