"""A dead-lettered message is in the dead-letter queue, with reason, description and source."""

from azure.servicebus import ServiceBusMessage, ServiceBusSubQueue

from sdk.python.place import Place, nothing_comes, own, receive_one


def run(place: Place) -> None:
    body = own("unwanted")
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            sender.send_messages(ServiceBusMessage(body, application_properties={"kept": "yes"}))
        with client.get_queue_receiver(place.queue) as receiver:
            receiver.dead_letter_message(receive_one(receiver), reason="the reason", error_description="the words")
            nothing_comes(receiver)
        with client.get_queue_receiver(place.queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
            dead = receive_one(receiver)
            assert str(dead) == body
            assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("the reason", "the words")
            properties = dead.application_properties or {}
            assert properties.get(b"kept") == b"yes", properties
            receiver.complete_message(dead)
            assert not receiver.peek_messages(1)
