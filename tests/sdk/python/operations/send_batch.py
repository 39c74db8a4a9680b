"""The SDK's batch takes messages until it is full, is sent, and all of them arrive."""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageSizeExceededError

from sdk.python.place import Place, receive

BODY = "x" * 10_000


def run(place: Place) -> None:
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            batch = sender.create_message_batch()
            count = 0
            try:
                while count < 1000:
                    batch.add_message(ServiceBusMessage(BODY))
                    count += 1
            except MessageSizeExceededError:
                pass
            assert 20 <= count < 1000, f"a batch takes {count} messages of 10 KB"
            sender.send_messages(batch)
        with client.get_queue_receiver(place.queue) as receiver:
            for message in receive(receiver, count, within_s=30):
                assert str(message) == BODY
                receiver.complete_message(message)
