"""The dead-letter queue of a queue with sessions is read without sessions."""

from azure.servicebus import ServiceBusMessage, ServiceBusSubQueue

from sdk.python.place import Place, own, receive_one


def run(place: Place) -> None:
    session = own("session")
    with place.client() as client:
        with client.get_queue_sender(place.sessions) as sender:
            sender.send_messages(ServiceBusMessage("unwanted", session_id=session))
        with client.get_queue_receiver(place.sessions, session_id=session) as receiver:
            receiver.dead_letter_message(receive_one(receiver), reason="why")
        with client.get_queue_receiver(place.sessions, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
            dead = receive_one(receiver)
            assert (str(dead), dead.session_id, dead.dead_letter_reason) == ("unwanted", session, "why")
            receiver.complete_message(dead)
