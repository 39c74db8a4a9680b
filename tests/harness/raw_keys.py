"""The raw keys of one queue in a broker, taken apart: the layout of docs/internals/broker.md."""

import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.library import library_text

SEGMENT = 256
NEVER = 2**48 - 1
RUN = struct.Struct("<6s6sHH6sB")
SESSION = struct.Struct("<6s6s6s6sIIIII")
ENTRY = struct.Struct("<6sHH")


def six(data: bytes, at: int = 0) -> int:
    return int.from_bytes(data[at : at + 6], "little")


@cache
def _names(counters: str, before: str) -> list[str]:
    """The names of packed counters, in their order, from the text of the library."""
    names = r"\s*((?:[\w.]+,\s*)*[\w.]+)\s*= unpack_struct\("
    match = re.search(before + names + counters + r", \w+(?:, \w+ \+ 1)?\)", library_text())
    assert match is not None, f"the library unpacks its {counters} in other words than this expects"
    return [name.strip().removeprefix("s.") for name in match[1].split(",")]


@cache
def charges() -> dict[str, int]:
    """What a partition is charged for each message, run, ..., from the text of the library."""
    match = re.search(r"local CHARGE = { (.*?) }", library_text())
    assert match is not None, "the library states its charges in other words than this expects"
    return {name: int(bytes_) for name, _, bytes_ in (one.partition(" = ") for one in match[1].split(", "))}


@dataclass
class Run:
    """A record `r<id>`."""

    id: int
    until_ms: int
    first: int
    count: int
    deliveries: int
    size: int
    kinds: int
    held: bytes

    def sequences(self) -> list[int]:
        whole = not self.held
        return [self.first + i for i in range(self.count) if whole or self.held[i // 8] >> i % 8 & 1]


@dataclass
class Session:
    """A record `s<session>`."""

    lock: int
    until_ms: int
    taken: int
    count: int
    holes: int
    chunks: int
    state_bytes: int
    held: list[int]
    front: bytes
    back: bytes


@dataclass
class Raw:
    """The raw keys of one queue."""

    broker: BlockingBroker
    queue: str
    fields: dict[bytes, bytes] = field(init=False)
    counters: Counter[str] = field(init=False)

    def __post_init__(self) -> None:
        flat = self.ask("HGETALL")
        self.fields = dict(zip(flat[::2], flat[1::2], strict=True))
        self.counters = Counter()
        if packed := self.fields.get(b"c"):
            names = _names("COUNTERS", r"local _\s+_,") + _names("MORE_COUNTERS", "COUNTERS_SIZE then")
            self.counters.update({name: six(packed, 1 + 6 * i) for i, name in enumerate(names)})  # 0 beyond its end
        if rare := self.fields.get(b"k"):
            names = _names("RARE_COUNTERS", "if rare then")
            self.counters.update({name: six(rare, 6 * i) for i, name in enumerate(names)})

    def ask(self, command: str, suffix: str = "", *words: Any) -> Any:
        (reply,) = self.broker.raw((command, self.queue + suffix, *words))
        return reply

    def scores(self, suffix: str) -> dict[bytes, int]:
        flat = self.ask("ZRANGE", suffix, 0, -1, "WITHSCORES")
        return {name: int(float(score)) for name, score in zip(flat[::2], flat[1::2], strict=True)}

    def named(self, letter: str) -> Iterator[tuple[str, bytes]]:
        """The fields whose names begin with a letter, and are no word of their own."""
        for name, value in self.fields.items():
            if name[:1] == letter.encode() and name not in {b"c", b"k", b"config"}:
                yield name[1:].decode(), value
