"""transfer, disposition and flow are read by hand exactly as the codec would read them (§2.7.4 to §2.7.6)."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partitionedqueue_gateway.amqp.engine import framing, outcomes
from partitionedqueue_gateway.amqp.engine.decoding import DecodeError, decode_at
from partitionedqueue_gateway.amqp.engine.encoding import encode
from partitionedqueue_gateway.amqp.engine.frequent_reading import Flow, read_disposition, read_flow, read_transfer
from partitionedqueue_gateway.amqp.engine.frequent_writing import disposition, flow, further_transfer, transfer, uint
from partitionedqueue_gateway.amqp.engine.performatives import AmqpError
from partitionedqueue_gateway.amqp.engine.values import UByte, UInt

_UINTS = st.integers(0, 2**32 - 1) | st.integers(0, 300)
_TAGS = st.binary(max_size=32)
_STATES = st.sampled_from(
    [
        outcomes.ACCEPTED,
        b"\x00\x53\x24\xc0\x01\x00",
        b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x26\x45",
        b"\x00\xa3\x12amqp:rejected:list\x45",
        outcomes.modified(outcomes.Modified(annotations={"a": 1})),
        outcomes.rejected(AmqpError("amqp:not-found", "d" * 300)),
    ]
)
_CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on machines that do much else


def _uint_forms(value: int) -> st.SearchStrategy[bytes]:
    """Every way in which a uint may be written."""
    forms = [b"\x70" + value.to_bytes(4)]
    if value < 256:
        forms.append(bytes((0x52, value)))
    return st.sampled_from([*forms, b"\x43"] if value == 0 else forms)


_UINT = _UINTS.flatmap(lambda value: st.tuples(st.just(value), _uint_forms(value)))
_UINT_OR_NULL = _UINT | st.just((None, b"\x40"))
_FLAG = st.sampled_from(
    [(False, b"\x42"), (True, b"\x41"), (False, b"\x40"), (True, b"\x56\x01"), (False, b"\x56\x00")]
)
_TAG = _TAGS.flatmap(
    lambda tag: st.tuples(
        st.just(tag), st.sampled_from([bytes((0xA0, len(tag))) + tag, b"\xb0" + len(tag).to_bytes(4) + tag])
    )
)
_STATE = _STATES.map(lambda state: (state, state)) | st.just((b"", b"\x40"))
_REST = st.binary(max_size=50)


def _listed(fields: list[tuple[Any, bytes]], *, wide: bool) -> bytes:
    content = b"".join(encoded for _, encoded in fields)
    if wide or len(content) > 254:
        return b"\xd0" + (len(content) + 4).to_bytes(4) + len(fields).to_bytes(4) + content
    return bytes((0xC0, len(content) + 1, len(fields))) + content


@_CALM
@given(st.data(), st.booleans(), _REST, st.integers(1, 11))
def test_a_transfer_is_read_in_all_its_forms(data: st.DataObject, wide: bool, rest: bytes, count: int) -> None:
    mode = st.sampled_from([(0, b"\x50\x00"), (1, encode(UByte(1))), (None, b"\x40")])
    kinds = [
        _UINT,
        _UINT_OR_NULL,
        _TAG | st.just((None, b"\x40")),
        _UINT_OR_NULL,
        _FLAG,
        _FLAG,
        mode,
        _STATE,
        _FLAG,
        _FLAG,
        _FLAG,
    ]
    fields = [data.draw(kind) for kind in kinds[:count]]  # the rest is left out
    encoded = _listed(fields, wide=wide)
    read = read_transfer(b"before" + encoded + rest, 6, 6 + len(encoded) + len(rest))
    values: list[Any] = [value for value, _ in fields] + [None] * (11 - count)
    assert read == (
        *values[:3],
        values[3] or 0,
        bool(values[4]),
        bool(values[5]),
        values[7] or b"",
        bool(values[9]),
        6 + len(encoded),
    )
    assert isinstance(decode_at(encoded, 0)[0], list)


@_CALM
@given(st.data(), st.booleans(), st.integers(2, 6))
def test_a_disposition_is_read_in_all_its_forms(data: st.DataObject, wide: bool, count: int) -> None:
    kinds = [_FLAG, _UINT, _UINT_OR_NULL, _FLAG, _STATE, _FLAG]
    fields = [data.draw(kind) for kind in kinds[:count]]  # the rest is left out
    encoded = _listed(fields, wide=wide)
    values: list[Any] = [value for value, _ in fields] + [None] * (6 - count)
    role, first, last, settled, state, _ = values
    state = state or b""
    assert read_disposition(encoded, 0, len(encoded)) == (
        *(role, first, first if last is None else last, bool(settled)),
        *(outcomes.code_of(state), state),
    )


@_CALM
@given(st.data(), st.booleans(), st.integers(4, 11))
def test_a_flow_is_read_in_all_its_forms(data: st.DataObject, wide: bool, count: int) -> None:
    properties: st.SearchStrategy[Any] = st.sampled_from([(None, b"\x40"), ({}, encode({"a": "b"}))])
    kinds = [_UINT_OR_NULL, _UINT, _UINT, _UINT, *[_UINT_OR_NULL] * 4, _FLAG, _FLAG, properties]
    fields = [data.draw(kind) for kind in kinds[:count]]  # the rest is left out
    encoded = _listed(fields, wide=wide)
    values: list[Any] = ([value for value, _ in fields] + [None] * 11)[:10]
    assert read_flow(encoded, 0, len(encoded)) == (*values[:8], bool(values[8]), bool(values[9]))


@pytest.mark.parametrize("read", [read_transfer, read_disposition, read_flow])
@_CALM
@given(data=st.binary(max_size=60), more=st.binary(max_size=20))
def test_nothing_is_read_beyond_the_frame(read: Any, data: bytes, more: bytes) -> None:
    """With a frame behind it or without, the same is read, or refused."""
    results = []
    for whole in (data, data + more):
        try:
            results.append(read(whole, 0, len(data)))
        except DecodeError:
            results.append(None)
    assert results[0] == results[1]
    if results[0] is not None:
        value, end = decode_at(data, 0)
        assert isinstance(value, list)
        assert end <= len(data)


@_CALM
@given(st.tuples(_UINTS, _UINTS, _TAGS, _UINTS), st.booleans(), st.booleans(), st.integers(0, 65535))
def test_a_transfer_is_written_as_it_is_read(
    fields: tuple[int, int, bytes, int], settled: bool, more: bool, channel: int
) -> None:
    handle, delivery_id, tag, message_format = fields
    frame = transfer(channel, uint(handle), delivery_id, tag, uint(message_format), settled, more, 7)
    assert framing.head_of(frame, 0) == (len(frame) + 7, 2, framing.AMQP_FRAME, channel)
    assert frame[8:11] == b"\x00\x53\x14"
    told = (handle, delivery_id, tag, message_format, settled, more, b"", False, len(frame))
    assert read_transfer(frame + b"payload", 11, len(frame) + 7) == told
    further = further_transfer(channel, uint(handle), delivery_id, settled, more, 7)
    assert framing.head_of(further, 0)[0] == len(further) + 7
    assert read_transfer(further, 11, len(further)) == (
        *(handle, delivery_id, None, 0, settled, more, b"", False, len(further)),
    )


@_CALM
@given(st.booleans(), _UINTS, _UINTS, st.booleans(), _STATES | st.just(b""))
def test_a_disposition_is_written_as_it_is_read(
    by_receiver: bool, first: int, last: int, settled: bool, state: bytes
) -> None:
    frame = disposition(3, by_receiver, first, last, settled, state)
    assert framing.head_of(frame, 0) == (len(frame), 2, framing.AMQP_FRAME, 3)
    assert read_disposition(frame, 11, len(frame)) == (
        *(by_receiver, first, last, settled),
        *(outcomes.code_of(state), state),
    )


@_CALM
@given(st.data())
def test_a_flow_is_written_as_it_is_read(data: st.DataObject) -> None:
    some = st.none() | _UINTS
    kinds = [some, _UINTS, _UINTS, _UINTS, some, some, some, some, st.booleans(), st.booleans()]
    told = Flow._make(data.draw(kind) for kind in kinds)
    frame = flow(3, told)
    assert framing.head_of(frame, 0) == (len(frame), 2, framing.AMQP_FRAME, 3)
    assert read_flow(frame, 11, len(frame)) == told


def test_numbers_are_written_as_short_as_they_are() -> None:
    assert [uint(value) for value in (0, 1, 255, 256)] == [encode(UInt(value)) for value in (0, 1, 255, 256)]
