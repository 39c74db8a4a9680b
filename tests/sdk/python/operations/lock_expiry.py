"""A message whose lock runs out comes again, with one delivery more."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, receive_one


def run(place: Place) -> None:
    with place.client() as client:
        with client.get_queue_sender(place.brief) as sender:
            sender.send_messages(ServiceBusMessage("again"))
        with client.get_queue_receiver(place.brief) as holder, client.get_queue_receiver(place.brief) as receiver:
            first = receive_one(holder)
            second = receive_one(receiver, within_s=20)
            assert (first.delivery_count, second.delivery_count) == (0, 1)
            assert second.sequence_number == first.sequence_number
            receiver.complete_message(second)
