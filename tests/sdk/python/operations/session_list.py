"""The sessions that have messages or state are listed."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, own, receive_one


def run(place: Place) -> None:
    with_message, with_state = own("session"), own("session")
    with place.client() as client:
        with client.get_queue_sender(place.sessions) as sender:
            sender.send_messages(ServiceBusMessage("", session_id=with_message))
        with client.get_queue_receiver(place.sessions, session_id=with_state) as receiver:
            receiver.session.set_state(b"here")
        listed = set(client.list_queue_sessions(place.sessions))
        assert {with_message, with_state} <= listed, listed
        with client.get_queue_receiver(place.sessions, session_id=with_state) as receiver:
            receiver.session.set_state(None)
        with client.get_queue_receiver(place.sessions, session_id=with_message) as receiver:
            receiver.complete_message(receive_one(receiver))
        assert not {with_message, with_state} & set(client.list_queue_sessions(place.sessions))
