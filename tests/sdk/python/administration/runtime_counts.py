"""What a queue holds is added up over its partitions."""

import time

from sdk.python.place import Place


def run(place: Place) -> None:
    with place.administration_client() as client:
        deadline = time.monotonic() + 30
        while (found := client.get_queue_runtime_properties(place.administered)).active_message_count != 3:
            assert time.monotonic() < deadline, f"{found.active_message_count} messages"
            time.sleep(0.3)
        assert found.total_message_count == 3
        assert found.size_in_bytes
        assert found.dead_letter_message_count == found.scheduled_message_count == 0
        assert found.created_at_utc
        assert found.updated_at_utc
