"""A second message with the id of the first is accepted and dropped; each partition key has its own ids."""

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, nothing_comes, own, receive


def run(place: Place) -> None:
    message_id = own("id")
    with place.client() as client:
        with client.get_queue_sender(place.brief) as sender:
            for key in (None, None, "one", "one", "another"):
                sender.send_messages(ServiceBusMessage(f"{key}", message_id=message_id, partition_key=key))
        with client.get_queue_receiver(place.brief) as receiver:
            messages = receive(receiver, 3)
            for message in messages:
                receiver.complete_message(message)
            nothing_comes(receiver)
    assert sorted(str(message) for message in messages) == ["None", "another", "one"]
