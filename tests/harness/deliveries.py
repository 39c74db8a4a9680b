"""Short forms for tests that speak to one broker."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Received, SessionLock, Settlement
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model import stored_message
from partitionedqueue.model.message import Message

LOCK_MS = 300_000  # as long as a lock can be
PEEK_BYTES = 1 << 30


class HasMessages(Protocol):
    """A run, received or peeked."""

    @property
    def first(self) -> int: ...
    @property
    def messages(self) -> list[bytes]: ...


def stored(body: bytes, **fields: Any) -> bytes:
    """The stored form of a message with this body."""
    return stored_message.encode(Message(body=body, **fields))


def bodies(count: int, first: int = 1, **fields: Any) -> list[bytes]:
    """Stored forms whose bodies name their sequence numbers, given that they are stored from `first` on."""
    return [stored(b"message %d" % n, **fields) for n in range(first, first + count)]


def body_of(one: bytes) -> bytes:
    return stored_message.decode(one).body


def properties_of(one: bytes) -> dict[str, Any]:
    """The application properties, changes applied."""
    return dict(stored_message.decode(one).application_properties)


def configure(broker: BlockingBroker, keys: QueueKeys, **settings: Any) -> None:
    """Make the broker hold the queue's only partition, with some BrokerSettings; the others stay as they are."""
    broker.call(calls.configure(keys, partition=0, partitions=1, settings=BrokerSettings(**settings)))


def send(broker: BlockingBroker, keys: QueueKeys, count: int, **fields: Any) -> None:
    """Fill a queue with `count` messages, whose bodies name their sequence numbers."""
    last = broker.call(calls.totals(keys)).last
    for start in range(last + 1, last + count + 1, 1000):
        broker.call(calls.send(keys, bodies(min(1000, last + count + 1 - start), start, **fields)))


def send_one(broker: BlockingBroker, keys: QueueKeys, body: bytes = b"x", **fields: Any) -> int:
    """Send one message; gives its sequence number."""
    return broker.call(calls.send(keys, [stored(body, **fields)])).first


def placed(runs: Iterable[HasMessages]) -> list[tuple[int, bytes]]:
    """Sequence number and stored form of all that is in some runs."""
    return [(run.first + place, one) for run in runs for place, one in enumerate(run.messages)]


def numbers(received: Received) -> list[int]:
    """The sequence numbers of what was received; each body must be that of its number."""
    found = placed(received.runs)
    for number, one in found:
        assert body_of(one) == b"message %d" % number
    return [number for number, _ in found]


def received_bodies(received: Received) -> list[bytes]:
    return [body_of(one) for _, one in placed(received.runs)]


def delivery_counts(received: Received) -> dict[int, int]:
    """How often each of what was received has been delivered, this time included."""
    return {run.first + place: run.delivery_count for run in received.runs for place in range(len(run.messages))}


def settlements(received: Received) -> list[Settlement]:
    """All of what was received, a settlement a run."""
    return [Settlement(run.lock, run.first, run.first + len(run.messages) - 1) for run in received.runs]


def receive(
    broker: BlockingBroker,
    keys: QueueKeys,
    most: int = 100,
    lock_ms: int = LOCK_MS,
    session: SessionLock | None = None,
) -> Received:
    """Peek-lock."""
    return broker.call(calls.receive(keys, most=most, lock_ms=lock_ms, session=session))


def locked_as(received: Received, wanted: Iterable[int]) -> list[Settlement]:
    """A settlement for each of some single messages."""
    where = {run.first + place: run.lock for run in received.runs for place in range(len(run.messages))}
    return [Settlement(where[number], number, number) for number in wanted]


def accept(
    broker: BlockingBroker, keys: QueueKeys, session_id: str | None = None, lock_ms: int = LOCK_MS
) -> SessionLock:
    """Accept a session that is there."""
    accepted = broker.call(calls.accept_session(keys, session_id, lock_ms=lock_ms)).session
    assert accepted is not None
    return accepted


def peeked(
    broker: BlockingBroker, keys: QueueKeys, states: str = "", session: str | None = None, start: int = 1
) -> list[tuple[int, int, bytes]]:
    """Sequence number, state (0 active, 1 deferred, 2 scheduled) and stored form of all that peek shows."""
    found: list[tuple[int, int, bytes]] = []
    while start:
        shown = broker.call(
            calls.peek(keys, from_sequence=start, most=1000, bytes_most=PEEK_BYTES, states=states, session=session)
        )
        found += [(run.first + place, run.state, one) for run in shown.runs for place, one in enumerate(run.messages)]
        assert shown.next == 0 or shown.next > start
        start = shown.next
    return found


def drain(broker: BlockingBroker, keys: QueueKeys, now_ms: int) -> int:
    """Have all due work done; gives the next due time (-1: none)."""
    for _ in range(10_000):
        due = broker.call(calls.sweep(keys)).next_due_ms
        if due == -1 or due > now_ms:
            return due
    raise AssertionError("the due work does not end")


def emptied(broker: BlockingBroker, keys: QueueKeys) -> list[bytes]:
    """Receive and delete all that is ready; the bodies in order."""
    found: list[bytes] = []
    while True:
        received = receive(broker, keys, 1000, lock_ms=0)
        if not received.runs:
            return found
        found += received_bodies(received)


def fill(broker: BlockingBroker, keys: QueueKeys, messages: Sequence[bytes]) -> None:
    for start in range(0, len(messages), 1000):
        broker.call(calls.send(keys, messages[start : start + 1000]))


def contents(broker: BlockingBroker) -> dict[bytes, bytes]:
    """All that the broker holds, as a value to compare: nothing may have changed where nothing was to be done."""
    names = sorted(broker.raw(("KEYS", "pq:*"))[0])
    return dict(zip(names, broker.raw(*(("DUMP", name) for name in names)), strict=True))
