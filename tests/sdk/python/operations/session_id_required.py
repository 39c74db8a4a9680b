"""A queue with sessions refuses a message that has no session id."""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

from sdk.python.place import Place, refused


def run(place: Place) -> None:
    with (
        place.client(retry_total=0) as client,
        client.get_queue_sender(place.sessions) as sender,
        refused(ServiceBusError),
    ):
        sender.send_messages(ServiceBusMessage("of no session"))
