"""Application properties of every type that the SDK writes arrive as they were."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, receive_one

PROPERTIES: dict[str | bytes, Any] = {
    "text": "größer",
    "empty": "",
    "true": True,
    "false": False,
    "small": 7,
    "negative": -1,
    "large": 2**31 - 1,
    "real": 2.5,
    "uuid": uuid4(),
    "time": datetime(2026, 11, 21, 12, 30, tzinfo=UTC),
}


def run(place: Place) -> None:
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            sender.send_messages(ServiceBusMessage("typed", application_properties=PROPERTIES))
        with client.get_queue_receiver(place.queue) as receiver:
            message = receive_one(receiver)
            receiver.complete_message(message)
    got = {_text(name): _plain(name, value) for name, value in (message.application_properties or {}).items()}
    wanted = {_text(name): value for name, value in PROPERTIES.items()}
    assert got == wanted, got


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _plain(name: str | bytes, value: Any) -> Any:
    if isinstance(value, bytes):  # the SDK leaves texts as they came
        return value.decode()
    if _text(name) == "time" and isinstance(value, int):  # and times as milliseconds
        return datetime.fromtimestamp(value / 1000, UTC)
    return value
