"""A peek by the receiver of a session shows that session's messages only."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, own, receive

COUNT = 3


def run(place: Place) -> None:
    one, other = own("session"), own("session")
    with place.client() as client:
        with client.get_queue_sender(place.sessions) as sender:
            for number in range(COUNT):
                for session in (one, other):
                    sender.send_messages(ServiceBusMessage(f"{number}", session_id=session))
        for session in (one, other):
            with client.get_queue_receiver(place.sessions, session_id=session) as receiver:
                peeked = receiver.peek_messages(10, sequence_number=1)
                assert [(str(message), message.session_id) for message in peeked] == [
                    (f"{number}", session) for number in range(COUNT)
                ]
                for message in receive(receiver, COUNT):
                    receiver.complete_message(message)
