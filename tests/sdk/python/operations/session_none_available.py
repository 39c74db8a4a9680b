"""Where no session has messages, asking for the next one times out."""

import time

from azure.servicebus import NEXT_AVAILABLE_SESSION
from azure.servicebus.exceptions import OperationTimeoutError

from sdk.python.place import Place, refused


def run(place: Place) -> None:
    began = time.monotonic()
    with (
        place.client(retry_total=0) as client,
        refused(OperationTimeoutError),
        client.get_queue_receiver(place.sessions, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=2),
    ):
        pass
    assert 1.5 < time.monotonic() - began < 15
