"""A list of messages is sent at once, and all arrive."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, own, receive


def run(place: Place) -> None:
    ids = [own("id") for _ in range(10)]
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            sender.send_messages([ServiceBusMessage("listed", message_id=each) for each in ids])
        with client.get_queue_receiver(place.queue) as receiver:
            messages = receive(receiver, len(ids))
            for message in messages:
                receiver.complete_message(message)
    assert sorted(str(message.message_id) for message in messages) == sorted(ids)
