"""Several messages are scheduled at once; each has a sequence number."""

from datetime import UTC, datetime, timedelta

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, receive

COUNT = 5


def run(place: Place) -> None:
    at = datetime.now(UTC) + timedelta(seconds=2)
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            numbers = sender.schedule_messages([ServiceBusMessage(f"{number}") for number in range(COUNT)], at)
            assert len(set(numbers)) == COUNT
        with client.get_queue_receiver(place.queue) as receiver:
            messages = receive(receiver, COUNT)
            for message in messages:
                receiver.complete_message(message)
    assert sorted(str(message) for message in messages) == [f"{number}" for number in range(COUNT)]
