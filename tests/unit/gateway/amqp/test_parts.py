"""Performatives, outcomes, termini and the sections of messages."""

from typing import Any

import pytest

from partitionedqueue_gateway.amqp.engine import outcomes, performatives, sections, terminus
from partitionedqueue_gateway.amqp.engine.decoding import DecodeError, decode
from partitionedqueue_gateway.amqp.engine.encoding import encode
from partitionedqueue_gateway.amqp.engine.outcomes import (
    Accepted,
    Modified,
    Received,
    Rejected,
    Released,
    Transactional,
)
from partitionedqueue_gateway.amqp.engine.performatives import (
    AmqpError,
    Attach,
    Begin,
    Close,
    Detach,
    End,
    Open,
    SaslInitFrame,
    SaslMechanisms,
    SaslOutcomeFrame,
)
from partitionedqueue_gateway.amqp.engine.sections import Section
from partitionedqueue_gateway.amqp.engine.values import Array, Described, Symbol, Timestamp, UInt, ULong

_ERROR = AmqpError("amqp:not-found", "no such queue", {Symbol("k"): "v"})


def _read(body: bytes) -> Any:
    code, at = performatives.code_at(body, 0)
    performative, end = performatives.read(code, body, at)
    assert end == len(body)
    return performative


@pytest.mark.parametrize(
    "performative",
    [
        Open("container"),
        Open("container", "host", 512, 7, 1000, properties={Symbol("product"): "x"}),
        Begin(None, 1, 2, 3),
        Begin(4, 1, 2, 3, 255),
        Attach("link", 1, True),
        Attach("link", 0, False, 1, 0, terminus.source("a"), terminus.target("b"), {}, False, 5, 1 << 40),
        Detach(1, closed=True, error=_ERROR),
        End(_ERROR),
        Close(),
        SaslMechanisms(["ANONYMOUS", "PLAIN"]),
        SaslInitFrame("PLAIN", b"\0user\0pass", "host"),
        SaslOutcomeFrame(1),
    ],
)
def test_performatives_are_read_as_they_are_written(performative: Any) -> None:
    assert _read(performatives.write(performative)) == performative


def test_descriptors_may_be_wide_or_names() -> None:
    fields = encode(["container"])
    assert _read(b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x10" + fields) == Open("container")
    assert _read(b"\x00" + encode(Symbol("amqp:open:list")) + fields) == Open("container")


def test_fields_may_be_left_out_or_be_null() -> None:
    assert _read(b"\x00\x53\x11" + encode([None, UInt(0), UInt(1), UInt(2)])) == Begin(None, 0, 1, 2)
    assert _read(b"\x00\x53\x10" + encode(["c", None, None, None, None])) == Open("c")


def test_numbers_may_be_wider_than_they_need() -> None:
    assert _read(b"\x00\x53\x11" + encode([ULong(3), ULong(0), 1, 2])) == Begin(3, 0, 1, 2)


def test_one_mechanism_may_stand_alone() -> None:
    assert _read(b"\x00\x53\x40" + encode([Symbol("ANONYMOUS")])) == SaslMechanisms(["ANONYMOUS"])


@pytest.mark.parametrize(
    ("code", "fields", "words"),
    [
        (0x10, [], "lacks container_id"),
        (0x10, [None], "lacks container_id"),
        (0x10, [5], "container_id cannot be int"),
        (0x10, ["c", None, -1], "max_frame_size"),
        (0x10, ["c", None, 2**32], "max_frame_size"),
        (0x10, ["c", None, True], "max_frame_size"),
        (0x10, ["c"] + [None] * 10, "at most 10 fields"),
        (0x10, {"c": 1}, "no list"),
        (0x11, [None, UInt(0)], "lacks incoming_window"),
        (0x12, ["l", UInt(0), True, None, None, "source"], "source cannot be str"),
        (0x16, [UInt(0), True, Described(ULong(0x1D), [])], "an error"),
        (0x16, [UInt(0), True, Described(ULong(0x1E), [Symbol("c")])], "an error"),
        (0x40, [Array(0x81, [1])], "mechanisms"),
        (0x19, [], "unknown performative"),
    ],
)
def test_fields_that_cannot_be_are_refused_with_words(code: int, fields: Any, words: str) -> None:
    with pytest.raises(DecodeError, match=words):
        performatives.read(code, encode(fields), 0)


@pytest.mark.parametrize(
    ("state", "outcome", "code"),
    [
        (b"", None, 0),
        (outcomes.ACCEPTED, Accepted(), outcomes.ACCEPTED_CODE),
        (outcomes.REJECTED, Rejected(), outcomes.REJECTED_CODE),
        (outcomes.RELEASED, Released(), outcomes.RELEASED_CODE),
        (outcomes.rejected(_ERROR), Rejected(_ERROR), outcomes.REJECTED_CODE),
        (outcomes.modified(Modified()), Modified(), outcomes.MODIFIED_CODE),
        (
            outcomes.modified(Modified(True, True, {Symbol("a"): 1})),
            Modified(True, True, {Symbol("a"): 1}),
            outcomes.MODIFIED_CODE,
        ),
        (encode(Described(Symbol("amqp:accepted:list"), [])), Accepted(), outcomes.ACCEPTED_CODE),
        (encode(Described(ULong(0x27), [None, None])), Modified(), outcomes.MODIFIED_CODE),
        (encode(Described(ULong(0x23), [UInt(1), ULong(2)])), Received(1, 2), 0x23),
        (
            encode(Described(ULong(0x34), [b"txn", Described(ULong(0x24), [])])),
            Transactional(b"txn", Accepted()),
            outcomes.TRANSACTIONAL_CODE,
        ),
        (encode(Described(ULong(0x34), [b"txn"])), Transactional(b"txn"), outcomes.TRANSACTIONAL_CODE),
    ],
)
def test_outcomes_are_told_by_their_descriptor_and_read_as_values(state: bytes, outcome: Any, code: int) -> None:
    assert outcomes.read(state) == outcome
    assert outcomes.code_of(state) == code


@pytest.mark.parametrize(
    "value",
    [
        5,
        Described(ULong(0x99), []),
        Described(ULong(0x24), 5),
        Described(ULong(0x25), ["no error"]),
        Described(ULong(0x27), ["yes"]),
        Described(ULong(0x34), []),
    ],
)
def test_states_that_nobody_knows_are_refused(value: Any) -> None:
    with pytest.raises(DecodeError):
        outcomes.read(encode(value))


def test_termini_are_read_leniently() -> None:
    assert terminus.address_of(None) is None
    assert terminus.address_of(Described(ULong(0x28), [])) is None
    assert terminus.address_of(Described(ULong(0x28), [5])) is None
    assert terminus.address_of(Described(ULong(0x28), "no list")) is None
    assert terminus.address_of(terminus.target("queue")) == "queue"
    assert terminus.filters_of(None) == {}
    assert terminus.filters_of(terminus.source("queue", filters=terminus.session_filter(None))) == {
        "com.microsoft:session-filter": None
    }
    assert terminus.is_coordinator(Described(ULong(0x30), []))
    assert terminus.is_coordinator(Described(Symbol("amqp:coordinator:list"), []))
    assert not terminus.is_coordinator(terminus.target("queue"))
    assert not terminus.is_coordinator(None)


def test_a_source_takes_other_filters_and_keeps_the_rest() -> None:
    source = terminus.source("queue")
    assert terminus.with_filters(source, {"a": 1}) == terminus.source("queue", filters={"a": 1})
    long = Described(ULong(0x28), ["queue", UInt(2), None, None, None, None, None, {"b": 2}, "more"])
    assert terminus.with_filters(long, {}).value == ["queue", UInt(2), None, None, None, None, None, {}, "more"]


def test_a_message_is_split_into_its_sections() -> None:
    message_id = ULong(5)
    message = b"".join(
        (
            sections.encode(sections.HEADER, []),
            sections.encode(sections.PROPERTIES, [message_id, None, "to"]),
            sections.encode(sections.APPLICATION_PROPERTIES, {"a": Timestamp(1)}),
            b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x75" + encode(b"one"),
            b"\x00" + encode(Symbol("amqp:data:binary")) + encode(b"two" * 200),
        )
    )
    found = sections.split(message)
    assert [section.code for section in found] == [0x70, 0x73, 0x74, 0x75, 0x75]
    assert found[2].value == {"a": Timestamp(1)}
    assert found[4] == Section(sections.DATA, encode(b"two" * 200))
    assert list(sections.slices(found[1].encoded)) == [encode(message_id), b"\x40", encode("to")]
    assert list(sections.slices(b"\x45")) == []
    wide = ["x" * 300]
    assert [decode(item) for item in sections.slices(encode(wide))] == wide


@pytest.mark.parametrize(
    "message",
    [
        b"\x40",
        b"\x00",
        b"\x00\x53",
        b"\x00\x53\x75",
        b"\x00\x53\x75\xa0\x05",
        b"\x00\x53\x6f\x45",
        b"\x00\x53\x79\x45",
        b"\x00\xa3\x01x\x45",
        b"\x00\x53\x73\x45\x00\x53\x70\x45",  # out of order
    ],
)
def test_what_is_no_message_is_refused(message: bytes) -> None:
    with pytest.raises(DecodeError):
        sections.split(message)


def test_only_lists_have_slices() -> None:
    with pytest.raises(DecodeError):
        list(sections.slices(b"\x40"))
