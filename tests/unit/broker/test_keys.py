from partitionedqueue.broker.keys import QueueKeys, place_of


def test_place_of_counts_from_one() -> None:
    assert [place_of(n) for n in (1, 256, 257)] == [(0, 0), (0, 255), (1, 0)]


def test_sub_queues_have_azures_paths_and_keys_of_their_own() -> None:
    keys = QueueKeys("flights")
    assert keys.dead_letters.state == "pq:flights/$DeadLetterQueue"
    assert keys.transfers.state == "pq:flights/$Transfer"
    assert keys.transfers.dead_letters.wake == "pq:flights/$Transfer/$DeadLetterQueue:wake"
    assert keys.wake == "pq:flights:wake"
