"""A deferred message is received by its sequence number only."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, nothing_comes, own, receive_one


def run(place: Place) -> None:
    body = own("later")
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            sender.send_messages(ServiceBusMessage(body))
        with client.get_queue_receiver(place.queue) as receiver:
            message = receive_one(receiver)
            receiver.defer_message(message)
            nothing_comes(receiver)
            assert message.sequence_number
            [deferred] = receiver.receive_deferred_messages(message.sequence_number)
            assert str(deferred) == body
            assert deferred.lock_token
            receiver.complete_message(deferred)
            assert not receiver.peek_messages(1, sequence_number=message.sequence_number)
