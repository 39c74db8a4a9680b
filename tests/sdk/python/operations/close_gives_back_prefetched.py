"""Messages that a receiver fetched ahead and did not look at come back when it closes, as if never delivered."""

import time

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, receive

COUNT = 10


def run(place: Place) -> None:
    with place.client() as client:
        with client.get_queue_sender(place.brief) as sender:
            for number in range(COUNT):  # one by one: where duplicates are looked for, each goes by its own id
                sender.send_messages(ServiceBusMessage(f"{number}"))
        with client.get_queue_receiver(place.brief, prefetch_count=COUNT) as receiver:
            receiver.complete_message(receiver.receive_messages(1, max_wait_time=10)[0])
            time.sleep(0.5)
        with client.get_queue_receiver(place.brief) as receiver:
            messages = receive(receiver, COUNT - 1, within_s=10)
            for message in messages:
                receiver.complete_message(message)
    assert {message.delivery_count for message in messages} == {0}
