"""Several senders and receivers at once: what was sent is received, each message once."""

import threading
from concurrent.futures import ThreadPoolExecutor

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place

SENDERS, EACH, RECEIVERS = 3, 40, 3


def run(place: Place) -> None:
    found: list[str] = []
    enough = threading.Event()

    def send(sender_number: int) -> None:
        with place.client() as client, client.get_queue_sender(place.queue) as sender:
            for number in range(EACH):
                sender.send_messages(ServiceBusMessage(f"{sender_number}-{number}"))

    def receive() -> None:
        with place.client() as client, client.get_queue_receiver(place.queue) as receiver:
            while not enough.is_set():
                for message in receiver.receive_messages(10, max_wait_time=2):
                    receiver.complete_message(message)
                    found.append(str(message))
                if len(found) >= SENDERS * EACH:
                    enough.set()

    with ThreadPoolExecutor(SENDERS + RECEIVERS) as pool:
        working = [pool.submit(send, number) for number in range(SENDERS)]
        working += [pool.submit(receive) for _ in range(RECEIVERS)]
        enough.wait(40)
        enough.set()
        for each in working:
            each.result()
    assert sorted(found) == sorted(f"{sender}-{number}" for sender in range(SENDERS) for number in range(EACH))
