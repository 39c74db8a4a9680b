"""Messages with one key keep their order, in one partition, and show their key."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, own, receive

COUNT = 10


def run(place: Place) -> None:
    key = own("key")
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            for number in range(COUNT):
                sender.send_messages(ServiceBusMessage(f"{number}", partition_key=key))
        with client.get_queue_receiver(place.queue) as receiver:
            messages = receive(receiver, COUNT)
            for message in messages:
                receiver.complete_message(message)
    assert [str(message) for message in messages] == [f"{number}" for number in range(COUNT)]
    assert {message.partition_key for message in messages} == {key}
    assert len({(message.sequence_number or 0) >> 48 for message in messages}) == 1
