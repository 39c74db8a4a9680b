import pytest

from harness.clock import Clock
from harness.deliveries import configure, contents, emptied, receive, send, send_one
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model.errors import BrokerFault, EntityDisabled, ImmutableSetting, Misplaced
from partitionedqueue.model.queue_spec import QueueSpec, QueueStatus


def test_a_broker_knows_which_partition_it_holds_and_refuses_to_be_another(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    assert broker.call(calls.totals(keys)).partitions == 0
    broker.call(calls.configure(keys, partition=3, partitions=16))
    broker.call(calls.configure(keys, partition=3, partitions=16))
    totals = broker.call(calls.totals(keys))
    assert (totals.partition, totals.partitions) == (3, 16)
    for partition, partitions in ((2, 16), (3, 32)):
        with pytest.raises(Misplaced, match="holds partition 3 of 16"):
            broker.call(calls.configure(keys, partition=partition, partitions=partitions))
    with pytest.raises(BrokerFault):
        broker.call(calls.configure(keys, partition=16, partitions=16))


def test_what_is_left_out_stays_as_it_was(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    configure(broker, keys, lock_ms=7_000, quota_bytes=1_000_000)
    configure(broker, keys, max_deliveries=3)
    configure(broker, keys)
    send(broker, keys, 1)
    assert receive(broker, keys, lock_ms=-1).locked_until_ms == clock.now_ms + 7_000
    assert broker.call(calls.totals(keys)).quota == 1_000_000


def test_all_that_a_queues_owner_says_is_taken(broker: BlockingBroker, keys: QueueKeys) -> None:
    spec = QueueSpec(name="flights", requires_session=True, requires_duplicate_detection=True, max_delivery_count=2_000)
    broker.call(calls.configure(keys, partition=0, partitions=1, settings=BrokerSettings.of(spec)))
    assert broker.call(calls.totals(keys)).quota == 2**30


@pytest.mark.parametrize("status", list(QueueStatus))
def test_a_broker_tells_what_it_was_told(broker: BlockingBroker, keys: QueueKeys, status: QueueStatus) -> None:
    assert broker.call(calls.settings(keys)) == BrokerSettings()
    told = BrokerSettings(
        lock_ms=300_000, max_deliveries=2_000, ttl_ms=2**45 + 5, dead_letter_expired=True, sessions=True,
        dedupe_ms=604_800_000, quota_bytes=2**45 + 3, status=status,
    )  # fmt: skip
    broker.call(calls.configure(keys, partition=79, partitions=80, settings=told))
    assert broker.call(calls.settings(keys)) == told


def test_sessions_and_whether_duplicates_are_detected_are_for_ever(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True, dedupe_ms=60_000)
    for change in ({"sessions": False}, {"dedupe_ms": 0}):
        with pytest.raises(ImmutableSetting):
            configure(broker, keys, **change)
    configure(broker, keys, sessions=True, dedupe_ms=20_000)
    plain = QueueKeys("plain")
    configure(broker, plain, lock_ms=5_000)
    for more in ({"sessions": True}, {"dedupe_ms": 60_000}):
        with pytest.raises(ImmutableSetting):
            configure(broker, plain, **more)


def test_a_refused_change_changes_nothing(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True, lock_ms=5_000)
    before = contents(broker)
    with pytest.raises(ImmutableSetting):
        configure(broker, keys, lock_ms=9_000, sessions=False)
    assert contents(broker) == before


def test_a_status_is_changed_to_and_fro(broker: BlockingBroker, keys: QueueKeys) -> None:
    for status, may_send, may_receive in (
        (QueueStatus.DISABLED, False, False),
        (QueueStatus.SEND_DISABLED, False, True),
        (QueueStatus.RECEIVE_DISABLED, True, False),
        (QueueStatus.ACTIVE, True, True),
    ):
        configure(broker, keys, status=status)
        for allowed, act in ((may_send, send_one), (may_receive, emptied)):
            if allowed:
                act(broker, keys)
                continue
            with pytest.raises(EntityDisabled):
                act(broker, keys)


def test_a_sub_queue_is_not_configured_by_itself(broker: BlockingBroker, keys: QueueKeys) -> None:
    for sub_queue in (keys.dead_letters, keys.transfers, keys.transfers.dead_letters):
        with pytest.raises(BrokerFault, match="BADCALL"):
            configure(broker, sub_queue, lock_ms=5_000)


def test_nonsense_is_refused_and_changes_nothing(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, lock_ms=5_000)
    before = contents(broker)
    for words in (
        ("lock_ms",),
        ("lock_ms", "0"),
        ("lock_ms", "300001"),
        ("max_deliveries", "2001"),
        ("max_deliveries", "-1"),
        ("ttl_ms", "x"),
        ("sessions", "2"),
        ("dedupe_ms", "604800001"),
        ("status", "Sleeping"),
        ("colour", "red"),
        ("lock_ms", "6000", "colour", "red"),
    ):
        with pytest.raises(BrokerFault, match="BADCALL"):
            broker.raw(("FCALL", "pq_configure", 1, keys.state, 0, 1, *words))
    assert contents(broker) == before
