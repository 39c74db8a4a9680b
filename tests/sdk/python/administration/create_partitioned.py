"""A partitioned queue is made, shows 16 times its size and takes messages at once; a second of its name is refused."""

from datetime import timedelta

from azure.core.exceptions import ResourceExistsError
from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, refused


def run(place: Place) -> None:
    with place.administration_client() as client:
        made = client.create_queue(
            place.administered,
            enable_partitioning=True,
            max_size_in_megabytes=1024,
            lock_duration="PT30S",
            max_delivery_count=7,
            user_metadata="a < b & c",
        )
        assert made.max_size_in_megabytes == 16 * 1024
        with place.client() as sending, sending.get_queue_sender(place.administered) as sender:
            sender.send_messages([ServiceBusMessage(f"{number}") for number in range(3)])
        for name in (place.administered, place.administered.lower()):
            found = client.get_queue(name)
            assert found.enable_partitioning
            assert found.max_size_in_megabytes == 16 * 1024
            assert found.lock_duration == timedelta(seconds=30)
            assert found.max_delivery_count == 7
            assert found.user_metadata == "a < b & c"
            assert found.availability_status == "Available"
        with refused(ResourceExistsError):
            client.create_queue(place.administered)
