"""Many senders and receivers share one client."""

from contextlib import ExitStack

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, receive_one

LINKS = 8  # of which each is a connection here, and takes a second


def run(place: Place) -> None:
    with ExitStack() as stack:
        client = stack.enter_context(place.client())
        senders = [stack.enter_context(client.get_queue_sender(place.queue)) for _ in range(LINKS)]
        for number, sender in enumerate(senders):
            sender.send_messages(ServiceBusMessage(f"{number}"))
        receivers = [stack.enter_context(client.get_queue_receiver(place.queue)) for _ in range(LINKS)]
        bodies = []
        for receiver in receivers:
            message = receive_one(receiver)
            bodies.append(int(str(message)))
            receiver.complete_message(message)
        assert sorted(bodies) == list(range(LINKS)), bodies
