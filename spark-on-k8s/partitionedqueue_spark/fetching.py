"""How a task reads bodies: native commands only, a pipeline of whole segments a round, one record batch a round."""

import functools
import gc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys, place_of
from partitionedqueue.model import limits
from partitionedqueue.model.placement import BrokerAddress
from partitionedqueue_spark.chunk import Chunk, Longs
from partitionedqueue_spark.connection import Connection
from partitionedqueue_spark.pushdown import Wanted

BATCH_BYTES: Final = 16 * 1024 * 1024  # of one record batch, aimed at by the sizes of the round before
_GONE: Final = ord("-")  # pq_states' letter for what is not there


@dataclass(frozen=True, slots=True)
class Span:
    """Messages first..first+count-1, all of one segment.

    Claimed ones were delivered `deliveries` times. Of browsed ones `states` has a letter each, as pq_states gives them,
    `-` for what is not wanted, and `each_deliveries` a u16 each, or nothing.
    """

    first: int
    count: int
    deliveries: int = 0
    states: bytes = b""
    each_deliveries: bytes = b""


@functools.cache
def keep_modules_out_of_collections() -> None:
    """Spark's worker runs a full garbage collection after every task: 45 ms with pyarrow and pandas loaded, next to
    nothing once what is loaded has been set aside.
    """
    gc.collect()
    gc.freeze()


def broker_at(address: BrokerAddress, options: Connection) -> BlockingBroker:
    """A client of one broker, which waits for it while it restarts; nothing is sent yet."""
    return BlockingBroker(
        address,
        patience_s=options.broker_timeout_ms / 1000,
        username=options.username,
        password=options.password,
    )


def spans(first: int, count: int, deliveries: int) -> Iterator[Span]:
    """A range of messages, cut at the bounds of segments."""
    while count > 0:
        _, place = place_of(first)
        part = min(count, limits.SEGMENT_MESSAGES - place)
        yield Span(first, part, deliveries)
        first, count = first + part, count - part


def browsed(broker: BlockingBroker, keys: QueueKeys, last: int, wanted: Wanted) -> Iterator[Span]:
    """The messages of a partition up to `last` that are wanted, as they are now: a span for each segment."""
    for first, stop in wanted.ranges(last):
        at = first
        while at:
            found = broker.call(calls.states(keys, at, stop))
            for stretch in found.stretches:
                states = wanted.narrowed(stretch.first, stretch.states)
                inside = states.strip(b"-")
                if inside:
                    begin = len(states) - len(states.lstrip(b"-"))
                    each = stretch.deliveries[2 * begin : 2 * (begin + len(inside))]
                    yield Span(stretch.first + begin, len(inside), 0, inside, each)
            at = found.next


def fetch(
    broker: BlockingBroker, keys: QueueKeys, wanted: Iterable[Span], fetch_size: int, *, with_messages: bool = True
) -> Iterator[Chunk]:
    """Fetch spans in rounds of up to `fetch_size` messages, fewer where they are large.

    What is not there any more shortens the chunk: whoever has claimed it counts. Without messages a chunk says only
    which there are, and when they came.
    """
    source = iter(wanted)
    segments_most = max(1, fetch_size // limits.SEGMENT_MESSAGES)
    segments = 1
    while spans_now := list(islice(source, segments)):
        chunk = _round(broker, keys, spans_now, with_messages=with_messages)
        if len(chunk):
            each = max(1, sum(map(len, chunk.stored)) // len(chunk))
            segments = max(1, min(segments_most, BATCH_BYTES // each // limits.SEGMENT_MESSAGES))
            yield chunk


def _round(broker: BlockingBroker, keys: QueueKeys, wanted: Sequence[Span], *, with_messages: bool) -> Chunk:
    commands: list[tuple[str | int, ...]] = []
    for span in wanted:
        segment, place = place_of(span.first)
        commands.append(("GET", keys.times(segment)))
        if with_messages:
            commands.append(("LRANGE", keys.segment(segment), place, place + span.count - 1))
        else:
            commands.append(("LLEN", keys.segment(segment)))
    replies = iter(broker.raw(*commands, repeatable=True))
    sequences, times, deliveries, states, stored = [], [], [], [], []
    for span in wanted:
        marks, found = next(replies), next(replies)
        bodies: list[bytes] = found if with_messages else []
        count = len(bodies) if with_messages else min(span.count, found - place_of(span.first)[1])
        if count <= 0:
            continue
        there = np.ones(count, dtype=np.bool_)
        if with_messages:
            there = np.fromiter(map(len, bodies), dtype=np.int64, count=count) > 0  # what has gone may be blanked
        letters = np.frombuffer(span.states or b"a" * count, dtype=np.uint8, count=count)
        if span.states:
            there &= letters != _GONE
        numbers, delivered = np.arange(span.first, span.first + count, dtype=np.int64), _deliveries(span, count)
        moments = _times_ms(numbers, marks)
        if not bool(there.all()):
            kept = np.flatnonzero(there)
            numbers, moments, delivered = numbers[kept], moments[kept], delivered[kept]
            bodies = [bodies[n] for n in kept.tolist()] if with_messages else []
            letters = letters[kept]
        sequences.append(numbers)
        times.append(moments)
        deliveries.append(delivered)
        if span.states:
            states.append(letters)
        stored += bodies
    return Chunk(
        _joined(sequences), _joined(times), _joined(deliveries), stored, np.concatenate(states) if states else None
    )


def _deliveries(span: Span, count: int) -> Longs:
    if span.each_deliveries:
        return np.frombuffer(span.each_deliveries, dtype="<u2", count=count).astype(np.int64)
    return np.full(count, span.deliveries, dtype=np.int64)


def _joined(parts: list[Longs]) -> Longs:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _times_ms(sequences: Longs, marks: bytes | None) -> Longs:
    """`stored_message.enqueued_times` for a whole segment at once."""
    parsed = np.frombuffer(marks or b"\0" * 8, dtype="<u8")
    indexes, times = (parsed & 0xFFFF).astype(np.int64), (parsed >> 16).astype(np.int64)
    places = (sequences - 1) % limits.SEGMENT_MESSAGES
    found: Longs = times[np.maximum(np.searchsorted(indexes, places, side="right") - 1, 0)]
    return found
