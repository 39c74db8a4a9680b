"""A receiver that fetches ahead gives each message once."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, receive

COUNT = 60


def run(place: Place) -> None:
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            for start in range(0, COUNT, 10):
                sender.send_messages([ServiceBusMessage(f"{number}") for number in range(start, start + 10)])
        with client.get_queue_receiver(place.queue, prefetch_count=40) as receiver:
            messages = receive(receiver, COUNT)
            for message in messages:
                receiver.complete_message(message)
        assert sorted(int(str(message)) for message in messages) == list(range(COUNT))
        assert not client.get_queue_receiver(place.queue).peek_messages(1)
