"""A client opens and closes, with a sender and a receiver."""

from sdk.python.place import Place


def run(place: Place) -> None:
    with place.client() as client, client.get_queue_sender(place.queue), client.get_queue_receiver(place.queue):
        pass
