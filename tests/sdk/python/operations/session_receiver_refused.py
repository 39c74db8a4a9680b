"""A queue without sessions refuses the receiver of a session."""

from azure.servicebus.exceptions import ServiceBusError

from sdk.python.place import Place, refused


def run(place: Place) -> None:
    with (
        place.client(retry_total=0) as client,
        refused(ServiceBusError),
        client.get_queue_receiver(place.queue, session_id="any"),
    ):
        pass
