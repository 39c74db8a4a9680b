"""ISO 8601 durations, as Azure writes them (`PT1M`, `P14D`)."""

import re
from typing import Final

from partitionedqueue.model import limits

PATTERN: Final = "^P(([0-9]{1,18})D)?(T(([0-9]{1,6})H)?(([0-9]{1,7})M)?(([0-9]{1,9})([.]([0-9]{1,7}))?S)?)?$"
"""What a duration looks like, to Python and to the API server; .NET's TimeSpan.MaxValue has so many digits."""
ENDING: Final = "[DHMS]$"
"""And what one ends with: there is at least one part, and one after a T."""

_PATTERN: Final = re.compile(PATTERN)
_ENDING: Final = re.compile(ENDING)


def milliseconds(text: str) -> int | None:
    """The length of an ISO 8601 duration in ms; None where it is none, or has years, months or weeks."""
    parts = _PATTERN.fullmatch(text)
    if parts is None or not _ENDING.search(text):
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in parts.group(2, 5, 7, 9))
    part = int(((parts[11] or "") + "000")[:3])
    return min((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + part, limits.TIME_MS_MAX)


def text(length_ms: int) -> str:
    """A length as an ISO 8601 duration, in its largest units."""
    seconds, part = divmod(length_ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    rest = f"{seconds}.{part:03}".rstrip("0") if part else f"{seconds}"
    date = f"{days}D" if days else ""
    time = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M"), (rest, "S")) if n not in (0, "0"))
    if not date and not time:
        return "PT0S"
    return f"P{date}T{time}" if time else f"P{date}"
