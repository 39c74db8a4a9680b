"""ISO 8601 durations, as Azure writes them (`PT1M`, `P14D`)."""

import re

from partitionedqueue.model import limits

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)(?:\.(?P<part>\d+))?S)?)?"
)


def milliseconds(text: str) -> int | None:
    """The length of an ISO 8601 duration in ms; None where it is none, or has years or months."""
    match = _DURATION.fullmatch(text)
    if match is None or text == "P":
        return None
    days, hours, minutes, seconds = (int(match[name] or 0) for name in ("days", "hours", "minutes", "seconds"))
    part = int(((match["part"] or "") + "000")[:3])
    return min((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + part, limits.TIME_MS_MAX)
