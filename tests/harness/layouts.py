"""The fixtures of released layouts (tests/fixtures/layouts): a broker over a copy of one, and what must be in it."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.clock import CLOCK_KEY, Clock, clocked_library
from harness.redis_servers import running_broker
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model import stored_message
from partitionedqueue.model.message import Message

FOLDER: Final = Path(__file__).parents[1] / "fixtures" / "layouts"
VERSIONS: Final = sorted(path.parent.name for path in FOLDER.glob("*/expected.json"))


@dataclass(frozen=True, slots=True)
class Row:
    """One message: when it was enqueued, how often delivered, its state, and the lock that holds it until when."""

    enqueued_time_ms: int
    deliveries: int
    state: str
    lock: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class Expected:
    """What must be found in one queue."""

    name: str
    configured: bool
    last: int
    rows: dict[int, Row]
    groups: dict[str, dict[str, Any]]
    senders: dict[str, dict[str, list[int]]]

    @property
    def keys(self) -> QueueKeys:
        return QueueKeys(self.name)

    def of(self, state: str) -> dict[int, Row]:
        return {number: row for number, row in self.rows.items() if row.state == state}

    def stored(self, number: int) -> bytes:
        """The message under a sequence number."""
        return stored_message.encode(Message(body=f"{self.name} {number}".encode() + b"." * (number % 40)))


def told_of(fixture: Path) -> dict[str, Any]:
    """What a fixture's expected.json says."""
    told: dict[str, Any] = json.loads((fixture / "expected.json").read_text(encoding="utf-8"))
    return told


def expected(version: str) -> dict[str, Expected]:
    """The queues of a release's fixture."""
    told = told_of(FOLDER / version)
    queues = {}
    for name, queue in told["queues"].items():
        runs = queue["first, count, enqueued, deliveries, state, lock, until"]
        rows = {number: Row(*row) for first, count, *row in runs for number in range(first, first + count)}
        queues[name] = Expected(name, queue["configured"], queue["last"], rows, queue["groups"], queue["senders"])
    return queues


@contextlib.contextmanager
def upgraded(fixture: Path, folder: Path) -> Iterator[tuple[BlockingBroker, Clock]]:
    """A broker over a copy of a fixture, with the library of today, at the fixture's time."""
    shutil.copytree(fixture / "data", folder)
    with running_broker(folder, library=clocked_library) as server, BlockingBroker(server.address) as broker:
        assert broker.raw(("EXISTS", CLOCK_KEY)) == [1]
        yield broker, Clock(broker, told_of(fixture)["clock_ms"])
