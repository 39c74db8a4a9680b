from dataclasses import fields

from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model.queue_spec import QueueSpec, QueueStatus


def test_a_queue_of_defaults_has_azures() -> None:
    assert BrokerSettings.of(QueueSpec(name="q", enable_partitioning=True)) == BrokerSettings(
        lock_ms=60_000,
        max_deliveries=10,
        ttl_ms=0,
        dead_letter_expired=False,
        sessions=False,
        dedupe_ms=0,
        quota_bytes=1 << 30,
        status=QueueStatus.ACTIVE,
    )


def test_the_window_counts_only_where_duplicates_are_detected() -> None:
    window_ms = 30_000
    quiet = QueueSpec(name="q", duplicate_detection_history_time_window_ms=window_ms)
    detects = QueueSpec(
        name="q", duplicate_detection_history_time_window_ms=window_ms, requires_duplicate_detection=True
    )
    assert BrokerSettings.of(quiet).dedupe_ms == 0
    assert BrokerSettings.of(detects).dedupe_ms == window_ms


def test_a_time_to_live_beyond_what_the_broker_counts_is_as_long_as_it_counts() -> None:
    assert BrokerSettings.of(QueueSpec(name="q", default_message_time_to_live_ms=1000)).ttl_ms == 1000
    assert BrokerSettings.of(QueueSpec(name="q", default_message_time_to_live_ms=2**63 - 1)).ttl_ms == 2**53


def test_the_quota_is_one_partitions_share() -> None:
    assert BrokerSettings.of(QueueSpec(name="q", enable_partitioning=True, size_gb=5)).quota_bytes == 1 << 30
    assert BrokerSettings.of(QueueSpec(name="q", size_gb=80)).quota_bytes == 80 << 30


def test_what_is_not_given_is_not_told() -> None:
    assert BrokerSettings().words() == ()
    settings = BrokerSettings(sessions=False, status=QueueStatus.SEND_DISABLED, ttl_ms=5)
    assert settings.words() == ("ttl_ms", 5, "sessions", 0, "status", "SendDisabled")


def test_all_that_a_queue_says_is_told() -> None:
    words = BrokerSettings.of(QueueSpec(name="q", requires_session=True)).words()
    assert words[::2] == tuple(field.name for field in fields(BrokerSettings))
    assert all(type(word) in (int, str) for word in words)
