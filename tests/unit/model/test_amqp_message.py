"""AMQP messages into the stored form and out of it, against a slow decoder written anew from the standard."""

import itertools
import struct
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitionedqueue.model import amqp_message, limits, stored_message
from partitionedqueue.model.amqp_message import Shown
from partitionedqueue.model.amqp_types import (
    Described,
    Encoded,
    Symbol,
    Timestamp,
    UInt,
    decode_value,
    encode_list,
    encode_map,
    encode_value,
)
from partitionedqueue.model.errors import InvalidMessage, MessageTooLarge, PartitionedQueueError, PartitionKeyConflict
from partitionedqueue.model.storable import Storable

HEADER, DELIVERY_ANNOTATIONS, ANNOTATIONS, PROPERTIES, APPLICATION, DATA, SEQUENCE, VALUE, FOOTER = range(0x70, 0x79)
SHOWN = Shown(7 << 48 | 3, 1_700_000_000_000, 2, 1_700_000_060_000, uuid.UUID(int=77).bytes)
GIVEN = "given-id"


def section(descriptor: int, value: bytes) -> bytes:
    return bytes((0, 0x53, descriptor)) + value


PARTITION_KEY = section(ANNOTATIONS, encode_map({Symbol("x-opt-partition-key"): "key"}))


def properties(*values: object) -> bytes:
    return section(PROPERTIES, encode_list(values))


def data(body: bytes = b"body") -> bytes:
    return section(DATA, encode_value(body))


def read(encoded: bytes, **how: Any) -> Storable:
    return amqp_message.read(encoded, new_message_id=lambda: GIVEN, **how)


def written(encoded: bytes, shown: Shown = SHOWN) -> dict[int, Any]:
    return sections_in(amqp_message.write(read(encoded).stored, shown))


def sections_in(encoded: bytes) -> dict[int, Any]:
    """Each section's value; bytes of all body sections together under DATA."""
    found: dict[int, Any] = {}
    at = 0
    while at < len(encoded):
        value, end = decode_value(encoded, at)
        assert isinstance(value, Described)
        if value.descriptor in (DATA, SEQUENCE, VALUE):
            found[DATA] = found.get(DATA, b"") + encoded[at:end]
        else:
            assert value.descriptor not in found
            assert not found or value.descriptor > max(found)
            found[value.descriptor] = value.value
        at = end
    return found


# What may stand in a message, as encoded values.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
simple = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), texts, st.binary(max_size=300), st.uuids(),
    st.floats(allow_nan=False), texts.map(lambda one: Symbol("s" + "".join(c for c in one if c.isascii()))),
    st.integers(0, 2**40).map(Timestamp), st.integers(0, 2**32 - 1).map(UInt),
)  # fmt: skip
TIMESPAN = b"\x00\xa3\x16com.microsoft:timespan\x81" + bytes(7) + b"\x05"
RAW = (
    b"\x50\x07", b"\x60\x01\x02", b"\x51\xff", b"\x61\xff\xff", b"\x71\xff\xff\xff\xff", b"\x72\x00\x00\x80\x3f",
    b"\x73\x00\x01\xf6\x00", b"\x74\x32\x80\x00\x07", b"\x84" + bytes(8), b"\x94\x30\x3c" + bytes(13) + b"\x01",
    b"\x44", b"\x43", b"\x53\x09", b"\x80" + bytes(7) + b"\x05", b"\x56\x01", b"\x45",
    b"\xc0\x04\x02\x40\x54\x05", b"\xc1\x05\x02\xa1\x01k\x41", b"\xe0\x06\x02\x61\x00\x01\x00\x02",
    b"\xf0\x00\x00\x00\x0a\x00\x00\x00\x02\xa1\x01a\x02bc", TIMESPAN,
)  # fmt: skip
raw_values = st.one_of(simple.map(encode_value), st.sampled_from(RAW))


def raw_map(keys: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    def encoded(entries: dict[Any, bytes], long: bool) -> bytes:
        content = b"".join(encode_value(key) + value for key, value in entries.items())
        count = 2 * len(entries)
        if long or len(content) > 250 or count > 250:
            return b"\xd1" + struct.pack(">II", len(content) + 4, count) + content
        return bytes((0xC1, len(content) + 1, count)) + content

    return st.builds(encoded, st.dictionaries(keys, raw_values, max_size=5), st.booleans())


message_ids = st.one_of(texts, st.uuids(), st.integers(0, 2**63 - 1), st.binary(max_size=64)).map(
    lambda one: b"\x80" + one.to_bytes(8) if isinstance(one, int) else encode_value(one)
)


@st.composite
def messages(draw: st.DrawFn) -> tuple[bytes, dict[int, bytes]]:
    """An encoded message, and its sections' values."""
    parts: dict[int, bytes] = {}
    if draw(st.booleans()):
        ttl = draw(st.one_of(st.none(), st.integers(1, 2**32 - 1).map(UInt)))
        parts[HEADER] = encode_list([draw(st.sampled_from([None, True, False])), None, ttl])
    if draw(st.booleans()):
        parts[DELIVERY_ANNOTATIONS] = encode_map({Symbol("x-hop"): 1})
    if draw(st.booleans()):
        parts[ANNOTATIONS] = draw(raw_map(texts.map(lambda one: Symbol("x-" + one.encode().hex()))))
    if draw(st.booleans()):
        fields = [draw(st.one_of(message_ids, st.just(b"\x40")))]
        names = ("user-id", "to", "subject", "reply-to", "correlation-id", "content-type", "content-encoding")
        fields += [encode_value(draw(st.one_of(st.none(), texts))) for _ in names]
        fields += [encode_value(Timestamp(5)), b"\x40", encode_value(draw(st.one_of(st.none(), texts)))]
        fields = fields[: draw(st.integers(0, len(fields)))]
        content = b"".join(fields)
        parts[PROPERTIES] = b"\xd0" + struct.pack(">II", len(content) + 4, len(fields)) + content
    if draw(st.booleans()):
        parts[APPLICATION] = draw(raw_map(texts))
    body = draw(st.sampled_from(["none", "data", "several", "value", "sequences"]))
    encoded = b"".join(section(descriptor, value) for descriptor, value in parts.items())
    if body in ("data", "several"):
        bodies = draw(st.lists(st.binary(max_size=400), min_size=1, max_size=1 if body == "data" else 4))
        parts[DATA] = b"".join(map(data, bodies))
    elif body == "value":
        parts[DATA] = section(VALUE, draw(raw_values))
    elif body == "sequences":
        parts[DATA] = section(SEQUENCE, b"\xc0\x02\x01\x41") * draw(st.integers(1, 3))
    encoded += parts.get(DATA, b"")
    if draw(st.booleans()):
        parts[FOOTER] = encode_map({Symbol("x-sum"): b"123"})
        encoded += section(FOOTER, parts[FOOTER])
    return encoded, parts


@settings(deadline=None)  # a busy machine is no failure
@given(message=messages())
def test_what_is_read_is_written_with_every_section_as_it_came(message: tuple[bytes, dict[int, bytes]]) -> None:
    encoded, parts = message
    one = read(encoded)
    out = amqp_message.write(one.stored, SHOWN)
    found = sections_in(out)
    assert found.get(DATA, b"") == parts.get(DATA, b"")
    for descriptor in (APPLICATION, FOOTER):
        assert (descriptor in found) == (descriptor in parts)
        assert section(descriptor, parts.get(descriptor, b"")) in out or descriptor not in parts
    wanted = decode_value(parts[PROPERTIES], 0)[0] if PROPERTIES in parts else []
    got = found[PROPERTIES]
    if wanted and wanted[0] is not None:
        assert got == wanted
        assert section(PROPERTIES, parts[PROPERTIES]) in out
    else:
        assert (got[0], got[1:]) == (GIVEN, wanted[1:])
    own = decode_value(parts[ANNOTATIONS], 0)[0] if ANNOTATIONS in parts else {}
    assert {key: value for key, value in found[ANNOTATIONS].items() if not key.startswith("x-opt-")} == own
    assert found[DELIVERY_ANNOTATIONS] == {"x-opt-lock-token": uuid.UUID(int=77)}
    header = decode_value(parts[HEADER], 0)[0] if HEADER in parts else []
    assert found[HEADER] == [*(header + [None] * 4)[:4], 2]


@settings(deadline=None)  # a busy machine is no failure
@given(message=messages())
def test_every_reader_can_read_what_was_read(message: tuple[bytes, dict[int, bytes]]) -> None:
    encoded, parts = message
    one = read(encoded)
    decoded = stored_message.decode(one.stored)
    assert decoded.message_id == (GIVEN if one.message_id is None else one.message_id)
    assert (decoded.session_id, decoded.partition_key) == (one.session_id, one.partition_key)
    fields = stored_message.HEADER.unpack_from(one.stored)
    own = decode_value(parts[APPLICATION], 0)[0] if APPLICATION in parts else {}
    shown = stored_message.decode_application_properties(one.stored, fields[15])
    assert repr(dict(shown)) == repr(own)
    body = one.stored[fields[8] : fields[8] + fields[9]]
    assert body == parts.get(DATA, b"") or data(body) == parts[DATA] or long_data(body) == parts[DATA]


def long_data(body: bytes) -> bytes:
    return section(DATA, b"\xb0" + struct.pack(">I", len(body)) + body)


@settings(deadline=None)  # a busy machine is no failure
@given(message=messages(), place=st.integers(0, 2000), noise=st.binary(min_size=0, max_size=6), cut=st.booleans())
def test_damaged_messages_are_refused_or_can_be_read_by_everybody(
    message: tuple[bytes, dict[int, bytes]], place: int, noise: bytes, cut: bool
) -> None:
    encoded, _ = message
    place %= len(encoded) + 1
    damaged = encoded[:place] + noise + (b"" if cut else encoded[place + len(noise) :])
    try:
        one = read(damaged)
    except InvalidMessage:
        return
    decoded = stored_message.decode(one.stored)
    assert decoded.message_id == (GIVEN if one.message_id is None else one.message_id)
    amqp_message.write(one.stored, SHOWN)


PLAIN = [
    header + annotations + section(PROPERTIES, fields) + body
    for header in (b"", section(HEADER, encode_list([True])))
    for annotations in (b"", section(ANNOTATIONS, b"\xc1\x01\x00"), section(ANNOTATIONS, b"\xd1\0\0\0\4\0\0\0\0"))
    for fields in (
        b"\xc0\x07\x03\xa1\x02id\x40\x40",
        b"\xd0\0\0\0\x08\0\0\0\1\xa1\x02id",
        b"\xc0\x05\x01\xa1\x02\xc3\xa9",
    )
    for body in (data(b"body"), long_data(b"body" * 70))
]
"""Messages of the forms that are read in one go."""


@pytest.mark.parametrize("encoded", PLAIN)
def test_what_is_read_in_one_go_is_read_as_section_by_section(encoded: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    read(encoded)  # a header is known from the second time on
    changed = [
        encoded[:place] + bytes((byte,)) + encoded[place + 1 :]
        for place in range(min(len(encoded), 48))
        for byte in (0, 1, 2, 3, 0x40, 0x45, 0x53, 0x70, 0xA1, 0xC0, 0xD0, 0xFF, encoded[place] - 1 & 0xFF)
    ]
    several = [encoded, *changed, *(encoded[:size] for size in range(len(encoded)))]

    def outcome(one: bytes) -> object:
        try:
            return read(one)
        except PartitionedQueueError as error:
            return type(error)

    found = [outcome(one) for one in several]
    monkeypatch.setattr(amqp_message, "_read_plain", lambda _: None)
    assert found == [outcome(one) for one in several]
    assert isinstance(found[0], Storable)


@given(st.binary(max_size=120).map(lambda one: one.replace(b"\x01", b"\x00\x53\x74\xc1")))
def test_noise_is_refused_or_read(noise: bytes) -> None:
    for reader in (read, amqp_message.batch):
        try:
            reader(noise)
        except InvalidMessage:
            continue


@pytest.mark.parametrize(
    ("encoded_id", "text"),
    [
        (encode_value("an id"), "an id"),
        (encode_value(""), ""),
        (encode_value("x" * 128), "x" * 128),
        (encode_value("ä" * 100), "ä" * 100),
        (encode_value(uuid.UUID(int=5)), "00000000-0000-0000-0000-000000000005"),
        (b"\x80" + bytes(6) + b"\x01\x02", "258"),
        (b"\x53\x07", "7"),
        (b"\x44", "0"),
        (encode_value(b"\x00\xff"), "00ff"),
        (b"\x40", GIVEN),
    ],
)
@pytest.mark.parametrize("more", [(), (None, "to", "subject"), (*[None] * 9, "session")])
def test_a_message_id_of_any_type_has_a_text_and_comes_back_as_it_was(
    encoded_id: bytes, text: str, more: tuple[object, ...]
) -> None:
    content = encoded_id + b"".join(map(encode_value, more))
    encoded = section(HEADER, encode_list([True])) + section(
        PROPERTIES, bytes((0xC0, len(content) + 1, 1 + len(more))) + content
    ) + data()  # fmt: skip
    if len(content) > 250:
        encoded = section(PROPERTIES, b"\xd0" + struct.pack(">II", len(content) + 4, 1 + len(more)) + content) + data()
    one = read(encoded)
    assert one.message_id == (None if text == GIVEN else text)
    assert one.session_id == ("session" if len(more) == 10 else None)
    decoded = stored_message.decode(one.stored)
    assert (decoded.message_id, decoded.session_id, decoded.body) == (text, one.session_id, b"body")
    out = amqp_message.write(one.stored, SHOWN)
    assert (encoded_id if encoded_id != b"\x40" else encode_value(GIVEN)) in out
    assert b"x-opt-message-id-text" not in out


def test_an_id_that_a_message_is_given_is_no_key() -> None:
    one = read(data())
    assert one.message_id is None
    assert stored_message.decode(one.stored).message_id == GIVEN
    assert written(data())[PROPERTIES] == [GIVEN]


def test_even_an_empty_message_is_one() -> None:
    one = read(b"")
    assert stored_message.decode(one.stored).body == b""
    assert DATA not in written(b"")


def test_the_broker_s_annotations_are_its_own() -> None:
    sent = encode_map(
        {
            Symbol("x-opt-sequence-number"): 1,
            Symbol("x-opt-locked-until"): 2,
            Symbol("mine"): 3,
            Symbol("x-opt-lock-token"): 4,
        }
    )
    found = written(section(ANNOTATIONS, sent) + data())
    assert found[ANNOTATIONS] == {
        "x-opt-sequence-number": 7 << 48 | 3,
        "x-opt-enqueue-sequence-number": 7 << 48 | 3,
        "x-opt-enqueued-time": 1_700_000_000_000,
        "x-opt-message-state": 0,
        "x-opt-partition-id": 7,
        "mine": 3,
        "x-opt-locked-until": 1_700_000_060_000,
    }


def test_what_is_not_locked_has_no_token_and_no_lock() -> None:
    found = written(data(), Shown(5, 6, 0, state=2, dead_letter_source="orders"))
    assert DELIVERY_ANNOTATIONS not in found
    assert "x-opt-locked-until" not in found[ANNOTATIONS]
    assert found[ANNOTATIONS]["x-opt-message-state"] == 2
    assert found[ANNOTATIONS]["x-opt-deadletter-source"] == "orders"
    assert found[HEADER] == [None, None, None, None, 0]


def test_keys_schedule_and_time_to_live_are_found() -> None:
    annotations = encode_map(
        {Symbol("x-opt-partition-key"): "key", Symbol("x-opt-scheduled-enqueue-time"): Timestamp(1_800_000_000_000)}
    )
    encoded = section(HEADER, encode_list([None, None, UInt(5000)])) + section(ANNOTATIONS, annotations) + data()
    one = read(encoded)
    assert one == Storable(one.stored, None, None, "key")
    decoded = stored_message.decode(one.stored)
    assert (decoded.time_to_live_ms, decoded.scheduled_enqueue_time_ms) == (5000, 1_800_000_000_000)
    assert decoded.partition_key == "key"
    assert written(encoded)[ANNOTATIONS]["x-opt-partition-key"] == "key"


def test_an_empty_session_id_is_one() -> None:
    assert read(properties("m", *[None] * 9, "") + data()).session_id == ""
    assert read(properties("m", *[None] * 9, None, UInt(1)) + data()).session_id is None


@pytest.mark.parametrize(
    ("encoded", "error"),
    [
        (PARTITION_KEY + properties("m", *[None] * 9, "another"), PartitionKeyConflict),
        (properties("m" * 129), InvalidMessage),
        (properties("m", *[None] * 9, "s" * 129), InvalidMessage),
        (properties(bytes(65)), InvalidMessage),
        (properties(True), InvalidMessage),
        (properties(1.5), InvalidMessage),
        (section(PROPERTIES, b"\xc9\x04\x01\xa1\x01m"), InvalidMessage),
        (section(PROPERTIES, b"\xc0\x04\x00\xa1\x01m"), InvalidMessage),
        (section(ANNOTATIONS, encode_map({Symbol("x-opt-partition-key"): 5})), InvalidMessage),
        (section(ANNOTATIONS, encode_map({Symbol("x-opt-scheduled-enqueue-time"): "soon"})), InvalidMessage),
        (section(HEADER, encode_map({"a": 1})), InvalidMessage),
        (section(HEADER, encode_list([1])), InvalidMessage),
        (section(APPLICATION, encode_map({Symbol("a"): 1})), InvalidMessage),
        (section(APPLICATION, b"\xc1\x05\x02\xa1\x01\xff\x41"), InvalidMessage),
        (section(APPLICATION, b"\xc1\x03\x01\xa1\x00"), InvalidMessage),
        (data() + properties("m"), InvalidMessage),
        (properties("m") + properties("m"), InvalidMessage),
        (section(VALUE, b"\x40") + section(VALUE, b"\x40"), InvalidMessage),
        (data() + section(VALUE, b"\x40"), InvalidMessage),
        (section(0x79, b"\x45"), InvalidMessage),
        (section(0x10, b"\x45"), InvalidMessage),
        (section(DATA, b"\x41"), InvalidMessage),
        (section(FOOTER, encode_map({})) + data(), InvalidMessage),
        (section(VALUE, b"\x00\x44" * 100_000 + b"\x40"), None),
        (section(APPLICATION, b"\xd1" + struct.pack(">II", 2**32 - 1, 2**32 - 2)), InvalidMessage),
        (section(APPLICATION, b"\xc1\xff\x02"), InvalidMessage),
        (b"\x00", InvalidMessage),
        (b"\x00\x53", InvalidMessage),
        (b"\x00\x53\x73", InvalidMessage),
        (b"\x00\x53\x75\xb0\xff\xff\xff\xff", InvalidMessage),
        (properties("m", *[None] * 12, UInt(0)), InvalidMessage),
    ],
)  # fmt: skip
def test_what_no_queue_takes_is_refused(encoded: bytes, error: type[PartitionedQueueError] | None) -> None:
    if error is None:
        read(encoded)
        return
    with pytest.raises(error):
        read(encoded)


def test_descriptors_may_be_written_the_long_way_and_by_name() -> None:
    long = (
        b"\x00\x80" + bytes(7) + b"\x73" + encode_list(["m"]) + b"\x00\xa3\x10amqp:data:binary" + encode_value(b"body")
    )
    one = read(long)
    assert one.stored == read(properties("m") + data()).stored


def test_sizes_are_bounded() -> None:
    with pytest.raises(MessageTooLarge, match="262,144"):
        read(data(bytes(limits.MESSAGE_BYTES_MAX)))
    exactly = data(bytes(limits.MESSAGE_BYTES_MAX - 8))
    assert len(exactly) == limits.MESSAGE_BYTES_MAX
    read(exactly)
    read(data(bytes(limits.MESSAGE_BYTES_MAX)), bytes_most=limits.MESSAGE_BYTES_MAX_CONVENTIONAL)
    with pytest.raises(MessageTooLarge, match="properties"):
        read(section(APPLICATION, encode_map({"a": "x" * limits.HEADER_BYTES_MAX})) + data())


def test_changes_are_applied_and_everything_else_stays_byte_for_byte() -> None:
    timespan = b"\x00\xa3\x16com.microsoft:timespan\x81" + bytes(7) + b"\x05"
    own = b"".join(
        encode_value(name) + value
        for name, value in {"t": timespan, "n": b"\x54\x01", "x": b"\x41", "null": b"\x40"}.items()
    )
    encoded = (
        properties("m")
        + section(APPLICATION, bytes((0xC1, len(own) + 1, 8)) + own)
        + data()
        + section(FOOTER, encode_map({}))
    )
    stored = changed(changed(read(encoded).stored, {"x": None, "n": 5}), {"DeadLetterReason": "told", "gone": None})
    out = amqp_message.write(stored, SHOWN)
    found = sections_in(out)
    assert found[APPLICATION] == {
        "t": Described("com.microsoft:timespan", 5),
        "n": 5,
        "null": None,
        "DeadLetterReason": "told",
    }
    assert timespan in out
    assert found[DATA] == data()
    assert FOOTER in found
    plain = changed(read(properties("m") + data()).stored, {"new": 1})
    assert sections_in(amqp_message.write(plain, SHOWN))[APPLICATION] == {"new": 1}
    emptied = changed(read(section(APPLICATION, encode_map({"a": 1})) + data()).stored, {"a": None})
    assert APPLICATION not in sections_in(amqp_message.write(emptied, SHOWN))


def changed(stored: bytes, changes: dict[str, Any]) -> bytes:
    new = bytearray(stored)
    if not new[1] & stored_message.HAS_CHANGES:
        new[1] |= stored_message.HAS_CHANGES
        struct.pack_into("<I", new, 56, len(stored))
    return bytes(new) + stored_message.encode_changes(changes)


def test_a_change_keeps_the_type_that_it_came_with() -> None:
    stored = changed(
        read(properties("m") + data()).stored, {"int": Encoded(b"\x71\x00\x00\x00\x01"), "span": Encoded(TIMESPAN)}
    )
    out = amqp_message.write(stored, SHOWN)
    assert b"\xa1\x03int\x71\x00\x00\x00\x01" in out
    assert b"\xa1\x04span" + TIMESPAN in out


def test_a_dead_letter_tells_where_it_was_and_how_often_it_was_delivered() -> None:
    stored = bytearray(read(data()).stored)
    struct.pack_into("<I", stored, 28, 10)
    struct.pack_into("<q", stored, 48, 99)
    found = sections_in(amqp_message.write(bytes(stored), SHOWN))
    assert found[HEADER][4] == 12
    assert found[ANNOTATIONS]["x-opt-enqueue-sequence-number"] == 7 << 48 | 99


def test_write_refuses_what_is_no_stored_message() -> None:
    good = read(properties("m") + data()).stored
    for bad in (b"", bytes(64), good[:64], bytes((9,)) + good[1:]):
        with pytest.raises(InvalidMessage):
            amqp_message.write(bad, SHOWN)


# ---- batches


def envelope(*encoded: bytes, front: bytes = b"") -> bytes:
    return front + b"".join(map(data, encoded))


def read_batch(encoded: bytes) -> list[Storable]:
    numbers = itertools.count(1)
    return amqp_message.read_batch(encoded, new_message_id=lambda: f"id-{next(numbers)}")


def test_a_batch_is_its_messages() -> None:
    first, second = properties("a") + data(b"1"), data(b"2")
    assert amqp_message.batch(envelope(first, second)) == [first, second]
    both = read_batch(envelope(first, second))
    assert [one.message_id for one in both] == ["a", None]
    assert [stored_message.decode(one.stored).message_id for one in both] == ["a", "id-1"]


def test_messages_without_a_key_have_that_of_the_envelope() -> None:
    front = section(ANNOTATIONS, encode_map({Symbol("x-opt-partition-key"): "key"})) + properties("a")
    keyed = section(ANNOTATIONS, encode_map({Symbol("x-opt-partition-key"): "own"})) + data()
    in_session = properties("s", *[None] * 9, "session") + data()
    annotated = section(ANNOTATIONS, encode_map({Symbol("mine"): 1})) + data(b"3")
    found = read_batch(envelope(data(b"1"), keyed, in_session, annotated, front=front))
    assert [one.partition_key for one in found] == ["key", "own", None, "key"]
    assert stored_message.decode(found[3].stored).partition_key == "key"
    assert sections_in(amqp_message.write(found[3].stored, SHOWN))[ANNOTATIONS]["mine"] == 1


def test_what_is_no_batch_is_refused() -> None:
    for bad in (b"", properties("a"), section(VALUE, b"\x40"), b"\x00\x53\x75\x41", envelope(b"\x00\x53")):
        with pytest.raises(InvalidMessage):
            read_batch(bad)
    with pytest.raises(InvalidMessage, match="4,000"):
        amqp_message.batch(envelope(*[b""] * 4001))
