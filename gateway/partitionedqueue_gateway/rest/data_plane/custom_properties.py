"""Application properties as HTTP headers, one each: text in quotation marks, numbers, true and false without.

    Priority: "High"
    Price: 12.5
    Urgent: true
    Due: "Sun, 06 Nov 1994 08:49:37 GMT"        a time

Headers that HTTP, browsers, proxies and Azure have a meaning for are none, in either direction.
"""

import base64
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from partitionedqueue.model.amqp_types import Described, Timestamp
from partitionedqueue.model.message import PropertyValue
from partitionedqueue_gateway.rest.data_plane import times
from partitionedqueue_gateway.rest.refusals import InvalidRequest

_NOT_OURS: Final = frozenset({
    "accept", "accept-charset", "accept-encoding", "accept-language", "age", "allow", "alt-svc", "authorization",
    "brokerproperties", "cache-control", "connection", "content-disposition", "content-encoding", "content-language",
    "content-length", "content-location", "content-md5", "content-range", "content-security-policy", "content-type",
    "cookie", "date", "dnt", "etag", "expect", "expires", "forwarded", "from", "host", "http2-settings", "if-match",
    "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "keep-alive", "last-modified", "link",
    "location", "max-forwards", "origin", "pragma", "proxy-authenticate", "proxy-authorization", "proxy-connection",
    "range", "referer", "retry-after", "server", "server-timing", "set-cookie", "strict-transport-security", "te",
    "trailer", "transfer-encoding", "upgrade", "upgrade-insecure-requests", "user-agent", "vary", "via", "warning",
    "www-authenticate", "x-real-ip", "x-request-id",
})  # fmt: skip
_NOT_OURS_BEGIN: Final = ("access-control-", "proxy-", "sec-", "x-forwarded-", "x-ms-")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")  # RFC 9110 §5.6.2
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]{1,64}(?:\.[0-9]{0,64})?|\.[0-9]{1,64})(?:[eE][+-]?[0-9]{1,4})?")
_CONTROLS: Final = {code: f"\\u{code:04x}" for code in (*range(32), 127)} | {10: "\\n", 13: "\\r", 9: "\t"}
_LONG: Final = 2**63


def is_custom(name: str) -> bool:
    """Whether a header of this name is a property of the message."""
    lower = name.lower()
    return lower not in _NOT_OURS and not lower.startswith(_NOT_OURS_BEGIN)


def read(headers: Iterable[tuple[str, str]]) -> dict[str, PropertyValue]:
    """The properties of a message that comes with these headers. Raises InvalidRequest for a name that comes twice."""
    found: dict[str, PropertyValue] = {}
    for name, text in headers:
        if is_custom(name):
            if name in found:
                raise InvalidRequest(f"The header {name} comes twice; a property has one value.")
            found[name] = _value(text.strip())
    return found


def _value(text: str) -> PropertyValue:
    if len(text) > 1 and text[0] == text[-1] == '"':
        inside = text[1:-1].replace('\\"', '"')
        moment = times.read_http_date(inside)
        return inside if moment is None else Timestamp(moment)
    lower = text.lower()
    if lower in {"true", "false"}:
        return lower == "true"
    if _WHOLE.fullmatch(text) and -_LONG <= int(text) < _LONG:
        return int(text)
    if _NUMBER.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text


def write(properties: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Headers of a message that somebody receives.

    A property that is null, or whose name no header can have, is left out.
    """
    for name, value in properties.items():
        if value is not None and _TOKEN.fullmatch(name) and is_custom(name):
            yield name, _text(value)


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case Timestamp():
            return f'"{times.http_date(value)}"'
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
        case bytes():
            return f'"{base64.b64encode(value).decode()}"'
        case Described():
            return _text(value.value)
    return '"' + header_text(str(value)).replace('"', '\\"') + '"'


def header_text(text: str) -> str:
    """Text as a header can hold it: what ends lines is written out."""
    return text.translate(_CONTROLS)
