"""What the sink makes of Arrow batches, on real brokers and without a JVM."""

import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from harness.redis_servers import running_brokers
from partitionedqueue.model import limits
from partitionedqueue.model.errors import BrokerUnavailable, PartitionedQueueError
from partitionedqueue.model.message import Message
from partitionedqueue.model.partitioning import partition_of
from partitionedqueue.model.queue_spec import QueueStatus
from partitionedqueue_spark import schema
from partitionedqueue_spark.connection import InvalidOption
from partitionedqueue_spark.partition import PartitionUnreadable
from partitionedqueue_spark.sink_columns import COLUMNS, THE_BROKERS, InvalidColumn, InvalidRow, named
from partitionedqueue_spark.sink_ids import DerivedIds, TooManyRows
from partitionedqueue_spark.sink_options import SENDER_PASSWORD_VARIABLE, SinkOptions
from partitionedqueue_spark.sink_sending import NotWritten
from partitionedqueue_spark.writer import Destination, Written
from spark.brokers import Brokers

VECTORS = Path(__file__).parents[2] / "docs/reference/partitioning-vectors.json"
DETECTING = {"dedupe_ms": 600_000}
WRITE = itertools.count()


def write(
    to: Brokers, columns: dict[str, Any], *, write_id: str | None = None, task: int = 0, **options: str
) -> Written:
    """One task's rows, in Arrow batches of 100."""
    table = pa.table(columns)
    parsed = SinkOptions.parse({"queue": to.keys.name, "brokers": to.option} | options, {})
    destination = Destination.found(parsed, from_arrow_schema(table.schema))
    return destination.write(write_id or f"write {next(WRITE)}", task, iter(table.to_batches(max_chunksize=100)))


def everything(brokers: Brokers) -> list[Message]:
    return [message for partition in brokers.held() for message in partition]


@pytest.fixture
def detecting(brokers: Brokers) -> Brokers:
    brokers.configure(**DETECTING)
    return brokers


def test_rows_go_where_the_published_vectors_say(tmp_path: Path) -> None:
    vectors = json.loads(VECTORS.read_text())["vectors"]
    keys = [vector["key"] for vector in vectors]
    with running_brokers(tmp_path, 16, fsync="no") as servers:
        for number, column in enumerate(("session_id", "partition_key", "message_id")):
            brokers = Brokers(servers, f"by-{number}")
            brokers.configure(**DETECTING)
            write(brokers, {column: keys, "body": [b""] * len(keys)})
            found = {getattr(m, column): place for place, messages in enumerate(brokers.held()) for m in messages}
            assert found == {vector["key"]: vector["partitions"]["16"] for vector in vectors}


def test_every_column_arrives_as_it_was_given(brokers: Brokers) -> None:
    columns = {
        "Body": ["text é", "2"],
        "message_id": ["a", None],
        "session_id": ["s", None],
        "partition_key": ["s", None],
        "content_type": ["application/json", None],
        "subject": ["news", None],
        "correlation_id": ["c", None],
        "to": ["you", None],
        "reply_to": ["me", None],
        "reply_to_session_id": ["mine", None],
        "time_to_live_ms": [86_400_000, None],
        "application_properties": pa.array([[("one", 1), ("none", None)], None], pa.map_(pa.string(), pa.int64())),
    }
    assert write(brokers, columns, messageId="none") == Written(2, 0)
    plain, full = sorted(everything(brokers), key=lambda message: message.message_id or "")
    assert plain == Message(body=b"2")
    assert full == Message(
        body="text é".encode(), message_id="a", session_id="s", partition_key="s", content_type="application/json",
        subject="news", correlation_id="c", to="you", reply_to="me", reply_to_session_id="mine",
        time_to_live_ms=86_400_000, application_properties={"one": 1, "none": None},
    )  # fmt: skip


def test_a_struct_of_properties_keeps_the_type_of_each(brokers: Brokers) -> None:
    kinds = {"flag": pa.bool_(), "small": pa.int8(), "half": pa.float32(), "raw": pa.binary(), "text": pa.string()}
    given = [{"flag": True, "small": -1, "half": 0.5, "raw": b"\0", "text": "x"}, {"flag": False, "text": None}]
    write(brokers, {"body": [b"1", b"2"], "application_properties": pa.array(given, pa.struct(list(kinds.items())))})
    found = {message.body: message.application_properties for message in everything(brokers)}
    assert found == {b"1": given[0], b"2": {"flag": False}}


def test_a_scheduled_row_is_not_there_before_its_time(brokers: Brokers) -> None:
    later_us = 4_102_444_800_000_001  # 2100-01-01, and a microsecond
    times = pa.array([later_us, None], pa.timestamp("us", tz="UTC"))
    write(brokers, {"body": [b"later", b"now"], "scheduled_enqueue_time": times})
    totals = brokers.totals()
    assert (sum(t.scheduled for t in totals), sum(t.ready for t in totals)) == (1, 1)
    (scheduled,) = [m for m in everything(brokers) if m.scheduled_enqueue_time_ms is not None]
    assert scheduled.scheduled_enqueue_time_ms == later_us // 1000 + 1


def test_rows_of_one_key_stay_in_order_and_large_ones_go_too(brokers: Brokers) -> None:
    count = 1500
    columns = {
        "body": [b"%06d" % n + bytes(n % 7 * 1000) for n in range(count)],
        "partition_key": [f"key {n % 10}" for n in range(count)],
    }
    write(brokers, columns)
    found: dict[str | None, list[int]] = {}
    for message in everything(brokers):
        found.setdefault(message.partition_key, []).append(int(message.body[:6]))
    assert found == {f"key {key}": list(range(key, count, 10)) for key in range(10)}


def test_keyless_rows_spread_and_pass_by_a_partition_that_is_down(brokers: Brokers) -> None:
    brokers.servers[1].stop()
    write(brokers, {"body": [b"%d" % n for n in range(900)]}, brokerTimeout="20s")
    brokers.servers[1].start()
    counts = [totals.messages for totals in brokers.totals()]
    assert counts[1] == 0
    assert sum(counts) == 900
    assert min(counts[0], counts[2]) > 200


def test_a_keyed_row_whose_partition_is_down_is_named_with_it(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CALL_TIMEOUT_S_DEFAULT", 0.5)  # nobody answers, so none is in a hurry
    brokers.servers[2].stop()
    keys = [key for key in (f"k{n}" for n in range(30)) if partition_of(key, 3) == 2]
    columns = {"body": [b""] * len(keys), "partition_key": keys}
    words = r"row 0 of Spark partition 7 \(message_id '\w{32}', partition_key 'k\d+'\): partition 2 .* is down: not"
    with pytest.raises(NotWritten, match=words) as it:
        write(brokers, columns, task=7, brokerTimeout="0s")
    assert isinstance(it.value.__cause__, BrokerUnavailable)


def test_rows_that_are_written_again_are_dropped_in_any_order(detecting: Brokers) -> None:
    bodies = [b"%d" % (n // 3) for n in range(300)]  # each of them three times
    assert write(detecting, {"body": bodies[:200]}, write_id="batch").duplicates == 0
    assert write(detecting, {"body": bodies[::-1]}, write_id="batch") == Written(300, 200)
    assert sorted(message.body for message in everything(detecting)) == sorted(bodies)
    assert len({message.message_id for message in everything(detecting)}) == 300


def test_another_write_another_task_or_another_row_is_no_duplicate(detecting: Brokers) -> None:
    row: dict[str, Any] = {"body": [b"the same"], "subject": ["one"]}
    for columns, write_id, task in ((row, "a", 0), (row, "b", 0), (row, "a", 1), (row | {"subject": ["two"]}, "a", 0)):
        assert write(detecting, columns, write_id=write_id, task=task) == Written(1, 0)
    assert detecting.left() == 4


def test_without_detection_a_repeat_is_stored_under_the_same_message_id(brokers: Brokers) -> None:
    for _ in range(2):
        assert write(brokers, {"body": [b"one"]}, write_id="batch") == Written(1, 0)
    first, second = everything(brokers)
    assert first == second
    assert first.message_id is not None


def test_a_message_id_of_the_rows_own_wins_and_none_need_be_derived(detecting: Brokers) -> None:
    write(detecting, {"body": [b"1"], "message_id": ["mine"]})
    assert write(detecting, {"body": [b"2"], "message_id": ["mine"]}).duplicates == 1
    write(detecting, {"body": [b"3"]}, messageId="none")
    assert {message.message_id for message in everything(detecting)} == {"mine", None}


def test_more_rows_than_can_be_told_apart_are_refused() -> None:
    ids = DerivedIds("write", 0, rows_max=2)
    assert len({ids.next(b"1", ()), ids.next(b"2", ()), ids.next(b"1", ())}) == 3
    with pytest.raises(TooManyRows, match="one task writes more than 2 rows"):
        ids.next(b"3", ())


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"subject": ["x"]}, "there is no column 'body'"),
        ({"body": [1]}, "column 'body' is bigint; it must be binary or string"),
        ({"body": ["x"], "colour": ["red"]}, "column 'colour' is none of a message's: body, message_id"),
        ({"body": ["x"], "sequence_number": [1]}, "column 'sequence_number' is the broker's to give; drop it"),
        ({"body": ["x"], "Body": ["x"]}, "column 'Body' is there twice"),
        ({"body": ["x"], "session_id": [1]}, "column 'session_id' is bigint; it must be string"),
        ({"body": ["x"], "time_to_live_ms": [1.5]}, "column 'time_to_live_ms' is double; it must be a whole number"),
        (
            {"body": ["x"], "scheduled_enqueue_time": pa.array([0], pa.timestamp("us"))},
            "column 'scheduled_enqueue_time' is timestamp_ntz; it must be timestamp",
        ),
        (
            {"body": ["x"], "application_properties": ["{}"]},
            "'application_properties' is string; it must be map<string",
        ),
        (
            {"body": ["x"], "application_properties": pa.array([{"a": [1]}])},
            "'application_properties' has values of type array<bigint>",
        ),
    ],
)
def test_a_frame_that_is_none_of_messages_is_refused_by_its_column(columns: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidColumn, match=sentence):
        named(from_arrow_schema(pa.table(columns).schema))


def test_every_column_that_is_read_can_be_written_or_is_known_as_the_brokers() -> None:
    assert set(schema.COLUMNS) == {*COLUMNS, *THE_BROKERS}
    assert not {*COLUMNS} & {*THE_BROKERS}


def test_unknown_columns_can_be_left_out(brokers: Brokers) -> None:
    write(brokers, {"colour": ["red"], "body": ["x"], "partition": [3]}, ignoreUnknownColumns="true")
    assert [message.body for message in everything(brokers)] == [b"x"]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"body": None}, r"row 150 of Spark partition 4: its body is null"),
        ({"session_id": "a", "partition_key": "b"}, r"\(session_id 'a', partition_key 'b'\): SessionId 'a' and Partit"),
        ({"message_id": "x" * 129}, r"\(message_id 'x{60}'\): MessageId has 129 characters; at most 128"),
        ({"time_to_live_ms": 0}, r"row 150 of Spark partition 4: TimeToLive is 0 ms; it must be positive"),
        ({"body": bytes(256 * 1024)}, r"row 150 of Spark partition 4: a message of 262,\d+ bytes .* is over the limit"),
    ],
)
def test_a_row_that_is_no_message_is_named(brokers: Brokers, row: dict[str, Any], sentence: str) -> None:
    rows = [{"body": b"fine"}] * 150 + [{"body": b""} | row]
    columns = {name: [one.get(name) for one in rows] for name in {"body": b"", **row}}
    with pytest.raises(InvalidRow, match=sentence):
        write(brokers, columns, task=4, messageId="none")


def test_in_a_queue_with_sessions_every_row_has_one(brokers: Brokers) -> None:
    brokers.configure(sessions=True)
    columns = {"body": [b"%d" % n for n in range(300)], "session_id": [f"s{n % 20}" for n in range(300)]}
    assert write(brokers, columns).rows == 300
    assert brokers.left() == 300
    with pytest.raises(InvalidRow, match=r"row 0 .*: queue flights has sessions, and the row has no session_id"):
        write(brokers, {"body": [b""]})


def test_what_a_broker_refuses_is_told_with_the_row(brokers: Brokers) -> None:
    brokers.configure(quota_bytes=1)
    with pytest.raises(
        NotWritten, match=r"row \d+ of Spark partition 0 \(message_id '\w+', partition_key 'k'\): .* is full"
    ):
        write(brokers, {"body": [bytes(100)] * 9, "partition_key": ["k"] * 9})


def test_a_queue_that_takes_no_messages_or_is_not_there_is_said_before_anything_runs(brokers: Brokers) -> None:
    brokers.configure(status=QueueStatus.SEND_DISABLED)
    with pytest.raises(InvalidOption, match="flights takes no messages now; its status is SendDisabled"):
        write(brokers, {"body": [b""]})
    with pytest.raises(PartitionUnreadable, match="there is no queue orders in this broker"):
        write(brokers, {"body": [b""]}, queue="orders")
    with pytest.raises(PartitionUnreadable, match="partition 0: this broker holds partition 1 of 3"):
        write(brokers, {"body": [b""]}, brokers=",".join(brokers.option.split(",")[1:]))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"fetchSize": "300"}, "unknown option 'fetchSize'; the options are queue, "),
        ({"messageId": "mine"}, "option 'messageId' is 'mine'; it must be one of derived, none"),
        ({"writeId": ""}, "option 'writeId' has 0 characters"),
        ({"queue": "q/$DeadLetterQueue"}, "what is in a sub-queue comes there by itself"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidOption, match=sentence) as it:
        SinkOptions.parse({"queue": "q", "brokers": "a:1"} | options, {})
    assert isinstance(it.value, PartitionedQueueError)


def test_a_stream_hands_its_own_options_on_and_a_job_that_reads_too_has_two_passwords() -> None:
    given = {"queue": "q", "namespace": "shop", "checkpointlocation": "x", "queryname": "y"}
    options = SinkOptions.parse(given, {SENDER_PASSWORD_VARIABLE: "secret", "PQ_BROKER_PASSWORD": "another"})
    assert (options.username, options.password) == ("spark-sender", "secret")
    assert "secret" not in repr(options)
