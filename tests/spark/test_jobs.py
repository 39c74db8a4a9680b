"""The jobs that come along, on real brokers. Each runs in this process's session; flights has a file of its own."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from harness.deliveries import settlements
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.model.message import Message
from spark.brokers import Brokers
from spark.jobs import JOBS, loaded

pytestmark = pytest.mark.timeout(600)


def dead_letter(brokers: Brokers, partition: int, count: int, reason: str = "", description: str = "") -> None:
    with BlockingBroker(brokers.servers[partition].address) as broker:
        received = broker.call(calls.receive(brokers.keys, most=count))
        refused = broker.call(
            calls.dead_letter(brokers.keys, settlements(received), reason=reason, description=description)
        )
        assert refused == []


def test_the_archive_has_every_message_once_in_folders_by_day(
    spark: SparkSession, jobs_end_nothing: None, brokers: Brokers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = loaded("archive")
    command = [
        *("--queue", "flights", "--brokers", brokers.option, "--available-now", "--max-messages-per-trigger", "700"),
        *("--checkpoint", str(tmp_path / "checkpoint"), "--output", str(tmp_path / "out")),
    ]
    before = datetime.now(UTC).date()
    for first in (0, 1000):
        brokers.send_numbered(1000, first=first)
        assert archive.main(command) == 0
        assert brokers.left() == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["batch"], line["rows"]) for line in lines] == [(0, 700), (1, 300), (2, 700), (3, 300)]
    found = spark.read.parquet(str(tmp_path / "out"))
    assert sorted(int(row.body) for row in found.select("body").collect()) == list(range(2000))
    days = {row.date for row in found.select("date").distinct().collect()}
    assert days <= {before, datetime.now(UTC).date()}
    assert {folder.name for folder in (tmp_path / "out").glob("date=*")} == {f"date={day}" for day in days}


def test_the_report_of_dead_letters_groups_by_reason_and_takes_nothing(
    spark: SparkSession, jobs_end_nothing: None, brokers: Brokers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = loaded("dead_letter_report")
    where = ["--queue", "flights", "--brokers", brokers.option]
    assert report.main(where) == 0
    assert capsys.readouterr().out == "queue flights has no dead letters\n"
    for partition in range(3):
        brokers.send(partition, [Message(body=b"%d" % n) for n in range(20)])
        dead_letter(brokers, partition, 3, "Poison", f"cannot be parsed by {partition}")
    dead_letter(brokers, 1, 2)
    assert report.main([*where, "--json", "--output", str(tmp_path / "report")]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["reason"], row["messages"]) for row in rows] == [("Poison", 9), ("(none given)", 2)]
    assert rows[0]["example"] == "cannot be parsed by 0"
    assert rows[1]["oldest_sequence_number"] >> 48 == 1
    assert [row.reason for row in spark.read.parquet(str(tmp_path / "report")).collect()] == [
        "Poison",
        "(none given)",
    ]
    assert report.main(where) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["REASON", "MESSAGES", "OLDEST", "NEWEST", "SEQUENCE", "NUMBER", "EXAMPLE"]
    assert [line.split()[0] for line in table[1:]] == ["Poison", "(none"]
    assert sum(totals.dead_letters for totals in brokers.totals()) == 11


@pytest.mark.parametrize("name", ["flights", "archive", "dead_letter_report", "send_lines"])
def test_every_job_says_how_it_is_run(name: str) -> None:
    ended = subprocess.run(
        [sys.executable, str(JOBS / f"{name}.py"), "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "--queue" in ended.stdout
    assert f"python {name}.py" in ended.stdout


@pytest.mark.parametrize(
    ("name", "argv", "sentence"),
    [
        ("archive", ["--queue", "q"], "the following arguments are required: --checkpoint, --output"),
        ("archive", ["--max-messages-per-trigger", "0"], "'0' must be a whole number from 1"),
        ("archive", ["--trigger", "often"], "'often' must be like '30 seconds' or '5 minutes'"),
        ("flights", ["--brokers", "a:1", "--namespace", "x"], "not allowed with argument"),
        ("dead_letter_report", ["--queue", "q"], "one of the arguments --namespace --brokers --data-dir is required"),
        ("dead_letter_report", ["--queue", "q", "--brokers", "nowhere"], "option 'brokers': "),
        ("dead_letter_report", ["--queue", "q", "--data-dir", "/nowhere"], "holds no embedded namespace"),
    ],
)
def test_arguments_that_cannot_be_end_a_job_before_spark_starts(
    name: str, argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: Any, **__: Any) -> None:
        raise AssertionError("Spark was started")

    job = loaded(name)
    monkeypatch.setattr("partitionedqueue_spark.job.session", start)
    with pytest.raises(SystemExit) as ended:
        job.main(argv)
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
