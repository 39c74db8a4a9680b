"""The empty text is a session's id like any other."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, receive_one


def run(place: Place) -> None:
    with place.client() as client:
        with client.get_queue_sender(place.sessions) as sender:
            sender.send_messages(ServiceBusMessage("empty", session_id=""))
        with client.get_queue_receiver(place.sessions, session_id="") as receiver:
            assert receiver.session.session_id == ""
            message = receive_one(receiver)
            assert (str(message), message.session_id) == ("empty", "")
            receiver.session.set_state(b"its own")
            assert receiver.session.get_state() == b"its own"
            receiver.session.set_state(None)
            receiver.complete_message(message)
