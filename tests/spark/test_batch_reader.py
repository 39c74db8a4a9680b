from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.replies import Settlement
from partitionedqueue.model.identifiers import sequence_number
from partitionedqueue.model.message import Message, PropertyValue
from partitionedqueue.model.stored_message import encode_changes
from partitionedqueue_spark.schema import SCHEMA
from spark.brokers import Brokers

pytestmark = pytest.mark.timeout(300)


def browse(spark: SparkSession, brokers: Brokers, **options: Any) -> DataFrame:
    return spark.read.format("partitionedqueue").options(queue="flights", brokers=brokers.option, **options).load()


def test_every_column_of_a_message_comes_back_as_it_was_sent(spark: SparkSession, brokers: Brokers) -> None:
    before = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
    properties: dict[str, PropertyValue] = {
        "n": 7, "f": 1.5, "s": "ä", "yes": True, "none": None, "b": b"\x00\x01", "u": UUID(int=5),
    }  # fmt: skip
    brokers.send(1, [
        Message(body=b""),
        Message(body=b"whole", message_id="id-é", session_id="s", partition_key="s", time_to_live_ms=90_000,
                application_properties=properties),
        Message(body=b"\xff" * 2000, partition_key="N14228"),
    ])  # fmt: skip
    brokers.send(2, [Message(body=b"x")] * 600)
    frame = browse(spark, brokers)
    assert frame.schema == SCHEMA
    found = sorted(frame.where("partition = 1").collect(), key=lambda row: row.sequence_number)
    assert [row.sequence_number for row in found] == [sequence_number(1, n) for n in (1, 2, 3)]
    assert [bytes(row.body) for row in found] == [b"", b"whole", b"\xff" * 2000]
    assert [row.message_id for row in found] == [None, "id-é", None]
    assert [row.session_id for row in found] == [None, "s", None]
    assert [row.partition_key for row in found] == [None, "s", "N14228"]
    assert [row.time_to_live_ms for row in found] == [None, 90_000, None]
    assert [row.delivery_count for row in found] == [0, 0, 0]
    assert [row.application_properties for row in found] == [
        None,
        {
            "n": "7",
            "f": "1.5",
            "s": "ä",
            "yes": "true",
            "none": None,
            "b": "AAE=",
            "u": "00000000-0000-0000-0000-000000000005",
        },
        None,
    ]
    times = [row.enqueued_time for row in frame.select("enqueued_time").collect()]
    assert all(before <= time <= datetime.now(UTC).replace(tzinfo=None) for time in times)
    assert frame.groupBy("partition").count().orderBy("partition").collect() == [(1, 3), (2, 600)]


def test_a_browse_leaves_out_what_has_gone_and_shows_what_is_locked(spark: SparkSession, brokers: Brokers) -> None:
    brokers.send_numbered(3000)
    with BlockingBroker(brokers.servers[0].address) as broker:
        received = broker.call(calls.receive(brokers.keys, most=400, lock_ms=60_000))
        gone = [(run.lock, run.first + 1, run.first + len(run.messages) - 2) for run in received.runs]
        assert broker.call(calls.complete(brokers.keys, [Settlement(*place) for place in gone])) == []
        missing = {int(body) for run in received.runs for body in map(_body, run.messages[1:-1])}
    found = [int(bytes(row.body)) for row in browse(spark, brokers).select("body").collect()]
    assert sorted(found) == sorted(set(range(3000)) - missing)
    assert brokers.left() == len(found)


def test_application_properties_are_shown_as_they_were_changed(spark: SparkSession, brokers: Brokers) -> None:
    given: dict[str, PropertyValue] = {"kept": "1", "changed": "2", "removed": "3"}
    brokers.send(
        0, [Message(body=b"changed", application_properties=given), Message(body=b"bare"), Message(body=b"as it was")]
    )
    with BlockingBroker(brokers.servers[0].address) as broker:
        several: list[dict[str, PropertyValue]] = [{"changed": "x", "removed": None}, {"changed": "y", "new": 7}]
        for changes in several:
            received = broker.call(calls.receive(brokers.keys, most=2, lock_ms=60_000))
            locks = [Settlement(run.lock, run.first, run.first + len(run.messages) - 1) for run in received.runs]
            assert broker.call(calls.abandon(brokers.keys, locks, changes=encode_changes(changes))) == []
    found = {bytes(row.body): row.application_properties for row in browse(spark, brokers).collect()}
    assert found == {
        b"changed": {"kept": "1", "changed": "y", "new": "7"},
        b"bare": {"changed": "y", "new": "7"},
        b"as it was": None,
    }


def test_what_has_gone_is_left_out_also_where_its_bytes_were_given_back(spark: SparkSession, brokers: Brokers) -> None:
    brokers.send(0, [Message(body=b"%d" % n + b" " * 100_000) for n in range(200)])
    with BlockingBroker(brokers.servers[0].address) as broker:
        for _ in range(3):
            for run in broker.call(calls.receive(brokers.keys, most=1000, lock_ms=60_000)).runs:
                last = run.first + len(run.messages) - 2  # one of them stays
                assert broker.call(calls.complete(brokers.keys, [Settlement(run.lock, run.first, last)])) == []
        (bodies,) = broker.raw(("LRANGE", brokers.keys.segment(0), 0, -1))
    assert b"" in bodies, "this is about bodies that were blanked"
    found = browse(spark, brokers).select("sequence_number").collect()
    assert len(found) == brokers.left()
    assert 0 < len(found) < 150


def test_a_queue_with_sessions_is_browsed(spark: SparkSession, brokers: Brokers) -> None:
    brokers.configure(sessions=True)
    brokers.send(1, [Message(body=b"x", session_id="s")])
    assert [row.session_id for row in browse(spark, brokers).collect()] == ["s"]


def test_spark_hands_filters_over_where_option_and_configuration_say_so(spark: SparkSession, brokers: Brokers) -> None:
    brokers.send_numbered(900)
    setting = "spark.sql.python.filterPushdown.enabled"
    with pytest.raises(PySparkException, match=setting):
        browse(spark, brokers, filterPushdown="true").count()
    spark.conf.set(setting, "true")
    try:
        found = browse(spark, brokers, filterPushdown="true").where("partition = 1").select("body").collect()
    finally:
        spark.conf.unset(setting)
    assert sorted(int(bytes(row.body)) for row in found) == list(range(1, 900, 3))
    for partition, server in enumerate(brokers.servers):
        with server.connect() as connection:
            assert ("cmdstat_lrange" in connection.info("commandstats")) == (partition == 1)


def _body(stored: bytes) -> bytes:
    at, length = int.from_bytes(stored[20:24], "little"), int.from_bytes(stored[24:28], "little")
    return stored[at : at + length]


def test_an_empty_queue_is_an_empty_frame(spark: SparkSession, brokers: Brokers) -> None:
    assert browse(spark, brokers).count() == 0


def test_a_broker_that_is_down_is_told_by_its_partition(spark: SparkSession, brokers: Brokers) -> None:
    brokers.send_numbered(30)
    brokers.servers[1].stop()
    with pytest.raises(PySparkException, match=r"partition 1: broker 127\.0\.0\.1:\d+"):
        browse(spark, brokers, brokerTimeout="0s").count()


def test_brokers_out_of_order_or_missing_or_of_another_queue_are_refused(spark: SparkSession, brokers: Brokers) -> None:
    brokers.send_numbered(30)
    first, *others = brokers.option.split(",")
    with pytest.raises(PySparkException, match="holds partition 0 of 3, and it was given as number 0 of 1"):
        spark.read.format("partitionedqueue").options(queue="flights", brokers=first).load().count()
    wrong = ",".join([*others, first])
    with pytest.raises(PySparkException, match="in partition order"):
        spark.read.format("partitionedqueue").options(queue="flights", brokers=wrong).load().count()
    with pytest.raises(PySparkException, match="there is no queue flihgts in this broker"):
        spark.read.format("partitionedqueue").options(queue="flihgts", brokers=brokers.option).load().count()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"topik": "x"}, r"unknown option 'topik'; the options are queue, namespace, brokers, dataDir"),
        ({"failOnLockLost": "perhaps"}, "option 'failOnLockLost' is 'perhaps'; it must be true or false"),
        ({"claimTimeout": "soon"}, "option 'claimTimeout' is 'soon'"),
        (
            {"brokerTimeout": "2h"},
            "option 'brokerTimeout' is '2h'; it must be seconds, or like 60s or 5m, from 0s to 1h",
        ),
        ({"fetchSize": "1"}, "option 'fetchSize' is '1'; it must be a whole number from 256"),
        ({"dataDir": "/nowhere"}, "give only one of the options 'namespace'"),
    ],
)
def test_a_wrong_option_is_refused_by_name(
    spark: SparkSession, brokers: Brokers, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(PySparkException, match=sentence):
        browse(spark, brokers, **options).count()
