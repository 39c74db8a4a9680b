"""The receiver's iterator gives what is there and what comes later."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place

COUNT = 5


def run(place: Place) -> None:
    found = []
    with place.client() as client, client.get_queue_sender(place.queue) as sender:
        sender.send_messages(ServiceBusMessage("0"))
        with client.get_queue_receiver(place.queue, max_wait_time=10) as receiver:
            for message in receiver:
                receiver.complete_message(message)
                found.append(str(message))
                if len(found) == COUNT:
                    break
                sender.send_messages(ServiceBusMessage(f"{len(found)}"))
    assert found == [f"{number}" for number in range(COUNT)], found
