"""The next session that has messages is accepted without a name, each once."""

from contextlib import ExitStack

from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage

from sdk.python.place import Place, own, receive_one

COUNT = 3


def run(place: Place) -> None:
    wanted = {own("session") for _ in range(COUNT)}
    found = set()
    with ExitStack() as stack:
        client = stack.enter_context(place.client())
        with client.get_queue_sender(place.sessions) as sender:
            for session in wanted:
                sender.send_messages(ServiceBusMessage(session, session_id=session))
        for _ in range(COUNT):
            receiver = stack.enter_context(
                client.get_queue_receiver(place.sessions, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=10)
            )
            message = receive_one(receiver)
            assert message.session_id == receiver.session.session_id
            receiver.complete_message(message)
            found.add(receiver.session.session_id)
    assert found == wanted
