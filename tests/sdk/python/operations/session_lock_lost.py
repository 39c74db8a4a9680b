"""Whoever goes on after a session's lock has run out is told that it was lost, and its message comes again, counted."""

import time

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError, SessionLockLostError

from sdk.python.place import Place, own, receive_one, refused

LOCK_S = 10


def run(place: Place) -> None:
    session = own("session")
    with place.client(retry_total=0) as client:
        with client.get_queue_sender(place.sessions) as sender:
            sender.send_messages(ServiceBusMessage("held too long", session_id=session))
        with client.get_queue_receiver(place.sessions, session_id=session) as receiver:
            message = receive_one(receiver)
            time.sleep(LOCK_S + 1)
            with refused(SessionLockLostError):
                receiver.session.renew_lock()
            with refused(SessionLockLostError, ServiceBusError):
                receiver.complete_message(message)
        with client.get_queue_receiver(place.sessions, session_id=session) as receiver:
            message = receive_one(receiver)
            assert message.delivery_count == 1
            receiver.complete_message(message)
