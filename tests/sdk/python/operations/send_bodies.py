"""Every kind of body: data, several data, none, a value, a sequence."""

from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType

from sdk.python.place import Place, receive_one


def run(place: Place) -> None:
    bodies = [
        (AmqpAnnotatedMessage(data_body=b"one"), AmqpMessageBodyType.DATA, [b"one"]),
        (AmqpAnnotatedMessage(data_body=[b"one", b"two"]), AmqpMessageBodyType.DATA, [b"one", b"two"]),
        (AmqpAnnotatedMessage(data_body=b""), AmqpMessageBodyType.DATA, [b""]),
        (AmqpAnnotatedMessage(value_body={b"a": 1}), AmqpMessageBodyType.VALUE, {b"a": 1}),
        (AmqpAnnotatedMessage(value_body=None), AmqpMessageBodyType.VALUE, None),
        (AmqpAnnotatedMessage(sequence_body=[b"a", 1]), AmqpMessageBodyType.SEQUENCE, [[b"a", 1]]),
    ]
    with (
        place.client() as client,
        client.get_queue_sender(place.queue) as sender,
        client.get_queue_receiver(place.queue) as receiver,
    ):
        for sent, kind, wanted in bodies:
            sender.send_messages(sent)
            got = receive_one(receiver)
            receiver.complete_message(got)
            assert got.body_type == kind, f"{kind} came as {got.body_type}"
            body = got.body if kind is AmqpMessageBodyType.VALUE else list(got.body)
            assert body == wanted, f"{kind}: {body!r}"
