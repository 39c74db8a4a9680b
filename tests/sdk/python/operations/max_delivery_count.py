"""After as many deliveries as the queue allows, three here, a message is dead-lettered."""

from azure.servicebus import ServiceBusMessage, ServiceBusSubQueue

from sdk.python.place import Place, nothing_comes, receive_one


def run(place: Place) -> None:
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            sender.send_messages(ServiceBusMessage("never right"))
        with client.get_queue_receiver(place.queue) as receiver:
            for earlier in range(3):
                message = receive_one(receiver)
                assert message.delivery_count == earlier
                receiver.abandon_message(message)
            nothing_comes(receiver)
        with client.get_queue_receiver(place.queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
            dead = receive_one(receiver)
            assert dead.dead_letter_reason == "MaxDeliveryCountExceeded"
            receiver.complete_message(dead)
