"""The properties section of many stored messages at once: numpy walks along all of them together.

Sections and fields are those of AMQP 1.0 §3.2; sizes follow from the format codes (§1.2). Where no message has more
than a message id and a user id, which is told by the length of the list, nothing is walked.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from partitionedqueue.model.errors import InvalidMessage
from partitionedqueue.model.stored_message import HEADER_BYTES
from partitionedqueue_spark.chunk import Bytes, Longs

FIELDS: Final = {
    "to": 2, "subject": 3, "reply_to": 4, "correlation_id": 5, "content_type": 6, "reply_to_session_id": 12,
}  # fmt: skip
"""Columns that come out of the properties section, by the places of their fields in it."""

PROPERTIES: Final = 0x73
_SECTION: Final = 0x5300  # how every section begins, read as a little-endian pair
_SMALL_LIST, _LARGE_LIST, _EMPTY_LIST = 0xC0, 0xD0, 0x45
# By the upper half of a format code: bytes that follow it, without those that its size counts.
_WIDTHS: Final = np.array([0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 1, 4, 1, 4, 1, 4], dtype=np.int64)
_HALVES_SIZED_BY_ONE: Final = (0xA, 0xC, 0xE)
_SIZED_BY_ONE: Final = np.isin(np.arange(16), _HALVES_SIZED_BY_ONE)
_SIZED_BY_FOUR: Final = np.isin(np.arange(16), (0xB, 0xD, 0xF))


@dataclass(frozen=True, slots=True)
class Places:
    """Where a field stands: the rows that have it, not null, and the place of its format code."""

    rows: Longs
    at: Longs


def places_of(data: Bytes, starts: Longs, bodies: Longs, wanted: Iterable[str]) -> dict[str, Places]:
    """Where the wanted FIELDS stand; those that no message has are left out.

    Args:
        data: all messages, one behind the other.
        starts: where each begins.
        bodies: where the body of each begins, behind all its sections.
        wanted: names of FIELDS.

    Raises:
        InvalidMessage: a section reaches beyond its message.
    """
    fields = {FIELDS[name]: name for name in wanted}
    if not fields or not len(starts):
        return {}
    rows, at = _properties(data, starts, bodies)
    return _walk(data, rows, at, bodies, fields) if len(rows) else {}


def _properties(data: Bytes, starts: Longs, bodies: Longs) -> tuple[Longs, Longs]:
    """The rows that have a properties section, and where its list begins."""
    rows, at = np.arange(len(starts)), starts + HEADER_BYTES
    found_rows, found_at = [], []
    while True:
        inside = at + 3 < (bodies if len(rows) == len(bodies) else bodies[rows])
        if not bool(inside.all()):
            rows, at = rows[inside], at[inside]
        if not len(rows):
            break
        if bool((_pairs(data)[at] != _SECTION).any()):
            raise InvalidMessage("no AMQP section begins where the one before it ends")
        at = at + 2
        descriptors = data[at]
        there = descriptors == PROPERTIES
        if bool(there.any()):
            found_rows.append(rows[there])
            found_at.append(at[there] + 1)
        on = descriptors < PROPERTIES
        if not bool(on.all()):
            rows, at = rows[on], at[on]
        if not len(rows):
            break
        at = at + 1
        at = at + _sizes(data, at)
    return np.concatenate(found_rows or [rows]), np.concatenate(found_at or [at])


def _walk(data: Bytes, rows: Longs, at: Longs, bodies: Longs, fields: dict[int, str]) -> dict[str, Places]:
    codes = data[at]
    small = codes == _SMALL_LIST
    if bool((~small & (codes != _LARGE_LIST) & (codes != _EMPTY_LIST)).any()):
        raise InvalidMessage("the properties section of a stored message is no list")
    counts = np.where(small, data[_within(data, at + 2)], 0).astype(np.int64)
    large = codes == _LARGE_LIST
    if bool(large.any()):
        counts[large] = _u32(data, at[large] + 5)
    more = counts > min(fields)
    rows, counts, at = rows[more], counts[more], at[more] + np.where(small[more], 3, 9)
    found: dict[str, Places] = {}
    for field in range(max(fields) + 1):
        more = counts > field
        if not bool(more.all()):
            rows, counts, at = rows[more], counts[more], at[more]
        if not len(rows):
            break
        if field in fields:
            there = data[_within(data, at)] != 0x40
            if bool(there.any()):
                found[fields[field]] = Places(rows[there], at[there])
        at = at + _sizes(data, at)
        if bool((at > bodies[rows]).any()):
            raise InvalidMessage("the properties section of a stored message reaches beyond it")
    return found


def text_extents(data: Bytes, places: Places) -> tuple[Longs, Longs, Longs]:
    """Where the bytes of texts and symbols begin and how many they are; and which of the places hold something else."""
    codes = data[places.at]
    short = (codes == 0xA1) | (codes == 0xA3)
    long = (codes == 0xB1) | (codes == 0xB3)
    lengths = np.where(short, data[_within(data, places.at + 1)], 0).astype(np.int64)
    if bool(long.any()):
        lengths[long] = _u32(data, places.at[long] + 1)
    return places.at + np.where(short, 2, 5), lengths, np.flatnonzero(~(short | long))


def _sizes(data: Bytes, at: Longs) -> Longs:
    """How many bytes the values at some places take, format code included."""
    halves = data[_within(data, at)] >> 4
    if len(halves) and halves[0] in _HALVES_SIZED_BY_ONE and bool((halves == halves[0]).all()):  # as most are
        return data[_within(data, at + 1)] + np.int64(2)
    sizes = 1 + _WIDTHS[halves]
    if bool((halves < 4).any()):
        raise InvalidMessage("a value in the sections of a stored message has a format code that AMQP does not know")
    by_one, by_four = _SIZED_BY_ONE[halves], _SIZED_BY_FOUR[halves]
    sizes[by_one] += data[_within(data, at[by_one] + 1)]
    if bool(by_four.any()):
        sizes[by_four] += _u32(data, at[by_four] + 1)
    found: Longs = sizes
    return found


def _u32(data: Bytes, at: Longs) -> Longs:
    """Big-endian numbers."""
    value = np.zeros(len(at), dtype=np.int64)
    for place in range(4):
        value = value * 256 + data[_within(data, at + place)]
    return value


def _pairs(data: Bytes) -> npt.NDArray[np.uint16]:
    """Each byte together with the next."""
    return np.ndarray(max(0, len(data) - 1), dtype="<u2", buffer=data, strides=(1,))


def _within(data: Bytes, at: Longs) -> Longs:
    """Places that are none, behind damage, are read as the last one; what is read there is refused later."""
    found: Longs = np.minimum(at, len(data) - 1)
    return found
