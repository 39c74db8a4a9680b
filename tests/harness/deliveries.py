"""Short forms for tests that speak to one broker."""

from collections.abc import Iterable

from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Received, Settlement

HOUR_MS = 300_000  # as long as a lock can be: "for ever" in a test


def bodies(count: int, first: int = 1) -> list[bytes]:
    """Bodies that name their sequence number, given that they are sent first."""
    return [b"message %d" % n for n in range(first, first + count)]


def send(broker: BlockingBroker, keys: QueueKeys, count: int) -> None:
    """Fill a queue with `count` messages, whose bodies name their sequence numbers."""
    last = broker.call(calls.totals(keys)).last
    for start in range(last + 1, last + count + 1, 1000):
        broker.call(calls.send(keys, bodies(min(1000, last + count + 1 - start), start)))


def numbers(received: Received) -> list[int]:
    """The sequence numbers of what was received; each body must be that of its number."""
    found = []
    for run in received.runs:
        for place, body in enumerate(run.messages):
            assert body == b"message %d" % (run.first + place)
            found.append(run.first + place)
    return found


def settlements(received: Received) -> list[Settlement]:
    """All of what was received, a settlement a run."""
    return [Settlement(run.lock, run.first, run.first + len(run.messages) - 1) for run in received.runs]


def receive(broker: BlockingBroker, keys: QueueKeys, most: int, lock_ms: int = HOUR_MS) -> Received:
    """Peek-lock."""
    return broker.call(calls.receive(keys, most=most, lock_ms=lock_ms))


def locked_as(received: Received, wanted: Iterable[int]) -> list[Settlement]:
    """A settlement for each of some single messages."""
    where = {run.first + place: run.lock for run in received.runs for place in range(len(run.messages))}
    return [Settlement(where[number], number, number) for number in wanted]
