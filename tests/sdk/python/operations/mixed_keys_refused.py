"""A batch whose messages have different keys is refused whole."""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

from sdk.python.place import Place, refused


def run(place: Place) -> None:
    with place.client(retry_total=0) as client:
        with client.get_queue_sender(place.queue) as sender, refused(ServiceBusError):
            sender.send_messages([ServiceBusMessage("", partition_key=key) for key in ("one", "another")])
        with client.get_queue_receiver(place.queue) as receiver:
            assert not receiver.peek_messages(2)
