"""What the demo says and draws at its end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from demo.figures import Figure, Figures
from demo.progress import Sample
from matplotlib.axes import Axes
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter

BAR_CHARACTERS = 40
BLUE, ORANGE, GREEN, GREY, RED = "#2f6fab", "#e08214", "#3a8f5c", "#6b7280", "#c0392b"
ORIGIN_COLOURS = {"EWR": BLUE, "JFK": ORANGE, "LGA": GREEN}


def spread_lines(counts: Sequence[int]) -> list[str]:
    """One bar a partition."""
    most = max(counts)
    return [
        f"  {partition:>3} {count:>8,} {'█' * round(BAR_CHARACTERS * count / most)}"
        for partition, count in enumerate(counts)
    ]


def carrier_lines(figures: Figures) -> list[str]:
    """The table by carrier, the busiest first."""
    lines = [f"  {'carrier':<8}{'flights':>9}{'mean delay, min':>18}{'cancelled':>11}"]
    for key, figure in by_size(figures):
        mean = figure.mean_departure_delay
        shown = "-" if mean is None else f"{mean:.2f}"
        lines.append(f"  {key:<8}{figure.flights:>9,}{shown:>18}{figure.cancelled:>11,}")
    return lines


def by_size(figures: Figures) -> list[tuple[str, Figure]]:
    """Carriers, the busiest first."""
    rows = [(str(key[0]), figure) for key, figure in figures.by_carrier.items()]
    return sorted(rows, key=lambda row: -row[1].flights)


def draw(
    path: Path, *, counts: Sequence[int], figures: Figures, samples: Sequence[Sample], kills_s: Sequence[float]
) -> None:
    """The picture: how the messages were spread, when they went in and out, and what Spark made of them."""
    settings = {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.axisbelow": True,
    }
    with mpl.rc_context(cast("Any", settings)):  # its stub wants each key spelled as a literal
        layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12)
        picture, axes = plt.subplots(2, 2, figsize=(13, 8.5), layout=layout)
        picture.suptitle(
            f"{sum(counts):,} flights through {len(counts)} partitions and Spark", fontsize=15, fontweight="bold"
        )
        draw_spread(axes[0, 0], counts)
        draw_road(axes[0, 1], samples, kills_s)
        draw_carriers(axes[1, 0], figures)
        draw_hours(axes[1, 1], figures)
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.savefig(path, dpi=110)
        plt.close(picture)


def plain(axes: Axes, title: str, *, across: str, up: str) -> None:
    """What all four share."""
    axes.set_title(title)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(axis="y", color="#e5e7eb")


def thousands(axes: Axes) -> None:
    """Large counts with their commas."""
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def draw_spread(axes: Axes, counts: Sequence[int]) -> None:
    """A bar a partition, and the even share."""
    plain(axes, "Spread over the partitions", across="partition", up="messages")
    axes.bar(range(len(counts)), counts, color=BLUE, width=0.75)
    share = sum(counts) / len(counts)
    axes.axhline(share, color=GREY, linestyle="--", linewidth=1, label=f"even share: {share:,.0f}")
    axes.set_xticks(range(len(counts)))
    axes.set_ylim(0, max(counts) * 1.18)
    axes.legend(frameon=False, loc="upper right")
    thousands(axes)


def draw_road(axes: Axes, samples: Sequence[Sample], kills_s: Sequence[float]) -> None:
    """Messages in and out over time; Spark reports whole batches, so its line has steps."""
    plain(axes, "In and out", across="seconds since the first message", up="messages")
    times = [sample.at_s for sample in samples]
    axes.plot(times, [sample.acknowledged for sample in samples], color=BLUE, linewidth=2, label="acknowledged")
    axes.step(
        times,
        [sample.consumed for sample in samples],
        where="post",
        color=ORANGE,
        linewidth=2,
        label="committed by Spark",
    )
    for number, at_s in enumerate(kills_s):
        axes.axvline(at_s, color=RED, linestyle=":", linewidth=1.5, label="a broker killed" if number == 0 else None)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, loc="center", bbox_to_anchor=(0.5, 0.45))
    thousands(axes)


def draw_carriers(axes: Axes, figures: Figures) -> None:
    """Flights of each carrier, with those that never left on top of the bar."""
    rows = by_size(figures)
    names = [name for name, _ in rows]
    left = [figure.flights - figure.cancelled for _, figure in rows]
    plain(axes, "Flights by carrier (above: mean delay, minutes)", across="carrier", up="flights")
    axes.bar(names, left, color=BLUE, width=0.75, label="left")
    axes.bar(names, [figure.cancelled for _, figure in rows], bottom=left, color=RED, width=0.75, label="cancelled")
    for place, (_, figure) in enumerate(rows):
        if figure.mean_departure_delay is not None:
            text = f"{figure.mean_departure_delay:.0f}"
            axes.annotate(
                text,
                (place, figure.flights),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                color=GREY,
                fontsize=9,
            )
    axes.set_ylim(0, rows[0][1].flights * 1.1)
    axes.legend(frameon=False, loc="upper right")
    thousands(axes)


def draw_hours(axes: Axes, figures: Figures) -> None:
    """How the delay grows through the day, an airport a line."""
    plain(axes, "Mean departure delay by scheduled hour", across="hour of the day", up="minutes")
    origins = sorted({str(origin) for origin, _ in figures.by_origin_and_hour})
    for origin in origins:
        points = [
            (int(hour), figure.mean_departure_delay)
            for (name, hour), figure in figures.by_origin_and_hour.items()
            if name == origin and figure.mean_departure_delay is not None
        ]
        hours, means = zip(*sorted(points), strict=True)
        axes.plot(hours, means, marker="o", markersize=4, color=ORIGIN_COLOURS.get(origin, GREY), label=origin)
    axes.axhline(0, color="#9ca3af", linewidth=0.8)
    axes.set_xticks(range(5, 24, 2))
    axes.legend(frameon=False, loc="upper left", title="from")
