"""A key that is not the policy's is refused."""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusAuthenticationError, ServiceBusAuthorizationError

from sdk.python.place import Place, refused


def run(place: Place) -> None:
    with (
        place.client(place.connection_wrong_key, retry_total=0) as client,
        refused(ServiceBusAuthenticationError, ServiceBusAuthorizationError),
        client.get_queue_sender(place.queue) as sender,
    ):
        sender.send_messages(ServiceBusMessage("refused"))
