"""Times and lengths of time as HTTP's messages have them."""

import re
from datetime import UTC, datetime, timedelta
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_S: Final = 253_402_300_799  # 9999-12-31T23:59:59Z
_SPAN: Final = re.compile(
    r"(?:(?P<days>[0-9]{1,8})\.)?(?P<hours>[0-9]{1,2}):(?P<minutes>[0-9]{1,2}):(?P<seconds>[0-9]{1,2})"
    r"(?:\.(?P<fraction>[0-9]{1,7}))?"
)


def http_date(ms: int) -> str:
    """Milliseconds since 1970 as `Sun, 06 Nov 1994 08:49:37 GMT`; what no calendar has becomes its first or last."""
    return _http_date(min(max(ms // 1000, 0), _LAST_S))


@lru_cache(maxsize=1_024)  # most times of a second are alike
def _http_date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)


def read_http_date(text: str) -> int | None:
    """Milliseconds since 1970 of a date as `http_date` writes it; None for anything else."""
    if not text.endswith(" GMT"):
        return None
    try:
        return _ms(parsedate_to_datetime(text))
    except (ValueError, OverflowError, TypeError):
        return None


def read_moment(text: str) -> int | None:
    """Milliseconds since 1970 of an HTTP date, or of an ISO 8601 one; without a zone it is UTC. None otherwise."""
    found = read_http_date(text)
    if found is None:
        try:
            found = _ms(datetime.fromisoformat(text))
        except (ValueError, OverflowError):
            return None
    return found


def read_span(text: str) -> int | None:
    """Milliseconds of .NET's TimeSpan, `0.00:00:40` say; None for anything else."""
    match = _SPAN.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(match[name] or 0) for name in ("days", "hours", "minutes", "seconds"))
    fraction = int((match["fraction"] or "0").ljust(7, "0")) // 10_000
    return ((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000 + fraction


def _ms(moment: datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(milliseconds=1)
