"""Amounts as Kubernetes writes them (`500m`, `2`, `4Gi`, `1e9`)."""

import re
from fractions import Fraction
from typing import Final

_QUANTITY: Final = re.compile(
    r"([+-]?(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,2}))?"
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {f"{prefix}i": 1 << 10 * power for power, prefix in enumerate("KMGTPE", start=1)}


def amount(text: str) -> Fraction | None:
    """The number that a quantity stands for; None where it is none."""
    parts = _QUANTITY.fullmatch(text)
    if parts is None:
        return None
    number, suffix, exponent = parts.groups()
    if suffix in _BINARY:
        return Fraction(number) * _BINARY[suffix]
    return Fraction(f"{number}e{_DECIMAL[suffix] if suffix else exponent or 0}")


def gibibytes(count: int) -> str:
    """A number of bytes, whole GiB, as a quantity."""
    return f"{count // 2**30}Gi"
