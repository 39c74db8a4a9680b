"""A message that was completed does not come again."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, nothing_comes, receive_one


def run(place: Place) -> None:
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            sender.send_messages(ServiceBusMessage("once"))
        with client.get_queue_receiver(place.queue) as receiver:
            receiver.complete_message(receive_one(receiver))
        with client.get_queue_receiver(place.queue) as receiver:
            nothing_comes(receiver)
            assert not receiver.peek_messages(1)
