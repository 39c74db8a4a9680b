"""A session that another receiver holds cannot be accepted, and can be once that one has closed."""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import SessionCannotBeLockedError

from sdk.python.place import Place, own, receive_one, refused


def run(place: Place) -> None:
    session = own("session")
    with place.client(retry_total=0) as client:
        with client.get_queue_sender(place.sessions) as sender:
            sender.send_messages(ServiceBusMessage("held", session_id=session))
        with (
            client.get_queue_receiver(place.sessions, session_id=session),
            refused(SessionCannotBeLockedError),
            client.get_queue_receiver(place.sessions, session_id=session),
        ):
            pass
        with client.get_queue_receiver(place.sessions, session_id=session) as receiver:
            message = receive_one(receiver)
            assert message.delivery_count == 0
            receiver.complete_message(message)
