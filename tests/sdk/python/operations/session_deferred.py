"""Within a session a message is deferred, received by its number and completed."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, nothing_comes, own, receive_one


def run(place: Place) -> None:
    session = own("session")
    with place.client() as client:
        with client.get_queue_sender(place.sessions) as sender:
            sender.send_messages(ServiceBusMessage("later", session_id=session))
        with client.get_queue_receiver(place.sessions, session_id=session) as receiver:
            message = receive_one(receiver)
            receiver.defer_message(message)
            nothing_comes(receiver)
            assert message.sequence_number
            [deferred] = receiver.receive_deferred_messages(message.sequence_number)
            assert (str(deferred), deferred.session_id) == ("later", session)
            receiver.complete_message(deferred)
            assert not receiver.peek_messages(1, sequence_number=1)
