"""What is computed from the flights, twice: by pandas from the file and by Spark from the messages."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pandas as pd

DIFFERENCES_SHOWN = 5

Key = tuple[str | int, ...]


class Figure(NamedTuple):
    """One line of a table. A mean is one division of two whole numbers, so it can be compared exactly as well."""

    flights: int
    departed: int
    delay_minutes: int
    cancelled: int
    mean_departure_delay: float | None


@dataclass(frozen=True, slots=True)
class Figures:
    """Both tables."""

    by_carrier: dict[Key, Figure]
    by_origin_and_hour: dict[Key, Figure]

    @property
    def flights(self) -> int:
        """How many flights are in them."""
        return sum(figure.flights for figure in self.by_carrier.values())


def figures_of(flights: pd.DataFrame) -> Figures:
    """By pandas, from the file."""
    return Figures(table_of(flights, ["carrier"]), table_of(flights, ["origin", "hour"]))


def table_of(flights: pd.DataFrame, keys: list[str]) -> dict[Key, Figure]:
    """One table; a flight that never left has no departure time."""
    marked = flights.assign(is_cancelled=flights["dep_time"].isna())
    grouped = marked.groupby(keys).agg(
        flights=("year", "size"),
        departed=("dep_delay", "count"),
        delay_minutes=("dep_delay", "sum"),
        cancelled=("is_cancelled", "sum"),
    )
    means = [
        minutes / departed if departed else None
        for minutes, departed in zip(grouped["delay_minutes"], grouped["departed"], strict=True)
    ]
    return read_table(
        grouped.assign(mean_departure_delay=pd.Series(means, index=grouped.index, dtype=object)).reset_index(), keys
    )


def read_table(frame: pd.DataFrame, keys: list[str]) -> dict[Key, Figure]:
    """A frame with these keys and a Figure's columns; a mean over nothing is None."""
    table: dict[Key, Figure] = {}
    for row in frame.to_dict(orient="records"):
        key = tuple(row[name] if isinstance(row[name], str) else int(row[name]) for name in keys)
        if key in table:
            raise ValueError(f"{key} stands twice in one table")
        mean = row["mean_departure_delay"]
        table[key] = Figure(
            int(row["flights"]),
            int(row["departed"]),
            int(row["delay_minutes"]),
            int(row["cancelled"]),
            None if pd.isna(mean) else float(mean),
        )
    return table


def read_figures(folder: Path) -> Figures:
    """By Spark, from the Parquet files that its job has left."""
    return Figures(
        read_table(pd.read_parquet(folder / "by_carrier"), ["carrier"]),
        read_table(pd.read_parquet(folder / "by_origin_hour"), ["origin", "hour"]),
    )


def differences(spark: Figures, pandas: Figures) -> list[str]:
    """A sentence for each of the first figures that differ, exactly; none when all are equal."""
    found = (
        f"{name} {', '.join(map(str, key))}: Spark has {ours.get(key)}, pandas has {theirs.get(key)}"
        for name, ours, theirs in (
            ("carrier", spark.by_carrier, pandas.by_carrier),
            ("origin and hour", spark.by_origin_and_hour, pandas.by_origin_and_hour),
        )
        for key in sorted(ours.keys() | theirs.keys(), key=str)
        if ours.get(key) != theirs.get(key)
    )
    return list(islice(found, DIFFERENCES_SHOWN))
