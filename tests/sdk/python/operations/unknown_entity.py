"""A queue that does not exist is named as such, to senders and to receivers."""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessagingEntityNotFoundError

from sdk.python.place import Place, refused


def run(place: Place) -> None:
    with place.client() as client:
        with refused(MessagingEntityNotFoundError), client.get_queue_sender(place.missing) as sender:
            sender.send_messages(ServiceBusMessage("nowhere"))
        with refused(MessagingEntityNotFoundError), client.get_queue_receiver(place.missing) as receiver:
            receiver.receive_messages(max_wait_time=5)
