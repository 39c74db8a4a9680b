"""A receive that waits is woken by a message that comes."""

import threading
import time

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place


def run(place: Place) -> None:
    sent_at: list[float] = []

    def send() -> None:
        time.sleep(1.5)
        with place.client() as client, client.get_queue_sender(place.queue) as sender:
            sender.send_messages(ServiceBusMessage("wake up"))
            sent_at.append(time.monotonic())

    with place.client() as client, client.get_queue_receiver(place.queue) as receiver:
        sending = threading.Thread(target=send)
        sending.start()
        messages = receiver.receive_messages(1, max_wait_time=20)
        at = time.monotonic()
        sending.join()
        assert len(messages) == 1
        receiver.complete_message(messages[0])
    assert at - sent_at[0] < 3, f"it came {at - sent_at[0]:.1f} s after it was sent"
