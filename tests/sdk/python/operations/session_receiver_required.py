"""A queue with sessions refuses a receiver without one."""

from azure.servicebus.exceptions import ServiceBusError

from sdk.python.place import Place, refused


def run(place: Place) -> None:
    with (
        place.client(retry_total=0) as client,
        refused(ServiceBusError),
        client.get_queue_receiver(place.sessions) as receiver,
    ):
        receiver.receive_messages(max_wait_time=2)
