"""Where an operation happens: what the one who runs it has told, and what several operations do alike."""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from azure.servicebus import ServiceBusClient, ServiceBusReceivedMessage, ServiceBusReceiver, ServiceBusSender
from azure.servicebus.management import ServiceBusAdministrationClient


class QuickClient(ServiceBusClient):
    """The SDK's, without its threads that keep connections alive: to end one takes a second."""

    def get_queue_sender(self, queue_name: str, **options: Any) -> ServiceBusSender:
        return super().get_queue_sender(queue_name, **{"keep_alive": 0, **options})

    def get_queue_receiver(self, queue_name: str, **options: Any) -> ServiceBusReceiver:
        return super().get_queue_receiver(queue_name, **{"keep_alive": 0, **options})


class AbsentFromSdk(Exception):
    """This SDK has no such operation; the words say what it lacks."""


@dataclass(frozen=True, slots=True)
class Place:
    """Connection strings, and the names of the queues."""

    connection: str
    connection_wrong_key: str
    connection_expired: str
    connection_listen: str
    queue: str
    brief: str
    sessions: str
    missing: str
    administration: str = ""
    administered: str = ""

    def client(self, connection: str | None = None, **options: Any) -> ServiceBusClient:
        return QuickClient.from_connection_string(connection or self.connection, **options)

    def administration_client(self) -> ServiceBusAdministrationClient:
        return ServiceBusAdministrationClient.from_connection_string(self.administration)


def own(word: str) -> str:
    """A name that nobody else uses."""
    return f"{word}-{uuid.uuid4().hex[:12]}"


def receive(receiver: ServiceBusReceiver, count: int, *, within_s: float = 20) -> list[ServiceBusReceivedMessage]:
    """Exactly so many; a call of the SDK may give fewer."""
    deadline = time.monotonic() + within_s
    found: list[ServiceBusReceivedMessage] = []
    while len(found) < count and (left := deadline - time.monotonic()) > 0:
        found += receiver.receive_messages(count - len(found), max_wait_time=max(1, min(left, 5)))
    assert len(found) == count, f"{len(found)} messages came instead of {count}: {[str(m) for m in found][:5]}"
    return found


def receive_one(receiver: ServiceBusReceiver, *, within_s: float = 20) -> ServiceBusReceivedMessage:
    return receive(receiver, 1, within_s=within_s)[0]


def nothing_comes(receiver: ServiceBusReceiver, *, within_s: float = 1) -> None:
    found = receiver.receive_messages(1, max_wait_time=within_s)
    assert not found, f"a message came that should not be there: {found[0]}"


@contextmanager
def refused(*kinds: type[Exception]) -> Iterator[None]:
    """What happens in the block must fail with one of these."""
    try:
        yield
    except kinds:
        return
    raise AssertionError(f"it was not refused with {' or '.join(kind.__name__ for kind in kinds)}")
