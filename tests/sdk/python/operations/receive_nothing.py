"""A receive from an empty queue ends with nothing when its time is over, not before and not much later."""

import time

from sdk.python.place import Place


def run(place: Place) -> None:
    with place.client() as client, client.get_queue_receiver(place.queue) as receiver:
        began = time.monotonic()
        assert receiver.receive_messages(5, max_wait_time=2) == []
        took = time.monotonic() - began
    assert 1.5 < took < 6, f"it took {took:.1f} s"
