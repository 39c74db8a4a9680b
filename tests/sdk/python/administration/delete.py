"""A queue is deleted with the messages that it holds; what is not there cannot be found, changed or deleted."""

from azure.core.exceptions import ResourceNotFoundError

from sdk.python.place import Place, refused


def run(place: Place) -> None:
    with place.administration_client() as client:
        queue = client.get_queue(place.administered)
        client.delete_queue(place.administered)
        for attempt in (
            lambda: client.get_queue(place.administered),
            lambda: client.update_queue(queue),
            lambda: client.delete_queue(place.administered),
            lambda: client.get_queue_runtime_properties(place.missing),
        ):
            with refused(ResourceNotFoundError):
                attempt()
