import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from partitionedqueue.model.partitioning import partition_of
from spark.brokers import Brokers

pytestmark = pytest.mark.timeout(300)


def consume(frame: DataFrame, folder: Path, *, once: bool = True) -> list[int]:
    """Run a query to the end of what is there; gives the sizes of its batches."""
    query = (
        frame.selectExpr("cast(body as string) as body", "sequence_number")
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=once)
        .start()
    )
    query.awaitTermination()
    return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]


def stream(spark: SparkSession, brokers: Brokers, **options: str | int) -> DataFrame:
    return (
        spark.readStream.format("partitionedqueue").options(queue="flights", brokers=brokers.option, **options).load()
    )


def numbers(spark: SparkSession, output: Path) -> list[int]:
    return sorted(int(row.body) for row in spark.read.parquet(str(output)).select("body").collect())


def test_available_now_consumes_everything_once_over_several_starts(
    spark: SparkSession, brokers: Brokers, tmp_path: Path
) -> None:
    brokers.send_numbered(2500)
    frame = stream(spark, brokers, maxMessagesPerTrigger=1000)
    assert consume(frame, tmp_path) == [1000, 1000, 500]
    assert brokers.left() == 0
    brokers.send_numbered(700, first=2500)
    assert consume(frame, tmp_path) == [700]
    assert numbers(spark, tmp_path / "out") == list(range(3200))
    assert brokers.left() == 0


def test_a_killed_query_loses_and_doubles_nothing(spark: SparkSession, brokers: Brokers, tmp_path: Path) -> None:
    brokers.send_numbered(12_000)
    output, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    script = Path(__file__).parent / "consume.py"
    for wanted in (2, 5):
        with subprocess.Popen(
            [sys.executable, str(script), brokers.option, str(checkpoint), str(output)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        ) as process:
            deadline = time.monotonic() + 60
            while len(list((checkpoint / "offsets").glob("[0-9]*"))) < wanted and time.monotonic() < deadline:
                time.sleep(0.02)
            assert process.poll() is None
            os.killpg(process.pid, 9)
    assert brokers.left() > 0
    consume(stream(spark, brokers, maxMessagesPerTrigger=5000), tmp_path)
    assert numbers(spark, output) == list(range(12_000))
    assert brokers.left() == 0


def test_a_missing_broker_ends_the_query_with_its_partition(
    spark: SparkSession, brokers: Brokers, tmp_path: Path
) -> None:
    brokers.send_numbered(30)
    brokers.servers[1].stop()
    with pytest.raises(StreamingQueryException, match=r"partition 1: broker 127\.0\.0\.1:\d+ cannot be reached"):
        consume(stream(spark, brokers, brokerTimeout="0s"), tmp_path)


@pytest.mark.parametrize("partitions", [16, 80])
def test_sparks_own_hash_finds_the_partition_of_a_key(spark: SparkSession, partitions: int) -> None:
    keys = [f"N{n}" for n in range(2000)] + ["", "é", "日本", "x" * 128]
    frame = spark.createDataFrame([(key,) for key in keys], "key string")
    found = frame.selectExpr(
        "key", f"cast(pmod(shiftrightunsigned(xxhash64(key), 32), {partitions}) as int) as partition"
    )
    assert [row.partition for row in found.collect()] == [partition_of(key, partitions) for key in keys]
