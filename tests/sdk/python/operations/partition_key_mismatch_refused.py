"""A session id and a different partition key on one message are refused: by the SDK, and by the service."""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageProperties
from azure.servicebus.exceptions import ServiceBusError

from sdk.python.place import Place, own, refused


def run(place: Place) -> None:
    session = own("session")
    with refused(ValueError):
        ServiceBusMessage("", session_id=session, partition_key="another")
    past_the_sdk = AmqpAnnotatedMessage(
        data_body=b"",
        properties=AmqpMessageProperties(group_id=session),
        annotations={"x-opt-partition-key": "another"},
    )
    with place.client(retry_total=0) as client, client.get_queue_sender(place.sessions) as sender:
        with refused(ServiceBusError):
            sender.send_messages(past_the_sdk)
        assert not client.get_queue_receiver(place.queue).peek_messages(1)
