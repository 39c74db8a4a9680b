"""The demo as a person runs it, with fewer flights; and its verdict on results that are wrong."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from demo.figures import Figure, Figures
from demo.progress import Progress
from demo.run import Outcome, complaints

from demo import figures, flights_data
from partitionedqueue.broker.replies import Totals

ROOT = Path(__file__).resolve().parents[2]
FLIGHTS = 20_000
PNG = b"\x89PNG\r\n\x1a\n"


def run_demo(tmp_path: Path, *arguments: str) -> list[str]:
    """Its output; nothing of it may stay in the folder for temporary files."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    picture = tmp_path / "flights.png"
    done = subprocess.run(
        [sys.executable, str(ROOT / "demo/run.py"), "--messages", str(FLIGHTS), "--picture", str(picture), *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert picture.read_bytes().startswith(PNG)
    assert not list(temporary.glob("partitionedqueue-demo-*"))
    return done.stdout.splitlines()


@pytest.mark.timeout(300)
def test_every_flight_comes_out_once_and_the_figures_are_equal(tmp_path: Path) -> None:
    *_, messages, equal, speed = run_demo(tmp_path)
    assert messages == "20,000 messages in, 20,000 out, 0 left over."
    assert equal.startswith("Spark's figures equal pandas'")
    assert "messages/s" in speed


@pytest.mark.timeout(300)
def test_killing_three_brokers_while_sending_loses_and_doubles_nothing(tmp_path: Path) -> None:
    *_, killed, messages, equal, _ = run_demo(tmp_path, "--kill", "3")
    assert killed.startswith("3 brokers were killed with -9")
    assert messages == "20,000 messages in, 20,000 out, 0 left over."
    assert equal.startswith("Spark's figures equal pandas'")


@pytest.fixture(scope="module")
def flights() -> pd.DataFrame:
    return flights_data.read_flights(2_000)


def outcome_of(expected: Figures, *, left: int = 0, doubled: int = 0) -> Outcome:
    last = expected.flights + doubled
    totals = Totals(
        messages=left, ready=left, locked=0, claimed=0, bytes=0, last=last, now_ms=0, partition=0, partitions=1
    )
    return Outcome(expected, [totals], 1.0, 1.0, 1.0, Progress(expected.flights, lambda: 0, lambda: 0))


def test_equal_figures_and_nothing_left_over_are_no_complaint(flights: pd.DataFrame) -> None:
    expected = figures.figures_of(flights)
    assert complaints(outcome_of(expected), figures.figures_of(flights)) == []


def test_a_figure_that_differs_by_a_minute_is_named(flights: pd.DataFrame) -> None:
    expected = figures.figures_of(flights)
    united = expected.by_carrier[("UA",)]
    wrong = united._replace(delay_minutes=united.delay_minutes + 1)
    spark = dataclasses.replace(expected, by_carrier={**expected.by_carrier, ("UA",): wrong})
    (complaint,) = complaints(outcome_of(expected), spark)
    assert "carrier UA" in complaint


def test_a_line_that_is_missing_and_one_too_many_are_named(flights: pd.DataFrame) -> None:
    expected = figures.figures_of(flights)
    without = {key: figure for key, figure in expected.by_origin_and_hour.items() if key != ("EWR", 6)}
    spark = dataclasses.replace(expected, by_origin_and_hour={**without, ("XXX", 6): Figure(1, 1, 0, 0, 0.0)})
    found = complaints(outcome_of(expected), spark)
    assert len(found) == 2
    assert "EWR, 6" in found[0]
    assert "XXX, 6" in found[1]


def test_messages_that_are_left_over_or_stored_twice_are_complaints(flights: pd.DataFrame) -> None:
    expected = figures.figures_of(flights)
    twice, left = complaints(outcome_of(expected, left=3, doubled=1), expected)
    assert twice == "2,000 messages were acknowledged, but the brokers gave out 2,001 sequence numbers."
    assert left == "3 messages are left over."


def test_figures_count_cancelled_flights_and_means_leave_them_out(flights: pd.DataFrame) -> None:
    figure = figures.figures_of(flights).by_carrier[("UA",)]
    rows = flights[flights["carrier"] == "UA"]
    assert figure.flights == len(rows)
    assert figure.cancelled == rows["dep_time"].isna().sum() > 0
    assert figure.mean_departure_delay == rows["dep_delay"].mean()


def test_a_flight_becomes_a_message_with_its_tail_number_as_key(flights: pd.DataFrame) -> None:
    messages = list(flights_data.messages_of(flights))
    assert len(messages) == 2_000
    assert messages[0].partition_key == "N14228"
    assert messages[0].message_id == "0"
    assert b'"dep_time":517,' in messages[0].body
    assert sum(message.partition_key is None for message in messages) == flights["tailnum"].isna().sum() > 0
