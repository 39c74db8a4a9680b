"""A message that is sent with a time to be enqueued comes at that time."""

from datetime import UTC, datetime, timedelta

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, nothing_comes, receive_one


def run(place: Place) -> None:
    at = datetime.now(UTC) + timedelta(seconds=3)
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            sender.send_messages(ServiceBusMessage("later", scheduled_enqueue_time_utc=at))
        with client.get_queue_receiver(place.queue) as receiver:
            nothing_comes(receiver)
            message = receive_one(receiver)
            assert datetime.now(UTC) >= at - timedelta(milliseconds=100)
            receiver.complete_message(message)
