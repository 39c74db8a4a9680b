"""Browsing, receive-and-delete, dead letters, and what need not be read; without Spark around."""

import pickle
from typing import Any

import pytest
from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    In,
    LessThanOrEqual,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from harness.redis_servers import Broker
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.replies import Received, Settlement
from partitionedqueue.model.identifiers import sequence_number
from partitionedqueue.model.message import Message
from partitionedqueue_spark.batch_reader import FilteringReader, PartitionedQueueReader
from partitionedqueue_spark.connection import InvalidOption
from partitionedqueue_spark.marked_stream import BrowsingStreamReader, DeletingStreamReader
from partitionedqueue_spark.offsets import InvalidOffset
from partitionedqueue_spark.options import SourceOptions
from partitionedqueue_spark.stream_reader import PartitionedQueueStreamReader
from spark.brokers import Brokers

ALL = ReadAllAvailable()


def options(brokers: Brokers, **given: str) -> SourceOptions:
    return SourceOptions.parse({"queue": "flights", "brokers": brokers.option, **given})


def rows(reader: DataSourceReader | DataSourceStreamReader, planned: Any) -> list[dict[str, Any]]:
    """What tasks read, as executors do: from pickled copies."""
    copy, found = pickle.loads(pickle.dumps(reader)), []
    for partition in pickle.loads(pickle.dumps(planned)):
        for batch in copy.read(partition):
            batch.validate(full=True)
            found += batch.to_pylist()
    return found


def batch(reader: PartitionedQueueReader) -> list[dict[str, Any]]:
    return rows(reader, reader.partitions())


def numbers(found: list[dict[str, Any]]) -> list[int]:
    return sorted(int(row["body"]) for row in found)


def received(brokers: Brokers, partition: int, most: int) -> Received:
    with BlockingBroker(brokers.servers[partition].address) as broker:
        return broker.call(calls.receive(brokers.keys, most=most, lock_ms=60_000))


def locks(found: Received) -> list[Settlement]:
    return [Settlement(run.lock, run.first, run.first + len(run.messages) - 1) for run in found.runs]


def asked(server: Broker) -> dict[str, int]:
    """How often a broker was asked, by command."""
    with server.connect() as connection:
        return {name.partition("_")[2]: stats["calls"] for name, stats in connection.info("commandstats").items()}


def bodies_asked(brokers: Brokers) -> list[int]:
    return [asked(server).get("lrange", 0) for server in brokers.servers]


# ---- batches


def test_a_browse_tells_the_state_of_each_message_and_its_deliveries(brokers: Brokers) -> None:
    brokers.send(1, [Message(body=b"%d" % n) for n in range(5)])
    brokers.send(1, [Message(body=b"5", scheduled_enqueue_time_ms=2**42)])
    with BlockingBroker(brokers.servers[1].address) as broker:
        broker.call(calls.defer(brokers.keys, locks(received(brokers, 1, 1))))
        broker.call(calls.abandon(brokers.keys, locks(received(brokers, 1, 1))))
        received(brokers, 1, 2)
    found = batch(PartitionedQueueReader(options(brokers)))
    assert [(row["state"], row["delivery_count"]) for row in found] == [
        ("deferred", 1), ("locked", 0), ("locked", 0), ("active", 0), ("active", 0), ("scheduled", 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("filters", "expected", "asked_of"),
    [
        ([EqualTo(("partition",), 1)], {1: range(1, 601)}, {1}),
        ([In(("partition",), (0, 2)), GreaterThan(("partition",), 0)], {2: range(1, 601)}, {2}),
        ([EqualTo(("sequence_number",), sequence_number(2, 300))], {2: [300]}, {2}),
        (
            [GreaterThan(("sequence_number",), sequence_number(0, 590)),
             LessThanOrEqual(("sequence_number",), sequence_number(1, 3))],
            {0: range(591, 601), 1: range(1, 4)},
            {0, 1},
        ),
        ([In(("sequence_number",), (sequence_number(0, 1), sequence_number(1, 9)))], {0: [1], 1: [9]}, {0, 1}),
        ([EqualTo(("state",), "deferred")], {0: [1, 2]}, {0}),
        ([EqualTo(("state",), "nonsense")], {}, set()),
        ([EqualTo(("subject",), "x"), EqualTo(("partition",), 7)], {}, set()),
    ],
)  # fmt: skip
def test_filters_spare_brokers_what_cannot_be_asked_for(
    brokers: Brokers, filters: list[Filter], expected: dict[int, Any], asked_of: set[int]
) -> None:
    brokers.send_numbered(1800)
    with BlockingBroker(brokers.servers[0].address) as broker:
        broker.call(calls.defer(brokers.keys, locks(received(brokers, 0, 2))))
    before = bodies_asked(brokers)
    reader = FilteringReader(options(brokers, filterPushdown="true"))
    assert list(reader.pushFilters(filters)) == filters, "Spark looks once more"
    found = batch(reader)
    assert sorted(row["sequence_number"] for row in found) == [
        sequence_number(partition, number) for partition, several in expected.items() for number in several
    ]
    segments = [after - times for after, times in zip(bodies_asked(brokers), before, strict=True)]
    assert {partition for partition, times in enumerate(segments) if times} == asked_of
    if len(filters) == 1 and "sequence" in str(filters[0]):
        assert max(segments) == 1, "a segment that cannot hold it was read"


def test_columns_beside_the_messages_are_read_without_them(brokers: Brokers) -> None:
    brokers.send_numbered(1000)
    with BlockingBroker(brokers.servers[0].address) as broker:
        broker.call(calls.complete(brokers.keys, locks(received(brokers, 0, 10))))
    before = bodies_asked(brokers)
    few = options(brokers, columns="sequence_number, enqueued_time,state, partition")
    found = batch(PartitionedQueueReader(few))
    stream = PartitionedQueueStreamReader(few)
    end = stream.latestOffset(stream.initialOffset(), ALL)
    assert bodies_asked(brokers)[1:] == before[1:]
    assert len(rows(stream, stream.partitions(stream.initialOffset(), end))) == len(found) == 990
    assert list(found[0]) == ["sequence_number", "enqueued_time", "state", "partition"]
    stream.stop()


@pytest.mark.parametrize("tasks", [1, 3, 64])
def test_a_partition_may_be_cut_into_tasks(brokers: Brokers, tasks: int) -> None:
    brokers.send_numbered(3 * 1500)
    cut = options(brokers, maxTasksPerPartition=str(tasks))
    reader, stream = PartitionedQueueReader(cut), PartitionedQueueStreamReader(cut)
    planned = reader.partitions()
    assert len(planned) == 3 * min(tasks, 5)
    assert numbers(rows(reader, planned)) == list(range(4500))
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    claimed = stream.partitions(start, end)
    assert len(claimed) == 3 * min(tasks, 5)
    assert numbers(rows(stream, claimed)) == list(range(4500))
    stream.stop()


def test_a_batch_that_receives_and_deletes_takes_what_is_ready(brokers: Brokers) -> None:
    brokers.send_numbered(2500)
    received(brokers, 1, 100)
    reader = PartitionedQueueReader(options(brokers, mode="receiveAndDelete"))
    found = batch(reader)
    assert len(found) == 2400
    assert {row["delivery_count"] for row in found} == {1}
    assert brokers.left() == 100
    assert batch(reader) == []


def test_a_batch_cannot_consume_and_says_what_can(brokers: Brokers) -> None:
    with pytest.raises(InvalidOption, match=r"option 'mode' is 'consume'.*availableNow=True"):
        PartitionedQueueReader(options(brokers, mode="consume"))


# ---- streams


def test_a_stream_that_browses_takes_nothing_and_goes_on_where_it_was(brokers: Brokers) -> None:
    brokers.send_numbered(900)
    browse = options(brokers, mode="browse")
    reader = BrowsingStreamReader(browse)
    start = reader.initialOffset()
    first = reader.latestOffset(start, ReadMaxRows(300))
    assert first["o"] == {"0": 100, "1": 100, "2": 100}
    once = rows(reader, reader.partitions(start, first))
    assert rows(BrowsingStreamReader(browse), BrowsingStreamReader(browse).partitions(start, first)) == once
    second = reader.latestOffset(first, ALL)
    assert numbers(once + rows(reader, reader.partitions(first, second))) == list(range(900))
    assert reader.latestOffset(second, ALL) == second
    brokers.send(1, [Message(body=b"900"), Message(body=b"later", scheduled_enqueue_time_ms=2**42)])
    reported = reader.reportLatestOffset()
    assert reported is not None
    assert (reported["backlog"], reported["backlogByPartition"]) == (2, {"0": 0, "1": 2, "2": 0})
    third = reader.latestOffset(second, ALL)
    assert numbers(rows(reader, reader.partitions(second, third))) == [900]
    assert brokers.left() == 902
    assert all(totals.locked == totals.claimed == 0 for totals in brokers.totals())


def test_a_browse_begins_where_it_is_told_and_stays_there_in_a_replay(brokers: Brokers) -> None:
    brokers.send_numbered(30)
    latest = BrowsingStreamReader(options(brokers, mode="browse", startingPosition="latest"))
    start = latest.initialOffset()
    end = latest.latestOffset(start, ALL)
    assert latest.partitions(start, end) == []
    brokers.send_numbered(3, first=30)
    again = BrowsingStreamReader(options(brokers, mode="browse", startingPosition="latest"))
    assert again.partitions(start, end) == []
    assert numbers(rows(again, again.partitions(end, again.latestOffset(end, ALL)))) == [30, 31, 32]
    position = f'{{"0": 10, "2": {sequence_number(2, 11)}}}'
    named = BrowsingStreamReader(options(brokers, mode="browse", startingPosition=position))
    end = named.latestOffset(start, ALL)
    assert numbers(rows(named, named.partitions(start, end))) == sorted([27, 30, *range(1, 32, 3), 32])


def test_available_now_browses_what_was_there_when_it_began(brokers: Brokers) -> None:
    brokers.send_numbered(300)
    reader = BrowsingStreamReader(options(brokers, mode="browse"))
    reader.prepareForTriggerAvailableNow()
    first = reader.latestOffset(reader.initialOffset(), ReadMaxRows(200))
    brokers.send_numbered(300, first=300)
    second = reader.latestOffset(first, ReadMaxRows(200))
    assert sum(second["o"].values()) == 300
    assert reader.latestOffset(second, ReadMaxRows(200)) == second


def test_a_stream_that_receives_and_deletes_keeps_its_limit(brokers: Brokers) -> None:
    brokers.send_numbered(300)
    reader = DeletingStreamReader(options(brokers, mode="receiveAndDelete"))
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(120))
    planned = reader.partitions(start, end)
    found = rows(reader, planned)
    assert (len(found), brokers.left()) == (120, 180)
    assert len(rows(reader, planned)) == 120, "read again, it receives other messages: at most once"
    assert brokers.left() == 60


def test_a_checkpoint_of_another_mode_is_refused(brokers: Brokers) -> None:
    brokers.send_numbered(30)
    browsing = BrowsingStreamReader(options(brokers, mode="browse"))
    consuming = PartitionedQueueStreamReader(options(brokers))
    browsed = browsing.latestOffset(browsing.initialOffset(), ALL)
    with pytest.raises(InvalidOffset, match="written with option mode set to browse, and now it is consume"):
        consuming.latestOffset(browsed, ALL)
    claimed = consuming.latestOffset(consuming.initialOffset(), ALL)
    with pytest.raises(InvalidOffset, match="written with option mode set to consume, and now it is browse"):
        browsing.latestOffset(claimed, ALL)
    consuming.stop()


# ---- dead letters


@pytest.mark.parametrize("how", [{"subQueue": "deadLetter"}, {"queue": "flights/$deadletterqueue"}])
def test_dead_letters_are_read_and_consumed_as_any_queue(brokers: Brokers, how: dict[str, str]) -> None:
    brokers.send_numbered(30)
    with BlockingBroker(brokers.servers[2].address) as broker:
        broker.call(calls.dead_letter(brokers.keys, locks(received(brokers, 2, 4)), reason="tired", description="so"))
    dead = options(brokers, **how)
    found = batch(PartitionedQueueReader(dead))
    assert [int(row["body"]) for row in found] == [2, 5, 8, 11]
    assert {row["dead_letter_reason"] for row in found} == {"tired"}
    assert {row["dead_letter_error_description"] for row in found} == {"so"}
    assert {row["dead_letter_source"] for row in found} == {"flights"}
    assert [row["enqueued_sequence_number"] for row in found] == [sequence_number(2, n) for n in (1, 2, 3, 4)]
    stream = PartitionedQueueStreamReader(dead)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    assert numbers(rows(stream, stream.partitions(start, end))) == [2, 5, 8, 11]
    assert stream.latestOffset(end, ALL) == end
    stream.stop()
    assert [totals.dead_letters for totals in brokers.totals()] == [0, 0, 0]
    assert brokers.left() == 26
