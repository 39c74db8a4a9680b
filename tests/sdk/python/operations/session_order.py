"""A session's messages come in the order in which they were sent, also after one was abandoned."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, own, receive_one

COUNT = 10


def run(place: Place) -> None:
    session = own("session")
    found = []
    with place.client() as client:
        with client.get_queue_sender(place.sessions) as sender:
            for number in range(COUNT):
                sender.send_messages(ServiceBusMessage(f"{number}", session_id=session))
        with client.get_queue_receiver(place.sessions, session_id=session) as receiver:
            receiver.abandon_message(receive_one(receiver))
            for _ in range(COUNT):
                message = receive_one(receiver)
                found.append(str(message))
                receiver.complete_message(message)
    assert found == [f"{number}" for number in range(COUNT)], found
