"""A session that is accepted by name gives its own messages only."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, nothing_comes, own, receive_one


def run(place: Place) -> None:
    one, other = own("session"), own("session")
    with place.client() as client:
        with client.get_queue_sender(place.sessions) as sender:
            for session in (one, other):
                sender.send_messages(ServiceBusMessage(session, session_id=session))
        for session in (one, other):
            with client.get_queue_receiver(place.sessions, session_id=session) as receiver:
                assert receiver.session.session_id == session
                message = receive_one(receiver)
                assert (str(message), message.session_id) == (session, session)
                receiver.complete_message(message)
                nothing_comes(receiver)
