"""Frames and streams written by Spark itself: retried tasks, replayed batches, what it shows of an error."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from partitionedqueue.model.partitioning import partition_of
from spark.brokers import Brokers

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def detecting(brokers: Brokers) -> Brokers:
    brokers.configure(dedupe_ms=600_000)
    return brokers


def write(frame: DataFrame, brokers: Brokers, **options: str) -> None:
    frame.write.format("partitionedqueue").options(queue="flights", brokers=brokers.option, **options).mode(
        "append"
    ).save()


def stream(frame: DataFrame, brokers: Brokers, checkpoint: Path) -> None:
    """Run a query that writes into the queue to the end of what there is."""
    query = (
        frame.writeStream.format("partitionedqueue")
        .options(queue="flights", brokers=brokers.option, checkpointLocation=str(checkpoint))
        .queryName("written")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def bodies(brokers: Brokers) -> list[str]:
    return sorted(message.body.decode() for partition in brokers.held() for message in partition)


def failing_once() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Lets each task fail once, when some of its rows have gone on to the sink. Made here, it is sent by value."""

    def fail_the_first_attempt(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        for number, batch in enumerate(batches):
            if number and context.attemptNumber() == 0:
                raise RuntimeError("the first attempt fails")
            yield batch

    return fail_the_first_attempt


def test_a_frame_is_written_keyed_and_read_back(spark: SparkSession, brokers: Brokers) -> None:
    frame = spark.range(3000).selectExpr(
        "to_json(named_struct('id', id)) as body",
        "concat('k', id % 50) as partition_key",
        "map('parity', id % 2) as application_properties",
        "timestamp '2020-01-01' as scheduled_enqueue_time",
    )
    write(frame.repartition(4), brokers)
    read = spark.read.format("partitionedqueue").options(queue="flights", brokers=brokers.option).load()
    rows = read.selectExpr("get_json_object(cast(body as string), '$.id') as id", "*").collect()
    assert sorted(int(row.id) for row in rows) == list(range(3000))
    assert {row.partition_key: row.partition for row in rows} == {f"k{n}": partition_of(f"k{n}", 3) for n in range(50)}
    assert {row.application_properties["parity"] for row in rows} == {"0", "1"}


def test_a_retried_task_and_a_replayed_batch_leave_no_doubles_where_duplicates_are_detected(
    spark: SparkSession, detecting: Brokers, tmp_path: Path
) -> None:
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    source.mkdir()
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 100)
    frame = spark.readStream.schema("id long").option("maxFilesPerTrigger", 2).parquet(str(source))
    # A shuffle, whose rows come in another order each time; half of the bodies are there twice, and keyless.
    mixed = frame.selectExpr("string(id div 2) as body").repartition(2, "body")
    expected: list[str] = []
    for start in (0, 2000):
        spark.range(start, start + 2000, numPartitions=2).write.mode("append").parquet(str(source))
        expected += [str(n // 2) for n in range(start, start + 2000)]
        stream(mixed.mapInArrow(failing_once(), "body string"), detecting, checkpoint)
        assert bodies(detecting) == sorted(expected)
    # As it is where a driver dies between the sends and the commit: the last batch has no commit.
    (last,) = itertools.islice(sorted((checkpoint / "commits").glob("[0-9]*"), reverse=True), 1)
    for file in (last, last.with_name(f".{last.name}.crc")):
        file.unlink()
    stream(mixed, detecting, checkpoint)
    assert last.exists()
    assert bodies(detecting) == sorted(expected)
    write(spark.createDataFrame([("again",)], "body string"), detecting, writeId="nightly")
    write(spark.createDataFrame([("again",)], "body string"), detecting, writeId="nightly")
    assert bodies(detecting) == sorted([*expected, "again"])


def test_what_is_wrong_is_told_before_a_task_runs_or_with_its_row(
    spark: SparkSession, brokers: Brokers, tmp_path: Path
) -> None:
    frame = spark.range(10).selectExpr(
        "string(id) as body", "if(id = 7, 'a', null) as session_id", "'b' as partition_key"
    )
    with pytest.raises(PySparkException, match=r"InvalidRow: row \d of Spark partition \d \(session_id 'a', partition"):
        write(frame, brokers, messageId="none")
    with pytest.raises(PySparkException, match="InvalidColumn: column 'id' is none of a message's"):
        write(spark.range(1), brokers)
    with pytest.raises(PySparkException, match="a queue cannot be overwritten: write with mode"):
        frame.write.format("partitionedqueue").options(queue="flights", brokers=brokers.option).mode("overwrite").save()
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    with pytest.raises(StreamingQueryException, match="InvalidColumn: there is no column 'body'"):
        stream(rate.selectExpr("string(value) as subject"), brokers, tmp_path / "checkpoint")
