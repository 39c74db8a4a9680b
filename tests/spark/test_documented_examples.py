"""Every example of docs/using/spark.md, in its order, against real brokers."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from harness.redis_servers import running_brokers
from partitionedqueue.model.message import Message
from spark.brokers import Brokers
from spark.jobs import loaded

pytestmark = pytest.mark.timeout(600)

PAGE = (Path(__file__).parents[2] / "docs/using/spark.md").read_text()
EXAMPLES = re.findall(r"^```(python|sql|sh)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
QUEUES = ("flights", "delays", "audit")
JOB = re.compile(r"python spark-on-k8s/jobs/(\w+)\.py (.*)")
FLIGHTS = 40


@pytest.fixture
def queues(tmp_path: Path) -> Iterator[dict[str, Brokers]]:
    """The queues that the page speaks of, in what looks like a folder of `pq up`."""
    with running_brokers(tmp_path / "brokers", 2, fsync="no") as servers:
        record = {"up": True, "brokers": [{"port": server.port} for server in servers]}
        folder = tmp_path / "pq-data"
        folder.mkdir()
        (folder / "namespace.json").write_text(json.dumps({"queues": dict.fromkeys(QUEUES, record)}))
        yield {name: Brokers(servers, name) for name in QUEUES}


def flights() -> list[dict[str, Any]]:
    return [
        {"tailnum": f"N{n % 7}", "carrier": "UA", "origin": "EWR", "hour": 5, "dep_delay": n * 3}
        for n in range(FLIGHTS)
    ]


def run(spark: SparkSession, language: str, text: str, names: dict[str, Any]) -> None:
    if language == "sql":
        for statement in filter(None, map(str.strip, text.split(";"))):
            spark.sql(statement).collect()
    elif language == "sh":
        for job, arguments in JOB.findall(text):
            assert loaded(job).main(shlex.split(arguments)) == 0
    else:
        exec(compile(text, "docs/using/spark.md", "exec"), names)


def test_every_example_of_the_page_runs(
    spark: SparkSession, queues: dict[str, Brokers], tmp_path: Path, jobs_end_nothing: None
) -> None:
    bodies = [json.dumps(flight) for flight in flights()]
    (tmp_path / "flights.jsonl").write_text("\n".join(bodies))
    names: dict[str, Any] = {"spark": spark}
    for language, text in EXAMPLES:
        messages = [Message(body=body.encode(), partition_key="N1") for body in bodies]
        queues["flights"].send(0, messages[: FLIGHTS // 2])
        queues["flights"].send(1, messages[FLIGHTS // 2 :])
        run(spark, language, text.replace("/data/", f"{tmp_path}/"), names)
        assert not spark.streams.active, text
    for folder in ("flights/out", "archive/out"):
        assert spark.read.parquet(str(tmp_path / folder)).count() >= FLIGHTS
    delayed = [m for partition in queues["delays"].held() for m in partition if m.application_properties]
    assert delayed
    assert {json.loads(m.body)["dep_delay"] > 60 for m in delayed} == {True}
    assert queues["audit"].left() >= FLIGHTS


def test_the_page_has_examples_of_reading_writing_and_jobs() -> None:
    assert {language for language, _ in EXAMPLES} == {"python", "sql", "sh"}
    written = "\n".join(text for _, text in EXAMPLES)
    for name in (".read.", ".readStream.", ".write.", ".writeStream.", "foreachBatch", "archive.py", "USING"):
        assert name in written
    assert "".join(JOB.findall(written)[0][0]) == "archive"
    assert len(re.findall(r"^```(?!text|$)\w+", PAGE, re.MULTILINE)) == len(EXAMPLES)
