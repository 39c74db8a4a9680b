"""A renewed lock holds longer, again and again, beyond the queue's lock duration."""

import time
from datetime import UTC, datetime, timedelta

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, receive_one

LOCK_S = 5


def run(place: Place) -> None:
    with place.client() as client:
        with client.get_queue_sender(place.brief) as sender:
            sender.send_messages(ServiceBusMessage("held"))
        with client.get_queue_receiver(place.brief) as receiver:
            message = receive_one(receiver)
            began = time.monotonic()
            while time.monotonic() - began < LOCK_S + 1.5:
                until = receiver.renew_message_lock(message)
                assert until - datetime.now(UTC) > timedelta(seconds=LOCK_S - 2), until
                time.sleep(1)
            receiver.complete_message(message)
        assert not client.get_queue_receiver(place.brief).peek_messages(1)
