import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from partitionedqueue.model.message import Message
from spark.brokers import Brokers

pytestmark = pytest.mark.timeout(600)

JOB = Path(__file__).parents[2] / "spark-on-k8s" / "jobs" / "flights.py"
FLIGHTS = [
    {"carrier": "UA", "origin": "EWR", "hour": 5, "dep_delay": 2.0, "tailnum": "N14228"},
    {"carrier": "UA", "origin": "LGA", "hour": 5, "dep_delay": -5, "tailnum": None},
    {"carrier": "UA", "origin": "EWR", "hour": 6, "dep_delay": None, "tailnum": "N1"},
    {"carrier": "AA", "origin": "EWR", "hour": 5, "dep_delay": None, "tailnum": "N2"},
]


def test_the_job_counts_goes_on_from_its_checkpoint_and_ends_on_sigterm(
    spark: SparkSession, brokers: Brokers, tmp_path: Path
) -> None:
    messages = [Message(body=json.dumps(flight).encode()) for flight in FLIGHTS]
    for partition in range(3):
        brokers.send(partition, messages * 100)
    command = [
        *(sys.executable, str(JOB), "--queue", "flights", "--brokers", brokers.option),
        *("--checkpoint", str(tmp_path / "checkpoint"), "--output", str(tmp_path / "out")),
    ]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    once = subprocess.run(
        [*command, "--available-now"], capture_output=True, text=True, timeout=280, env=environment, check=False
    )
    assert once.returncode == 0, once.stderr
    (line,) = map(json.loads, once.stdout.splitlines())
    assert (line["batch"], line["rows"], line["rows_total"]) == (0, 1200, 1200)
    assert brokers.left() == 0

    brokers.send(0, messages)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as job:
        assert job.stdout is not None
        line = json.loads(job.stdout.readline())
        assert (line["batch"], line["rows"], line["rows_total"]) == (1, 4, 1204)
        time.sleep(0.5)
        job.terminate()
        assert job.wait(60) == 0

    def result(name: str, *by: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in spark.read.parquet(str(tmp_path / "out" / name)).orderBy(*by).collect()]

    assert result("by_carrier", "carrier") == [("AA", 301, 0, 0, None, 301), ("UA", 903, 602, -903, -1.5, 301)]
    assert result("by_origin_hour", "origin", "hour") == [
        ("EWR", 5, 602, 301, 602, 2.0, 301),
        ("EWR", 6, 301, 0, 0, None, 301),
        ("LGA", 5, 301, 301, -1505, -5.0, 0),
    ]
