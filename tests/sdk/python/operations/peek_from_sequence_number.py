"""A peek begins at a sequence number, and goes on where the last one ended."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, receive

COUNT = 6


def run(place: Place) -> None:
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            sender.send_messages([ServiceBusMessage(f"{number}") for number in range(COUNT)])
        with client.get_queue_receiver(place.queue) as receiver:
            everything = receiver.peek_messages(COUNT)
            numbers = [message.sequence_number or 0 for message in everything]
            assert len(numbers) == COUNT
            for start in range(COUNT):
                peeked = receiver.peek_messages(2, sequence_number=numbers[start])
                assert [message.sequence_number for message in peeked] == numbers[start : start + 2]
            for message in receive(receiver, COUNT):
                receiver.complete_message(message)
