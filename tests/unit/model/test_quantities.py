from fractions import Fraction

import pytest

from partitionedqueue.model import quantities


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("2", 2),
        ("1.5", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("500m", Fraction(1, 2)),
        ("1k", 1000),
        ("1Ki", 1024),
        ("4Gi", 4 * 2**30),
        ("1.5Gi", 3 * 2**29),
        ("1E", 10**18),  # exa, where no digits follow
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e-3", Fraction(1, 1000)),
        ("-1", -1),
    ],
)
def test_amounts_are_read(text: str, amount: Fraction) -> None:
    assert quantities.amount(text) == amount


@pytest.mark.parametrize("text", ["", "Gi", "4GB", "4 Gi", "4gi", "1K", "four", "1e", "1_000", "4Gi\n"])
def test_what_is_no_amount_is_not_read(text: str) -> None:
    assert quantities.amount(text) is None


def test_gibibytes_are_written_as_an_amount() -> None:
    assert quantities.amount(quantities.gibibytes(7 * 2**30)) == 7 * 2**30
