"""In this mode a message is gone once it was received."""

from azure.servicebus import ServiceBusMessage, ServiceBusReceiveMode

from sdk.python.place import Place, receive

COUNT = 5


def run(place: Place) -> None:
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            sender.send_messages([ServiceBusMessage(f"{number}") for number in range(COUNT)])
        mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
        with client.get_queue_receiver(place.queue, receive_mode=mode) as receiver:
            found = sorted(str(message) for message in receive(receiver, COUNT))
            assert found == [f"{number}" for number in range(COUNT)]
        assert not client.get_queue_receiver(place.queue).peek_messages(1)
