"""A peek over all partitions gives as many as were asked for, in the order of their sequence numbers."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, receive

COUNT = 120


def run(place: Place) -> None:
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            for start in range(0, COUNT, 3):
                sender.send_messages([ServiceBusMessage(f"{number}") for number in range(start, start + 3)])
        with client.get_queue_receiver(place.queue) as receiver:
            peeked = receiver.peek_messages(100, sequence_number=1)
            assert len(peeked) == 100, len(peeked)
            peeked += receiver.peek_messages(100, sequence_number=(peeked[-1].sequence_number or 0) + 1)
            numbers = [message.sequence_number or 0 for message in peeked]
            assert numbers == sorted(set(numbers))
            assert sorted(int(str(message)) for message in peeked) == list(range(COUNT))
            for message in receive(receiver, COUNT):
                receiver.complete_message(message)
