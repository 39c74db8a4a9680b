"""A session's state is set, read, kept after its messages, and cleared."""

from sdk.python.place import Place, own


def run(place: Place) -> None:
    session = own("session")
    with place.client() as client:
        with client.get_queue_receiver(place.sessions, session_id=session) as receiver:
            assert receiver.session.get_state() is None
            receiver.session.set_state(b"\x00state\xff")
            assert receiver.session.get_state() == b"\x00state\xff"
        with client.get_queue_receiver(place.sessions, session_id=session) as receiver:
            assert receiver.session.get_state() == b"\x00state\xff"
            receiver.session.set_state(None)
            assert receiver.session.get_state() is None
