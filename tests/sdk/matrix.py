"""Operation by SDK: printed at the end of a run of tests/sdk, and kept in docs/reference/sdk-matrix.md."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from sdk.operations import KINDS, SDKS, operations
from sdk.programs import SdkNotHere, sdk

OUTCOME: Final = "sdk outcome"  # a test's property: operation, kind, SDK, how it went
WRITE: Final = "PQ_WRITE_SDK_MATRIX"
PATH: Final = Path(__file__).parents[2] / "docs" / "reference" / "sdk-matrix.md"
Outcomes = dict[tuple[str, str, str], str]

_HEAD: Final = """# What Microsoft's SDKs do here

Each operation is a program in `tests/sdk`, the same in each language, on the unmodified SDK from its registry, against
`pq up`. `make sdk-matrix` runs them all and writes this page.

✓ passed on every kind of queue that it is tried on · absent: the SDK has no such operation · ✗ failed, and where.
The kinds are {kinds}.

"""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what the run has seen; write it down where that is asked for and everything was run."""
    outcomes = _outcomes(report for reports in terminalreporter.stats.values() for report in reports)
    if not outcomes:
        return
    terminalreporter.section("operations by SDK")
    for row in _plain_rows(outcomes):
        terminalreporter.write_line(row)
    if outcomes.keys() < _everything():
        return
    page = text(outcomes)
    if os.environ.get(WRITE):
        PATH.write_text(page, encoding="utf-8")
        terminalreporter.write_line(f"written: {PATH}")
    elif not PATH.exists() or PATH.read_text(encoding="utf-8") != page:
        terminalreporter.write_line(f"{PATH.name} says otherwise; to write it anew: make sdk-matrix")


def text(outcomes: Outcomes) -> str:
    """The page."""
    head = _HEAD.format(kinds=", ".join(f"{kind} ({words})" for kind, words in KINDS.items()))
    titles = [f"{words} {_version(name)}".strip() for name, words in SDKS.items()]
    lines = [_line(["operation", *titles, "on", "what"]), _line(["---"] * (len(titles) + 3))]
    for each in operations():
        cells = [_cell(outcomes, each.name, each.kinds, name) for name in SDKS]
        kinds = "all" if len(each.kinds) == len(KINDS) else ", ".join(each.kinds)
        lines.append(_line([f"`{each.name}`", *cells, kinds, each.about]))
    return head + "\n".join(lines) + "\n"


def _outcomes(reports: Iterable[Any]) -> Outcomes:
    found: Outcomes = {}
    for report in reports:
        for name, value in getattr(report, "user_properties", ()):
            if name == OUTCOME:
                operation, kind, language, outcome = value
                found[operation, kind, language] = outcome
    return found


def _everything() -> set[tuple[str, str, str]]:
    return {(each.name, kind, name) for each in operations() for kind in each.kinds for name in SDKS}


def _plain_rows(outcomes: Outcomes) -> Iterable[str]:
    yield f"{'':32}" + "".join(f"{name:14}" for name in SDKS)
    for each in operations():
        cells = [_cell(outcomes, each.name, each.kinds, name) for name in SDKS]
        if any(cells):
            yield f"{each.name:32}" + "".join(f"{cell:14}" for cell in cells)


def _cell(outcomes: Outcomes, operation: str, kinds: tuple[str, ...], name: str) -> str:
    seen = {kind: outcomes[operation, kind, name] for kind in kinds if (operation, kind, name) in outcomes}
    if not seen:
        return ""
    failed = [kind for kind, outcome in seen.items() if outcome == "failed"]
    if failed:
        return "✗ " + ", ".join(failed)
    return "absent" if "absent" in seen.values() else "✓"


def _version(name: str) -> str:
    try:
        return sdk(name).version
    except SdkNotHere:
        return ""


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
