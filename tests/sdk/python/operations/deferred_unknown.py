"""A sequence number that is no deferred message's is told so."""

from azure.servicebus.exceptions import MessageNotFoundError

from sdk.python.place import Place, refused


def run(place: Place) -> None:
    with (
        place.client(retry_total=0) as client,
        client.get_queue_receiver(place.queue) as receiver,
        refused(MessageNotFoundError),
    ):
        receiver.receive_deferred_messages(1_000_000)
