"""A message that nobody took in time is in the dead-letter queue, where its queue says so."""

from datetime import timedelta

from azure.servicebus import ServiceBusMessage, ServiceBusSubQueue

from sdk.python.place import Place, nothing_comes, own, receive_one


def run(place: Place) -> None:
    body = own("short")
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            sender.send_messages(ServiceBusMessage(body, time_to_live=timedelta(seconds=1)))
        with client.get_queue_receiver(place.queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
            dead = receive_one(receiver)
            assert (str(dead), dead.dead_letter_reason) == (body, "TTLExpiredException")
            receiver.complete_message(dead)
        with client.get_queue_receiver(place.queue) as receiver:
            nothing_comes(receiver)
