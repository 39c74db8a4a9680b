"""Numbers of 32 bits that begin anew at 0 (RFC 1982), as AMQP counts transfers and deliveries."""

from collections.abc import Mapping
from typing import Any, Final

UINT_MAX: Final = 0xFFFFFFFF


def difference(left: int, right: int) -> int:
    """Left - right: from -2^31 to 2^31 - 1."""
    return (left - right + 0x80000000 & UINT_MAX) - 0x80000000


def between(first: int, last: int, known: Mapping[int, Any]) -> list[int]:
    """The known ids from first to last, which may be as far apart as a peer likes."""
    span = last - first & UINT_MAX
    if span > len(known):
        return [each for each in known if each - first & UINT_MAX <= span]
    if first <= last:
        return [each for each in range(first, last + 1) if each in known]
    return [each for each in (*range(first, UINT_MAX + 1), *range(last + 1)) if each in known]


def runs(ids: list[int]) -> list[tuple[int, int]]:
    """Neighbours among ids, which need not be sorted and are not empty, as (first, last)."""
    if len(ids) == 1:
        return [(ids[0], ids[0])]
    found = []
    ids.sort()
    first = last = ids[0]
    for each in ids:
        if each > last + 1:
            found.append((first, last))
            first = each
        last = each
    found.append((first, last))
    return found
