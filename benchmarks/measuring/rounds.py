"""Rounds that take turns, and how a benchmark tells what it found."""

import argparse
import json
import signal
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
ROUNDS_DEFAULT = 5
ROUNDS_QUICK = 3


def parser(description: str) -> argparse.ArgumentParser:
    """The command line that every benchmark has. From here on SIGTERM and SIGHUP end the program as Ctrl-C does.

    It cleans up then.
    """
    for which in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(which, signal.default_int_handler)
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--rounds", type=int, default=None, help=f"rounds of each scenario (default {ROUNDS_DEFAULT})")
    made.add_argument("--quick", action="store_true", help="few messages and three rounds: does it run at all?")
    return made


def rounds_of(arguments: argparse.Namespace) -> int:
    """How many rounds are asked for."""
    rounds: int = arguments.rounds or (ROUNDS_QUICK if arguments.quick else ROUNDS_DEFAULT)
    if rounds < 1:
        raise SystemExit("--rounds must be at least 1")
    return rounds


def take_turns(sides: Mapping[str, Callable[[], T]], rounds: int) -> list[dict[str, T]]:
    """Every side once a round, each round in another order; one more round before them warms all sides."""
    names = list(sides)
    for name in names:
        sides[name]()
    seen = []
    for number in range(rounds):
        start = number // 2 % len(names)
        order = names[start:] + names[:start]
        seen.append({name: sides[name]() for name in (order[::-1] if number % 2 else order)})
    return seen


def median(values: Iterable[float]) -> float:
    """The middle one; of an even number, the mean of the middle two."""
    return statistics.median(values)


def say(*words: str) -> None:
    """How far it is: for whoever watches, not for whoever reads the result."""
    print("…", *words, file=sys.stderr, flush=True)


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, its columns as wide as they must be, the first to the left and the others to the right."""
    lines = [tuple(names), *map(tuple, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
    for line in lines:
        first, *others = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join((first.strip().ljust(widths[0]), *others)), flush=True)


def conclude(benchmark: str, ratios: Mapping[str, float], **more: Any) -> int:
    """Print the one line that machines read; the program's status."""
    rounded = {name: round(value, 3) for name, value in ratios.items()}
    print(json.dumps({"benchmark": benchmark, "ratios": rounded, **more}), flush=True)
    return 0
