"""A scheduled message counts when duplicates are looked for."""

from datetime import UTC, datetime, timedelta

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, nothing_comes, own, receive_one


def run(place: Place) -> None:
    message_id = own("id")
    with place.client() as client:
        with client.get_queue_sender(place.brief) as sender:
            at = datetime.now(UTC) + timedelta(seconds=1)
            sender.schedule_messages(ServiceBusMessage("scheduled", message_id=message_id), at)
            sender.send_messages(ServiceBusMessage("sent", message_id=message_id))
        with client.get_queue_receiver(place.brief) as receiver:
            message = receive_one(receiver)
            assert str(message) == "scheduled"
            receiver.complete_message(message)
            nothing_comes(receiver)
