"""Whoever settles after the lock has run out is told that it was lost."""

import time

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageLockLostError

from sdk.python.place import Place, receive_one, refused


def run(place: Place) -> None:
    with place.client(retry_total=0) as client:
        with client.get_queue_sender(place.brief) as sender:
            sender.send_messages(ServiceBusMessage("too late"))
        with client.get_queue_receiver(place.brief) as receiver:
            message = receive_one(receiver)
            time.sleep(6)
            with refused(MessageLockLostError):
                receiver.complete_message(message)
            with refused(MessageLockLostError):
                receiver.renew_message_lock(message)
        with client.get_queue_receiver(place.brief) as receiver:
            receiver.complete_message(receive_one(receiver))
