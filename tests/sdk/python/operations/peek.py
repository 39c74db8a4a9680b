"""A peek shows messages and neither locks nor removes them."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, receive

COUNT = 3


def run(place: Place) -> None:
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            sender.send_messages([ServiceBusMessage(f"{number}") for number in range(COUNT)])
        with client.get_queue_receiver(place.queue) as receiver:
            for _ in range(2):
                peeked = receiver.peek_messages(10, sequence_number=1)
                assert [str(message) for message in peeked] == ["0", "1", "2"]
            for message in receive(receiver, COUNT):
                assert message.delivery_count == 0
                receiver.complete_message(message)
            assert not receiver.peek_messages(10, sequence_number=1)
