"""What the sections of an AMQP message say that a broker, a route or a later reader asks for (AMQP 1.0 §3.2).

IndexError and UnicodeDecodeError mean what InvalidMessage does: that the bytes are no AMQP message.
"""

from typing import Final, TypeAlias

from partitionedqueue.model import amqp_sections as sections
from partitionedqueue.model.amqp_tidying import BROKERS_OWN
from partitionedqueue.model.amqp_types import WIDTHS, Timestamp, decode_value
from partitionedqueue.model.errors import InvalidMessage
from partitionedqueue.model.stored_message import BODY_IS_SECTIONS, HAS_PARTITION_KEY, HAS_TIME_TO_LIVE, IS_SCHEDULED

TEXTS: Final = {0xA1: 2, 0xA3: 2, 0xB1: 5, 0xB3: 5}
"""Format codes of texts, and how far behind them these begin."""
BYTES: Final = frozenset((0xA0, 0xB0))
_PREFIXES: Final = sections.PREFIXES
_SESSION_ID_PLACE: Final = 10  # among the properties (§3.2.4)
PROPERTIES_MOST: Final = 13
_NULL: Final = 0x40
_ID_TYPES: Final = frozenset((0x44, 0x53, 0x80, 0x98, 0xA0, 0xB0))  # of message ids that are no text
_HEADERS_KEPT: Final = 256
times_to_live: Final[dict[bytes, int]] = {}
"""Of header sections that came lately: they are much the same."""


class Untidy(Exception):
    """The message cannot be stored as it came."""


class Front:
    """What the sections in front of the properties say; offsets in the encoded message, 0 where there is none."""

    __slots__ = ("id_text_end", "partition_key", "partition_key_at", "partition_key_bytes", "scheduled_ms", "ttl_ms")

    def __init__(self) -> None:
        self.ttl_ms = self.scheduled_ms = self.partition_key_at = self.partition_key_bytes = self.id_text_end = 0
        self.partition_key: str | None = None

    @property
    def flags(self) -> int:
        """Those of the stored form."""
        return (
            (HAS_TIME_TO_LIVE if self.ttl_ms else 0)
            | (IS_SCHEDULED if self.scheduled_ms else 0)
            | (HAS_PARTITION_KEY if self.partition_key is not None else 0)
        )


Properties: TypeAlias = tuple[int, int, int, int, int, int, int]
"""Where the properties section begins and ends, its fields, where the text of the message id begins and the fields
behind it, and where the session id begins and ends; 0 where there is none."""
NO_PROPERTIES: Final[Properties] = (0, 0, 0, 0, 0, 0, 0)


def look_at_properties(  # noqa: C901 -- each thing that can be wrong
    encoded: bytes, at: int, id_text: str | None
) -> Properties:
    """What is in the properties section at `at`, of which every field can be read."""
    if encoded[at + 3] == 0xC0 and encoded[at + 5] == 1 and encoded[at + 6] == 0xA1:
        id_end = at + 8 + encoded[at + 7]
        if id_end == at + 5 + encoded[at + 4]:
            return at, id_end, 1, at + 8, id_end, 0, 0  # a short message id alone, as many have it
    count, place, end = sections.items_of(encoded, at + 3)
    is_list = encoded[at + 3] in (0x45, 0xC0, 0xD0) and (count or place == end)
    if count > PROPERTIES_MOST or not is_list:
        raise InvalidMessage(
            f"the properties of the message at byte {at} are no list of up to {PROPERTIES_MOST} fields"
        )
    if not count:
        return at, end, 0, 0, place, 0, 0
    code = encoded[place]
    id_at = place + TEXTS[code] if code in (0xA1, 0xB1) else 0
    if not id_at and code != _NULL and id_text is None:
        if code not in _ID_TYPES:
            raise InvalidMessage("the message id is neither text nor a number, UUID or bytes")
        raise Untidy
    id_end = place = sections.check_value(encoded, place)
    session_at = session_end = 0
    for field in range(1, count):
        width = WIDTHS[encoded[place]]
        if width and field != _SESSION_ID_PLACE:
            place += width
        elif field == _SESSION_ID_PLACE and encoded[place] != _NULL:
            if encoded[place] not in TEXTS:
                raise InvalidMessage("the group-id of the message, its SessionId, is no text")
            session_at = place + TEXTS[encoded[place]]
            place = session_end = sections.check_value(encoded, place)
        else:
            place = sections.check_value(encoded, place)
    if place != end:
        raise InvalidMessage(f"the properties of the message at byte {at} are cut short or malformed")
    return at, end, count, id_at, id_end, session_at, session_end


def look_at_front(front: Front, encoded: bytes, at: int, end: int, id_text: str | None) -> None:
    """Takes in what a section in front of the properties says."""
    descriptor = encoded[at + 2]
    if descriptor == sections.HEADER:
        front.ttl_ms = _time_to_live(encoded[at:end])
    elif descriptor == sections.ANNOTATIONS:
        _annotations(front, encoded, at + 3)
    elif descriptor != sections.DELIVERY_ANNOTATIONS:
        raise InvalidMessage(f"a message has no section 0x{descriptor:02x}, as there is at byte {at}")
    elif id_text is None:
        raise Untidy
    else:
        front.id_text_end = end


def _time_to_live(header: bytes) -> int:
    """That of a header section (§3.2.1) in ms, 0 where there is none."""
    known = times_to_live.get(header)
    if known is not None:
        return known
    fields, end = decode_value(header, 3)
    kinds = (bool, int, int, bool, int)
    if not isinstance(fields, list) or len(fields) > len(kinds) or end != len(header):
        raise InvalidMessage("the header of the message is no list of up to five fields")
    if any(value is not None and type(value) is not kind for value, kind in zip(fields, kinds, strict=False)):
        raise InvalidMessage("a field of the header of the message is of another type than AMQP gives it")
    ttl_ms = int(fields[2] or 0) if len(fields) > 2 else 0
    if len(times_to_live) >= _HEADERS_KEPT:
        times_to_live.clear()
    times_to_live[header] = ttl_ms
    return ttl_ms


def _annotations(front: Front, encoded: bytes, at: int) -> None:
    """Takes in what the message annotations (§3.2.3) say, of which every one can be read."""
    count, place, end = sections.items_of(encoded, at)
    for _ in range(count >> 1):
        key_at, value_at = place, sections.check_value(encoded, place)
        place = sections.check_value(encoded, value_at)
        name = encoded[key_at + TEXTS.get(encoded[key_at], 0) : value_at]
        code = encoded[value_at]
        if name in BROKERS_OWN:
            raise Untidy
        if name == b"x-opt-partition-key" and code != _NULL:
            if code not in TEXTS:
                raise InvalidMessage("x-opt-partition-key of the message is no text")
            front.partition_key_at = value_at + TEXTS[code]
            front.partition_key_bytes = place - front.partition_key_at
            front.partition_key = encoded[front.partition_key_at : place].decode()
        elif name == b"x-opt-scheduled-enqueue-time" and code != _NULL:
            at_ms = decode_value(encoded, value_at)[0]
            if type(at_ms) not in (int, Timestamp):
                raise InvalidMessage("x-opt-scheduled-enqueue-time of the message is no time")
            front.scheduled_ms = max(0, at_ms)
    if place != end or count & 1 or encoded[at] not in (0xC1, 0xD1):
        raise InvalidMessage("the annotations of the message are cut short or malformed")


def look_at_body(encoded: bytes, at: int) -> tuple[int, int, int]:
    """Where the body from `at` on begins, its bytes, and a flag. A footer may follow."""
    first = last = content_at = at
    parts, kind = 0, 0
    while last < len(encoded):
        if encoded[last] or encoded[last + 1] != 0x53:
            raise Untidy
        descriptor, code = encoded[last + 2], encoded[last + 3]
        end = sections.end_of(encoded, last + 3)
        if descriptor == sections.FOOTER:
            if sections.check_value(encoded, last + 3) != len(encoded) or code not in (0xC1, 0xD1):
                raise InvalidMessage(f"the footer at byte {last} of the message is no map at its end")
            break
        if descriptor == sections.DATA and code in BYTES:
            content_at = last + 4 + _PREFIXES[code]
        elif descriptor not in (sections.SEQUENCE, sections.VALUE):
            raise InvalidMessage(f"the section 0x{descriptor:02x} at byte {last} of the message has no place there")
        if parts and (descriptor != kind or kind == sections.VALUE):
            raise InvalidMessage("the body of the message is of several kinds")
        kind, parts, last = descriptor, parts + 1, end
    if kind == sections.DATA and parts == 1:
        return content_at, last - content_at, 0
    return first, last - first, BODY_IS_SECTIONS
