"""Tables as people read them: columns as wide as what is in them, two blanks apart."""

from collections.abc import Sequence


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """The first row is the headings."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
