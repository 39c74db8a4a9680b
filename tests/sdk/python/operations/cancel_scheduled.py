"""A scheduled message that is cancelled never comes; cancelling what is not scheduled is told."""

from datetime import UTC, datetime, timedelta

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageNotFoundError

from sdk.python.place import Place, nothing_comes, refused


def run(place: Place) -> None:
    at = datetime.now(UTC) + timedelta(seconds=2)
    with place.client(retry_total=0) as client:
        with client.get_queue_sender(place.queue) as sender:
            numbers = sender.schedule_messages([ServiceBusMessage("never"), ServiceBusMessage("nor this")], at)
            sender.cancel_scheduled_messages(numbers)
            with refused(MessageNotFoundError):
                sender.cancel_scheduled_messages(numbers)
        with client.get_queue_receiver(place.queue) as receiver:
            assert not receiver.peek_messages(10)
            nothing_comes(receiver, within_s=3)
