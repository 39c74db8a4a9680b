"""How soon a single message is found, wherever it lies."""

import threading
import time

from azure.servicebus import ServiceBusMessage

from sdk.gateways import Bench
from sdk.python.place import receive_one

ROUNDS = 6


def assert_found_promptly(queues: Bench) -> None:
    """By a receiver that has just come, and by one that waits."""
    slowest = 0.0
    with queues.client() as client, client.get_queue_sender("plain") as sender:
        for number in range(ROUNDS):
            sender.send_messages(ServiceBusMessage("cold", partition_key=f"cold-{number}"))
            with client.get_queue_receiver("plain") as receiver:
                began = time.monotonic()
                receiver.complete_message(receive_one(receiver, within_s=10))
                slowest = max(slowest, time.monotonic() - began)
        with client.get_queue_receiver("plain") as receiver:
            for number in range(ROUNDS):
                sent_at: list[float] = []
                sending = threading.Timer(0.3, _send_noting, (queues, f"waiting-{number}", sent_at))
                sending.start()
                receiver.complete_message(receive_one(receiver, within_s=10))
                came_at = time.monotonic()
                sending.join()
                slowest = max(slowest, came_at - sent_at[0])
    assert slowest < 2, f"one took {slowest:.2f} s"


def _send_noting(queues: Bench, key: str, sent_at: list[float]) -> None:
    with queues.client() as client, client.get_queue_sender("plain") as sender:
        sender.send_messages(ServiceBusMessage("waited for", partition_key=key))
    sent_at.append(time.monotonic())
