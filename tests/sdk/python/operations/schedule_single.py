"""A scheduled message comes at its time, not before."""

from datetime import UTC, datetime, timedelta

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, nothing_comes, own, receive_one


def run(place: Place) -> None:
    body = own("scheduled")
    at = datetime.now(UTC) + timedelta(seconds=3)
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            [number] = sender.schedule_messages(ServiceBusMessage(body), at)
            assert number > 0
        with client.get_queue_receiver(place.queue) as receiver:
            nothing_comes(receiver)
            message = receive_one(receiver)
            assert datetime.now(UTC) >= at - timedelta(milliseconds=100)
            assert str(message) == body
            assert message.scheduled_enqueue_time_utc is not None
            assert message.enqueued_time_utc
            assert message.enqueued_time_utc >= message.scheduled_enqueue_time_utc
            receiver.complete_message(message)
