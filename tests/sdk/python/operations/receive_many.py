"""Three hundred messages in all partitions come, each once, in receives of up to fifty."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, nothing_comes

LISTS, IN_EACH = 30, 10


def run(place: Place) -> None:
    found: list[int] = []
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            for start in range(0, LISTS * IN_EACH, IN_EACH):
                sender.send_messages([ServiceBusMessage(f"{number}") for number in range(start, start + IN_EACH)])
        with client.get_queue_receiver(place.queue) as receiver:
            while len(found) < LISTS * IN_EACH:
                messages = receiver.receive_messages(50, max_wait_time=10)
                assert messages, f"after {len(found)} of {LISTS * IN_EACH} nothing came"
                for message in messages:
                    found.append(int(str(message)))
                    receiver.complete_message(message)
            nothing_comes(receiver)
    assert sorted(found) == list(range(LISTS * IN_EACH))
