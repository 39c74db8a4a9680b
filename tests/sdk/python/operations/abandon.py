"""An abandoned message comes again at once, with one delivery more."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, receive_one


def run(place: Place) -> None:
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            sender.send_messages(ServiceBusMessage("again"))
        with client.get_queue_receiver(place.queue) as receiver:
            first = receive_one(receiver)
            receiver.abandon_message(first)
            second = receive_one(receiver)
            assert (first.delivery_count, second.delivery_count) == (0, 1)
            assert second.sequence_number == first.sequence_number
            receiver.complete_message(second)
