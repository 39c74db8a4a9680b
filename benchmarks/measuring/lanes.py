"""One driver for every side: commands packed beforehand, a window of them in flight on each connection."""

import itertools
import selectors
import socket
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, cast

import hiredis

from partitionedqueue.broker.calls import Call

PIPELINE_DEPTH = 16
CONNECT_S_MAX = 10.0
REPLY_S_MAX = 60.0

Word: TypeAlias = str | bytes | int | float
Wires: TypeAlias = Sequence[bytes]
RepliesEach: TypeAlias = int | Sequence[int]


class Cost(NamedTuple):
    """What one phase took, all servers together."""

    clock_s: float
    cpu_s: float

    def __truediv__(self, other: "Cost") -> "Cost":
        """How many times the other's cost this is, on both clocks."""
        return Cost(self.clock_s / other.clock_s, self.cpu_s / other.cpu_s)


def total(*costs: Cost) -> Cost:
    """Several phases as one."""
    return Cost(sum(cost.clock_s for cost in costs), sum(cost.cpu_s for cost in costs))


def wire(*words: Word) -> bytes:
    """A command as it travels (hiredis' stub allows a single word)."""
    packed: bytes = hiredis.pack_command(cast("Any", words))
    return packed


def wire_of(call: Call[Any]) -> bytes:
    """A call of the library as it travels; it has as many replies as commands."""
    return b"".join([wire(*command) for command in call.commands])


def repeated(wires: Wires, count: int) -> Wires:
    """`count` commands, these ones again and again."""
    return list(itertools.islice(itertools.cycle(wires), count))


@dataclass
class Lane:
    """One connection to one server, and what is under way on it."""

    socket: socket.socket
    reader: hiredis.Reader = field(default_factory=hiredis.Reader)
    wires: Wires = ()
    replies: list[Any] = field(default_factory=list)
    _ends: Sequence[int] = ()  # with how many replies each command is answered, and all before it
    _started: int = 0
    _finished: int = 0
    _window: int = PIPELINE_DEPTH
    _unsent: memoryview = field(default=memoryview(b""), repr=False)

    def begin(self, wires: Wires, replies_each: RepliesEach, window: int) -> None:
        """Take the next phase's commands; each of them is answered by so many replies."""
        self.wires, self.replies = wires, []
        self._started, self._finished, self._window = 0, 0, window
        if isinstance(replies_each, int):
            self._ends = range(replies_each, replies_each * len(wires) + 1, replies_each)
        else:
            self._ends = list(itertools.accumulate(replies_each))

    @property
    def done(self) -> bool:
        """Has every command been answered?"""
        return self._finished == len(self.wires)

    @property
    def has_unsent(self) -> bool:
        """Did the kernel not take everything yet?"""
        return bool(self._unsent)

    @property
    def last_replies(self) -> list[Any]:
        """The last reply of each command."""
        return [self.replies[end - 1] for end in self._ends]

    def write(self) -> None:
        """Keep the window full, as far as the kernel takes it."""
        while self._finished < len(self._ends) and self._ends[self._finished] <= len(self.replies):
            self._finished += 1
        upto = min(len(self.wires), self._finished + self._window)
        if upto > self._started:
            more = b"".join(self.wires[self._started : upto])
            self._unsent = memoryview(bytes(self._unsent) + more if self._unsent else more)
            self._started = upto
        if self._unsent:
            try:
                self._unsent = self._unsent[self.socket.send(self._unsent) :]
            except BlockingIOError:
                return

    def read(self) -> None:
        """Take what has come. Raises the first refusal."""
        received = self.socket.recv(1 << 20)
        if not received:
            raise ConnectionError("a redis-server closed its connection")
        self.reader.feed(received)
        while (reply := self.reader.gets()) is not False:
            if isinstance(reply, hiredis.ReplyError):
                raise reply
            self.replies.append(reply)

    def ask(self, command: bytes) -> Any:
        """One command and its reply, alone on its way."""
        drive([self], [[command]])
        return self.replies[-1]


def drive(
    lanes: Sequence[Lane], wires: Sequence[Wires], *, replies_each: RepliesEach = 1, window: int = PIPELINE_DEPTH
) -> float:
    """Run every lane's commands to their end; how many seconds it took. The replies stay in the lanes."""
    with selectors.DefaultSelector() as selector:
        for lane, its_wires in zip(lanes, wires, strict=True):
            lane.begin(its_wires, replies_each, window)
            selector.register(lane.socket, selectors.EVENT_READ, lane)
        busy = sum(not lane.done for lane in lanes)
        started = time.perf_counter()
        for lane in lanes:
            _write(lane, selector)
        while busy:
            ready = selector.select(REPLY_S_MAX)
            if not ready:
                raise TimeoutError(f"no redis-server has answered for {REPLY_S_MAX:.0f} s")
            for key, events in ready:
                lane = key.data
                was_done = lane.done
                if events & selectors.EVENT_READ:
                    lane.read()
                _write(lane, selector)
                busy -= lane.done and not was_done
        return time.perf_counter() - started


def _write(lane: Lane, selector: selectors.BaseSelector) -> None:
    """Send what may be sent, and wait for room only where there was not enough."""
    lane.write()
    events = selectors.EVENT_READ | (selectors.EVENT_WRITE if lane.has_unsent else 0)
    if selector.get_key(lane.socket).events != events:
        selector.modify(lane.socket, events, lane)


def ask_all(lanes: Sequence[Lane], *commands: bytes) -> list[Any]:
    """The same few commands on every lane, unmeasured; the last reply of each."""
    drive(lanes, [commands] * len(lanes))
    return [lane.replies[-1] for lane in lanes]


def information(lane: Lane, section: str) -> dict[str, str]:
    """One section of a server's INFO."""
    text: bytes = lane.ask(wire("INFO", section))
    return dict(line.split(":", 1) for line in text.decode().split("\r\n") if ":" in line)


def cpu_s(lanes: Iterable[Lane]) -> float:
    """Processor time that the servers have used so far."""
    told = [information(lane, "cpu") for lane in lanes]
    return sum(float(each["used_cpu_sys"]) + float(each["used_cpu_user"]) for each in told)


def measured(lanes: Sequence[Lane], wires: Sequence[Wires], *, replies_each: RepliesEach = 1) -> Cost:
    """One phase on both clocks; of each command the last reply stays in its lane."""
    before = cpu_s(lanes)
    clock_s = drive(lanes, wires, replies_each=replies_each)
    replies = [lane.last_replies for lane in lanes]
    used_s = cpu_s(lanes) - before
    for lane, its_replies in zip(lanes, replies, strict=True):
        lane.replies = its_replies  # INFO's reply took their place
    return Cost(clock_s, used_s)


def connect(port: int) -> Lane:
    """A lane to a server that may still be starting."""
    deadline = time.monotonic() + CONNECT_S_MAX
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=1.0)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        return Lane(connection)
