"""Every property that the service names arrives as it was sent, with those that the service adds."""

from datetime import UTC, datetime, timedelta

from azure.servicebus import ServiceBusMessage

from sdk.python.place import Place, own, receive_one


def run(place: Place) -> None:
    sent = ServiceBusMessage(
        "all of them",
        message_id=own("id"),
        content_type="text/plain; charset=utf-8",
        correlation_id="correlated",
        subject="subject",
        to="to",
        reply_to="reply-to",
        reply_to_session_id="reply-to-session",
        partition_key="key",
        time_to_live=timedelta(minutes=10),
    )
    with place.client() as client:
        with client.get_queue_sender(place.queue) as sender:
            sender.send_messages(sent)
        with client.get_queue_receiver(place.queue) as receiver:
            got = receive_one(receiver)
            now = datetime.now(UTC)
            assert got.lock_token
            assert got.locked_until_utc  # of which a settled message knows nothing
            assert got.locked_until_utc > now
            receiver.complete_message(got)
    named = ("message_id", "content_type", "correlation_id", "subject", "to", "reply_to", "reply_to_session_id",
             "partition_key", "time_to_live")  # fmt: skip
    for name in named:
        assert getattr(got, name) == getattr(sent, name), f"{name}: {getattr(got, name)!r}"
    assert got.sequence_number
    assert got.sequence_number > 0
    assert got.enqueued_time_utc
    assert abs(got.enqueued_time_utc - now) < timedelta(seconds=60)
    assert got.expires_at_utc == got.enqueued_time_utc + timedelta(minutes=10)
    assert got.delivery_count == 0
