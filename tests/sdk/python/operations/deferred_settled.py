"""A deferred message that was received can be abandoned (and stays deferred), renewed, dead-lettered and completed."""

from azure.servicebus import ServiceBusMessage, ServiceBusReceivedMessage, ServiceBusReceiver, ServiceBusSubQueue

from sdk.python.place import Place, receive, receive_one


def run(place: Place) -> None:
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            sender.send_messages([ServiceBusMessage("first"), ServiceBusMessage("second")])
        with client.get_queue_receiver(place.queue) as receiver:
            messages = receive(receiver, 2)
            for message in messages:
                receiver.defer_message(message)
            numbers = [message.sequence_number or 0 for message in messages]
            first, second = _deferred(receiver, numbers)
            receiver.abandon_message(first)
            receiver.renew_message_lock(second)
            receiver.dead_letter_message(second, reason="deferred", error_description="and then not wanted")
            [first] = _deferred(receiver, [first.sequence_number or 0])
            receiver.complete_message(first)
        with client.get_queue_receiver(place.queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
            dead = receive_one(receiver)
            receiver.complete_message(dead)
            assert (str(dead), dead.dead_letter_reason) == (str(second), "deferred")


def _deferred(receiver: ServiceBusReceiver, numbers: list[int]) -> list[ServiceBusReceivedMessage]:
    found = receiver.receive_deferred_messages(numbers)
    assert len(found) == len(numbers), f"{len(found)} of {len(numbers)} deferred messages"
    return found
