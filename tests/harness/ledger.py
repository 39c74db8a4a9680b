"""What clients were promised by a broker that is killed under them, and what that makes possible."""

import itertools
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from harness.deliveries import body_of, placed
from partitionedqueue.broker.replies import Received

LOCK_MS = 2_000
ACTIVE, DEFERRED, DEAD, GONE, NEVER_STORED = "active", "deferred", "dead", "gone", "never stored"


@dataclass
class Hold:
    """A receiver had a message from a time on, until another or until it gave it back; by the broker's clock."""

    from_ms: int
    until_ms: int
    ended: bool = False


@dataclass
class Ledger:
    """What may be where, by the bodies of the messages.

    Several clients may ask for one message at once, where the lock of one has lapsed: what each of them asked for is
    possible until it is told no, and that takes away its own hope alone.
    """

    places: dict[bytes, set[str]] = field(default_factory=dict)
    hopes: dict[bytes, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  # places only asked for
    numbers: dict[int, bytes] = field(default_factory=dict)  # sequence number → body, for ever
    due_ms: dict[bytes, int] = field(default_factory=dict)
    holds: dict[bytes, list[Hold]] = field(default_factory=lambda: defaultdict(list))
    deferred: dict[int, bytes] = field(default_factory=dict)  # sequence number → body
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def numbered(self, sequence: int, body: bytes) -> None:
        """A number belongs to one message only."""
        if self.numbers.setdefault(sequence, body) != body:
            self.wrong.append(f"number {sequence} is that of {self.numbers[sequence]!r} and of {body!r}")

    def is_in(self, body: bytes, place: str) -> None:
        """It is seen somewhere: it must be possible, and nothing else is possible any more."""
        if place not in self.places.get(body, {NEVER_STORED}):
            self.wrong.append(f"{body!r} is {place}, but was {self.places.get(body)}")
        self.known(body, place)

    def known(self, body: bytes, place: str) -> None:
        """It is there; nothing else is possible any more."""
        self.places[body] = {place}
        self.hopes.pop(body, None)

    def hope(self, body: bytes, place: str) -> None:
        """Somebody asks for it to be put there: from now on that is possible."""
        if place not in self.places[body] or place in self.hopes[body]:
            self.hopes[body][place] += 1
        self.places[body].add(place)

    def refuse(self, body: bytes, place: str) -> None:
        """Who has asked was told no; possible is what others ask for, and what was so before."""
        if place in self.hopes[body]:
            self.hopes[body][place] -= 1
            if not self.hopes[body][place]:
                del self.hopes[body][place]
                self.places[body].discard(place)

    def delivered(self, received: Received, place: str) -> None:
        """Somebody holds these now, and nobody else does."""
        with self.lock:
            if time.time() * 1000 > received.locked_until_ms - LOCK_MS / 4:
                return  # too late to tell: another one may have had it since
            for sequence, one in placed(received.runs):
                body = body_of(one)
                self.numbered(sequence, body)
                self.is_in(body, place)
                if received.now_ms < self.due_ms.get(body, 0):
                    self.wrong.append(f"{body!r} came before its time")
                self.holds[body].append(Hold(received.now_ms, received.locked_until_ms))

    def overlapping(self) -> list[str]:
        """Messages that two receivers held at once."""
        found = []
        for body, several in self.holds.items():
            several.sort(key=lambda hold: hold.from_ms)
            for before, after in itertools.pairwise(several):
                if not before.ended and before.until_ms > after.from_ms:
                    found.append(f"{body!r} was held until {before.until_ms}, and again from {after.from_ms}")
        return found
