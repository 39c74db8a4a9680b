"""The stream reader without Spark around it: what it does with claims, when."""

import pickle
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue_spark.claims import QueryFenced
from partitionedqueue_spark.offsets import InvalidOffset
from partitionedqueue_spark.options import SourceOptions
from partitionedqueue_spark.partition import ClaimsLost, PartitionUnreadable
from partitionedqueue_spark.stream_reader import PartitionedQueueStreamReader
from spark.brokers import Brokers

ALL = ReadAllAvailable()


class Readers:
    """Readers of one queue; all are stopped in the end."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self.made: list[PartitionedQueueStreamReader] = []

    def new(self, **options: str) -> PartitionedQueueStreamReader:
        parsed = SourceOptions.parse({"queue": "flights", "brokers": self._brokers.option, **options})
        self.made.append(PartitionedQueueStreamReader(parsed))
        return self.made[-1]


@pytest.fixture
def readers(brokers: Brokers) -> Iterator[Readers]:
    readers = Readers(brokers)
    yield readers
    for reader in readers.made:
        reader.stop()


def read(reader: PartitionedQueueStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    """The numbers in a batch, read as executors do: from a pickled copy."""
    found = []
    for partition in reader.partitions(start, end):
        copy = pickle.loads(pickle.dumps(reader))
        for batch in copy.read(pickle.loads(pickle.dumps(partition))):
            batch.validate(full=True)
            found += [int(body) for body in batch["body"].to_pylist()]
    return found


def receive_all(brokers: Brokers) -> int:
    count = 0
    for server in brokers.servers:
        with BlockingBroker(server.address) as broker:
            while runs := broker.call(calls.receive(brokers.keys, most=1000, lock_ms=60_000)).runs:
                count += sum(len(run.messages) for run in runs)
    return count


def test_a_batch_read_again_is_the_same_batch_also_after_a_restart(brokers: Brokers, readers: Readers) -> None:
    brokers.send_numbered(5000)
    first = readers.new(fetchSize="256")
    start = first.initialOffset()
    end = first.latestOffset(start, ALL)
    once = read(first, start, end)
    assert sorted(once) == list(range(5000))
    assert read(first, start, end) == once
    first.stop()
    assert read(readers.new(), start, end) == once


def test_an_empty_queue_gives_the_start_and_leaves_nothing_behind(brokers: Brokers, readers: Readers) -> None:
    reader = readers.new()
    assert reader.latestOffset(reader.initialOffset(), ALL) == reader.initialOffset()
    for server in brokers.servers:
        with server.connect() as connection:
            assert connection.keys("*") == [brokers.keys.state.encode()]


def test_the_next_latest_offset_acknowledges_its_start(brokers: Brokers, readers: Readers) -> None:
    brokers.send_numbered(3000)
    reader = readers.new()
    end = reader.latestOffset(reader.initialOffset(), ALL)
    assert brokers.left() == 3000
    assert sum(totals.claimed for totals in brokers.totals()) == 3000
    assert reader.latestOffset(end, ALL) == end
    assert brokers.left() == 0


def test_a_limit_is_kept_and_a_share_that_is_not_used_goes_to_others(brokers: Brokers, readers: Readers) -> None:
    brokers.send_numbered(900)
    with BlockingBroker(brokers.servers[0].address) as broker:
        broker.call(calls.receive(brokers.keys, most=290, lock_ms=60_000))
    reader = readers.new()
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(310))
    assert end["o"] == {"0": 10, "1": 150, "2": 150}
    further = reader.latestOffset(end, ReadMaxRows(100))
    assert sum(further["o"].values()) == 410
    assert reader.reportLatestOffset() == further | {
        "o": {"0": 10, "1": 300, "2": 300},
        "backlog": 200,
        "backlogByPartition": {"0": 0, "1": 100, "2": 100},
    }


def test_available_now_ends_with_what_was_ready_when_it_began(brokers: Brokers, readers: Readers) -> None:
    brokers.send_numbered(300)
    reader = readers.new()
    reader.prepareForTriggerAvailableNow()
    brokers.send_numbered(300, first=300)
    offset, sizes = reader.initialOffset(), []
    for _ in range(10):
        end = reader.latestOffset(offset, ReadMaxRows(120))
        if end == offset:
            break
        sizes.append(len(read(reader, offset, end)))
        offset = end
    assert sizes == [120, 120, 60]
    assert brokers.left() == 300


def test_a_competing_receiver_gets_no_claimed_message_while_the_heartbeat_runs(
    brokers: Brokers, readers: Readers
) -> None:
    brokers.send_numbered(300)
    reader = readers.new(claimTimeout="1s")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    for _ in range(5):
        assert receive_all(brokers) == 0
        time.sleep(0.5)
    assert len(read(reader, start, end)) == 300


def test_lost_claims_fail_loudly_or_are_left_out(brokers: Brokers, readers: Readers) -> None:
    brokers.send_numbered(300)
    reader = readers.new(claimTimeout="1s")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    planned = reader.partitions(start, end)
    reader.stop()
    time.sleep(1.2)
    assert receive_all(brokers) == 300
    with pytest.raises(ClaimsLost, match="LOCK_LOST partition 0"):
        list(reader.read(planned[0]))
    with pytest.raises(ClaimsLost, match="LOCK_LOST partition 0"):
        readers.new().partitions(start, end)
    lenient = readers.new(failOnLockLost="false")
    assert read(lenient, start, end) == []
    brokers.send_numbered(30, first=300)
    assert sorted(read(lenient, end, lenient.latestOffset(end, ALL))) == list(range(300, 330))


def test_claims_lost_after_their_commit_are_not_read_twice_in_silence(brokers: Brokers, readers: Readers) -> None:
    brokers.send_numbered(30)
    reader = readers.new(claimTimeout="1s")
    end = reader.latestOffset(reader.initialOffset(), ALL)
    reader.stop()
    time.sleep(1.2)
    receive_all(brokers)
    with pytest.raises(ClaimsLost):
        readers.new().latestOffset(end, ALL)


def test_the_older_of_two_queries_on_one_group_is_fenced(brokers: Brokers, readers: Readers) -> None:
    brokers.send_numbered(300)
    older, newer = readers.new(), readers.new()
    end = older.latestOffset(older.initialOffset(), ReadMaxRows(30))
    assert newer.latestOffset(end, ReadMaxRows(30)) != end
    with pytest.raises(QueryFenced, match="FENCED partition 0: another run of this query has taken over"):
        older.latestOffset(end, ReadMaxRows(30))


def test_a_checkpoint_of_other_data_or_another_queue_is_refused(brokers: Brokers, readers: Readers) -> None:
    brokers.send_numbered(30)
    ahead = {"v": 1, "g": "gone", "o": {"0": 5, "1": 5, "2": 5}}
    with pytest.raises(PartitionUnreadable, match="partition 0: the checkpoint is ahead of the broker"):
        readers.new().latestOffset(ahead, ALL)
    with pytest.raises(InvalidOffset, match="a queue of 1 partitions; 3 brokers are given"):
        readers.new().latestOffset({"v": 1, "g": "other", "o": {"0": 5}}, ALL)


def test_a_broker_that_is_down_is_told_by_its_partition(brokers: Brokers, readers: Readers) -> None:
    brokers.send_numbered(30)
    brokers.servers[2].stop()
    reader = readers.new(brokerTimeout="0s")
    with pytest.raises(PartitionUnreadable, match=r"partition 2: broker 127\.0\.0\.1:\d+ cannot be reached"):
        reader.latestOffset(reader.initialOffset(), ALL)


def test_a_broker_that_is_killed_while_it_is_read_is_waited_for(brokers: Brokers, readers: Readers) -> None:
    with BlockingBroker(brokers.servers[0].address) as broker:
        broker.raw(("CONFIG", "SET", "appendfsync", "always"))  # a slow disk puts the writes of every second off
    brokers.send_numbered(3000)
    reader = readers.new(fetchSize="256")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    (planned, *_) = reader.partitions(start, end)
    batches = reader.read(planned)
    found = next(batches)["body"].to_pylist()
    brokers.servers[0].kill()
    back = threading.Timer(0.4, brokers.servers[0].start)
    back.start()
    for batch in batches:
        found += batch["body"].to_pylist()
    back.join()
    assert sorted(map(int, found)) == list(range(0, 3000, 3))
    assert reader.latestOffset(end, ALL) == end
    assert brokers.left() == 0
