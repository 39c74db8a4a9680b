"""One message is sent and arrives."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, own, receive_one


def run(place: Place) -> None:
    body = own("body")
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            sender.send_messages(ServiceBusMessage(body))
        with client.get_queue_receiver(place.queue) as receiver:
            message = receive_one(receiver)
            assert str(message) == body
            assert message.message_id, "the service gives an id to a message that has none"
            receiver.complete_message(message)
