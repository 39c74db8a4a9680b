"""How much of what clients have sent is not stored yet: beyond a bound they are not read from until it is."""

from collections.abc import Callable

from partitionedqueue_gateway import limits


class Backlog:
    """The sum over all connections of a process; those that were stopped by it go on when it has fallen to half."""

    def __init__(self) -> None:
        self.bytes = 0
        self._stopped: list[Callable[[], None]] = []

    def move(self, change: int) -> None:
        """Something came, or was stored."""
        self.bytes += change
        if self._stopped and self.bytes <= limits.SENDS_BYTES_MAX // 2:
            stopped, self._stopped = self._stopped, []
            for go_on in stopped:
                go_on()

    @property
    def full(self) -> bool:
        """Whether nobody may add to it who has a share of it already."""
        return self.bytes >= limits.SENDS_BYTES_MAX

    def wait(self, go_on: Callable[[], None]) -> None:
        """Be told, once, when there is room."""
        self._stopped.append(go_on)


class Reading:
    """One connection's socket, as far as it is read from: not while there is any reason against it."""

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause = pause
        self._resume = resume
        self._against: set[str] = set()

    def stop(self, why: str) -> None:
        """There is a reason now."""
        if not self._against:
            self._pause()
        self._against.add(why)

    def go_on(self, why: str) -> None:
        """It has gone."""
        if why in self._against:
            self._against.remove(why)
            if not self._against:
                self._resume()


class Share:
    """One connection's part of a backlog: says when to stop reading from it, and when to go on."""

    def __init__(self, backlog: Backlog, stop: Callable[[], None], go_on: Callable[[], None]) -> None:
        self._backlog = backlog
        self._stop = stop
        self._go_on = go_on
        self._bytes = 0
        self._stopped = False
        self._waits = False
        self._gone = False

    def update(self, held_bytes: int) -> None:
        """So much of what this connection sent is not stored now."""
        if held_bytes != self._bytes:
            change, self._bytes = held_bytes - self._bytes, held_bytes
            self._backlog.move(change)
        if self._gone:
            return
        if self._stopped:
            self._look()
        elif held_bytes >= limits.CONNECTION_SENDS_BYTES_MAX or self._squeezed:
            self._stopped = True
            self._stop()
            self._look()

    def leave(self) -> None:
        """The connection is gone; what it has sent takes its room all the same, until it is stored."""
        self._stopped, self._gone = False, True

    @property
    def _squeezed(self) -> bool:
        """By what others have under way."""
        return self._backlog.full and self._bytes > limits.SENDS_BYTES_SHARE

    def _look(self) -> None:
        if self._bytes > limits.CONNECTION_SENDS_BYTES_MAX // 2:
            return
        if not self._squeezed:
            self._stopped = False
            self._go_on()
        elif not self._waits:
            self._waits = True
            self._backlog.wait(self._woken)

    def _woken(self) -> None:
        self._waits = False
        if self._stopped:
            self._look()
