"""What a batch holds at most, and who else gets what: limits, sessions, competing receivers; without Spark around."""

import pickle
import threading
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows

from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.replies import Settlement
from partitionedqueue.model.message import Message
from partitionedqueue_spark.offsets import byte_shares
from partitionedqueue_spark.options import SourceOptions
from partitionedqueue_spark.stream_reader import PartitionedQueueStreamReader
from spark.brokers import Brokers

ALL = ReadAllAvailable()
Rows: TypeAlias = list[dict[str, Any]]


@pytest.fixture
def made() -> Iterator[list[PartitionedQueueStreamReader]]:
    readers: list[PartitionedQueueStreamReader] = []
    yield readers
    for reader in readers:
        reader.stop()


def new(brokers: Brokers, made: list[PartitionedQueueStreamReader], **options: str) -> PartitionedQueueStreamReader:
    parsed = SourceOptions.parse({"queue": "flights", "brokers": brokers.option, **options})
    made.append(PartitionedQueueStreamReader(parsed))
    return made[-1]


def tasks(reader: PartitionedQueueStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[Rows]:
    """The rows of each task."""
    copy = pickle.loads(pickle.dumps(reader))
    return [
        [row for batch in copy.read(partition) for row in batch.to_pylist()]
        for partition in reader.partitions(start, end)
    ]


def batches(
    reader: PartitionedQueueStreamReader, limit: ReadLimit, offset: dict[str, Any] | None = None
) -> Iterator[Rows]:
    """A query until nothing is left, batch by batch."""
    offset = offset or reader.initialOffset()
    while (end := reader.latestOffset(offset, limit)) != offset:
        yield [row for rows in tasks(reader, offset, end) for row in rows]
        offset = end


def test_bytes_bound_each_batch_by_no_more_than_a_message_in_each_partition(
    brokers: Brokers, made: list[PartitionedQueueStreamReader]
) -> None:
    for partition in range(3):
        brokers.send(partition, [Message(body=bytes(100 + 1000 * (n % 7))) for n in range(100)])
    reader = new(brokers, made, maxBytesPerTrigger="40000")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxBytes(40_000)
    sizes = [[len(row["body"]) for row in rows] for rows in batches(reader, limit)]
    assert sum(map(len, sizes)) == 300
    assert max(map(sum, sizes)) <= 40_000 + 3 * 6100
    assert len(sizes) < 40, "a batch does not leave most of its bytes unused"
    assert brokers.left() == 0


def test_where_a_message_hardly_fits_partitions_take_turns(
    brokers: Brokers, made: list[PartitionedQueueStreamReader]
) -> None:
    for partition in range(3):
        brokers.send(partition, [Message(body=bytes(10_000)) for _ in range(3)])
    reader = new(brokers, made, maxBytesPerTrigger="10000", maxMessagesPerTrigger="100")
    assert reader.getDefaultReadLimit() == ReadMaxRows(100)
    found = [[row["partition"] for row in rows] for rows in batches(reader, ReadMaxRows(100))]
    assert all(len(rows) == 1 for rows in found)
    assert sorted(partition for rows in found for partition in rows) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    brokers.send_numbered(9)
    once = new(brokers, made, maxBytesPerTrigger="1")
    assert [len(rows) for rows in batches(once, ALL)] == [9], "Trigger.Once has no limit"


@pytest.mark.parametrize(
    ("bytes_most", "held", "shares"),
    [(90, [5, 5, 5], [30, 30, 30]), (20, [5, 5, 5], [0, 10, 10]), (5, [5, 0, 5], [0, 0, 5]), (5, [0, 0, 0], [0, 0, 0])],
)
def test_bytes_are_spread_over_partitions_that_have_room(bytes_most: int, held: list[int], shares: list[int]) -> None:
    assert byte_shares(bytes_most, held, [10, 10, 10], turn=1) == shares


def test_a_sessions_messages_stay_in_order_in_one_task_whatever_tasks_are_allowed(
    brokers: Brokers, made: list[PartitionedQueueStreamReader]
) -> None:
    brokers.configure(sessions=True)
    for partition in range(3):
        for part in range(45):
            session = f"{partition}-{part % 9}"
            brokers.send(partition, [Message(body=b"%d" % (part * 20 + n), session_id=session) for n in range(20)])
    reader = new(brokers, made, maxTasksPerPartition="4")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    found = tasks(reader, start, end)
    assert len(found) == 3
    of_session: dict[str, list[int]] = {}
    for rows in found:
        for row in rows:
            of_session.setdefault(row["session_id"], []).append(int(row["body"]))
    assert len(of_session) == 27
    assert all(len(numbers) == 100 and numbers == sorted(numbers) for numbers in of_session.values())
    assert reader.latestOffset(end, ALL) == end
    assert brokers.left() == 0


def test_a_session_receiver_and_a_stream_never_have_the_same_session(
    brokers: Brokers, made: list[PartitionedQueueStreamReader]
) -> None:
    brokers.configure(sessions=True)
    for n in range(20):
        brokers.send(0, [Message(body=b"%d" % n, session_id="ab"[n % 2])])
    reader = new(brokers, made)
    with BlockingBroker(brokers.servers[0].address) as broker:
        held = broker.call(calls.accept_session(brokers.keys, "a")).session
        assert held is not None
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        (rows,) = tasks(reader, start, end)
        assert [row["session_id"] for row in rows] == ["b"] * 10
        assert broker.call(calls.accept_session(brokers.keys)).session is None
        broker.call(calls.release_session(brokers.keys, held))
        further = reader.latestOffset(end, ALL)
        assert broker.call(calls.accept_session(brokers.keys)).session is None
        (rows,) = tasks(reader, end, further)
        assert [int(row["body"]) for row in rows] == list(range(0, 20, 2))


def test_between_a_stream_and_receivers_every_message_comes_once(
    brokers: Brokers, made: list[PartitionedQueueStreamReader]
) -> None:
    """Receivers complete what they get while the stream claims and acknowledges, batch by batch."""
    brokers.send_numbered(6000)
    received: list[int] = []

    def receive(partition: int) -> None:
        with BlockingBroker(brokers.servers[partition].address) as broker:
            while runs := broker.call(calls.receive(brokers.keys, most=20, lock_ms=60_000)).runs:
                locks = [Settlement(run.lock, run.first, run.first + len(run.messages) - 1) for run in runs]
                assert broker.call(calls.complete(brokers.keys, locks)) == []
                received.extend(int(one[64:].rpartition(b"\xa0")[2][1:]) for run in runs for one in run.messages)

    reader = new(brokers, made)
    stream = batches(reader, ReadMaxRows(300))
    found = [int(row["body"]) for row in next(stream)]
    threads = [threading.Thread(target=receive, args=(partition,)) for partition in range(3)]
    for thread in threads:
        thread.start()
    found += [int(row["body"]) for rows in stream for row in rows]
    for thread in threads:
        thread.join(60)
    found += [int(row["body"]) for rows in batches(new(brokers, made), ALL) for row in rows]
    assert received, "receivers had a part of it"
    assert sorted(found + received) == list(range(6000))
    assert brokers.left() == 0
