"""Application properties of any AMQP type as text, which is what a column of maps can hold."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Final

from partitionedqueue.model.amqp_types import Described

_TICKS_MOST: Final = 3_155_378_976_000_000_000  # the end of the year 9999


def text_of(value: object) -> str | None:
    """An application property as text: as SQL writes booleans; bytes in base64; times as their milliseconds.

    Lists and maps, which AMQP allows only elsewhere, are JSON.
    """
    match value:
        case None | str():
            return None if value is None else str(value)
        case bool():
            return "true" if value else "false"
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case int():
            return format(value, "d")
        case Described():
            return _described(value)
        case list() | dict():
            return json.dumps(_plain(value), ensure_ascii=False)
    return str(value)


def _plain(value: object) -> object:
    """A list or map of texts, and of such lists and maps."""
    if isinstance(value, dict):
        return {str(text_of(name)): _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if type(value) is list else text_of(value)


def _described(value: Described) -> str | None:
    """.NET's own types, in units of 100 ns: a TimeSpan as it writes it, a DateTimeOffset as ISO 8601."""
    if type(value.value) is int and value.descriptor == "com.microsoft:timespan":
        sign, ticks = "-" if value.value < 0 else "", abs(value.value)
        seconds, fraction = divmod(ticks, 10_000_000)
        days, clock = f"{seconds // 86_400}." if seconds >= 86_400 else "", seconds % 86_400
        rest = f".{fraction:07d}" if fraction else ""
        return f"{sign}{days}{clock // 3600:02d}:{clock // 60 % 60:02d}:{clock % 60:02d}{rest}"
    is_time = type(value.value) is int and value.descriptor == "com.microsoft:datetime-offset"
    if is_time and 0 <= value.value < _TICKS_MOST:
        return (datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=value.value // 10)).isoformat()
    return text_of(value.value)
