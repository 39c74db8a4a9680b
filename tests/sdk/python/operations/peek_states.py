"""A peek shows whether a message is active, deferred or scheduled."""

from datetime import UTC, datetime, timedelta

from azure.servicebus import ServiceBusMessage, ServiceBusMessageState

from sdk.python.place import Place, receive_one


def run(place: Place) -> None:
    with (
        place.client() as client,
        client.get_queue_sender(place.queue) as sender,
        client.get_queue_receiver(place.queue) as receiver,
    ):
        sender.send_messages(ServiceBusMessage("deferred", partition_key="one"))
        deferred = receive_one(receiver)
        receiver.defer_message(deferred)
        sender.send_messages(ServiceBusMessage("active", partition_key="one"))
        [number] = sender.schedule_messages(
            ServiceBusMessage("scheduled", partition_key="one"), datetime.now(UTC) + timedelta(minutes=10)
        )
        states = {str(message): message.state for message in receiver.peek_messages(10, sequence_number=1)}
        assert states == {
            "deferred": ServiceBusMessageState.DEFERRED,
            "active": ServiceBusMessageState.ACTIVE,
            "scheduled": ServiceBusMessageState.SCHEDULED,
        }, states
        sender.cancel_scheduled_messages(number)
        assert deferred.sequence_number
        for message in receiver.receive_deferred_messages(deferred.sequence_number):
            receiver.complete_message(message)
        receiver.complete_message(receive_one(receiver))
