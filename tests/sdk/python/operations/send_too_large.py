"""A message above the limit is refused, and the sender goes on."""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageSizeExceededError

from sdk.python.place import Place, nothing_comes, receive_one, refused


def run(place: Place) -> None:
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            with refused(MessageSizeExceededError):
                sender.send_messages(ServiceBusMessage(b"x" * 2_000_000))
            sender.send_messages(ServiceBusMessage("small"))
        with client.get_queue_receiver(place.queue) as receiver:
            message = receive_one(receiver)
            assert str(message) == "small"
            receiver.complete_message(message)
            nothing_comes(receiver)
