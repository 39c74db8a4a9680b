"""What may change of a queue changes; what may not is refused, and nothing changes."""

from datetime import timedelta

from azure.core.exceptions import HttpResponseError

from sdk.python.place import Place, refused


def run(place: Place) -> None:
    with place.administration_client() as client:
        queue = client.get_queue(place.administered)
        queue.lock_duration = "PT45S"
        queue.dead_lettering_on_message_expiration = True
        queue.user_metadata = None
        client.update_queue(queue)
        found = client.get_queue(place.administered)
        assert found.lock_duration == timedelta(seconds=45)
        assert found.dead_lettering_on_message_expiration
        assert found.user_metadata is None
        assert found.max_delivery_count == 7
        found.requires_session = True
        found.max_delivery_count = 8
        with refused(HttpResponseError):
            client.update_queue(found)
        assert client.get_queue(place.administered).max_delivery_count == 7
