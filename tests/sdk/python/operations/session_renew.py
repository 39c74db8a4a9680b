"""A session's lock is renewed as a whole, beyond the queue's lock duration."""

import time
from datetime import UTC, datetime, timedelta

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, own, receive_one

LOCK_S = 10


def run(place: Place) -> None:
    session = own("session")
    with place.client() as client:
        with client.get_queue_sender(place.sessions) as sender:
            sender.send_messages(ServiceBusMessage("held", session_id=session))
        with client.get_queue_receiver(place.sessions, session_id=session) as receiver:
            assert receiver.session.locked_until_utc
            assert receiver.session.locked_until_utc > datetime.now(UTC)
            message = receive_one(receiver)
            for _ in range(3):
                time.sleep(LOCK_S * 0.4)
                until = receiver.session.renew_lock()
                assert until - datetime.now(UTC) > timedelta(seconds=LOCK_S / 2), until
                assert receiver.session.locked_until_utc == until
            receiver.complete_message(message)
