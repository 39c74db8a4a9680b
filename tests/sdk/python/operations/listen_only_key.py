"""A policy with the right to listen receives, and may not send."""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusAuthenticationError, ServiceBusAuthorizationError

from sdk.python.place import Place, receive_one, refused


def run(place: Place) -> None:
    with place.client() as client, client.get_queue_sender(place.queue) as sender:
        sender.send_messages(ServiceBusMessage("for whoever listens"))
    with place.client(place.connection_listen, retry_total=0) as client:
        with client.get_queue_receiver(place.queue) as receiver:
            receiver.complete_message(receive_one(receiver))
        with (
            refused(ServiceBusAuthenticationError, ServiceBusAuthorizationError),
            client.get_queue_sender(place.queue) as sender,
        ):
            sender.send_messages(ServiceBusMessage("refused"))
