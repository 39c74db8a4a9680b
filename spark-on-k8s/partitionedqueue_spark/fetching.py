"""How a task reads bodies: native commands only, a pipeline of whole segments a round, one record batch a round."""

import functools
import gc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np

from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys, place_of
from partitionedqueue.model import limits
from partitionedqueue.model.placement import BrokerAddress
from partitionedqueue_spark.connection import Connection
from partitionedqueue_spark.rows import Longs

BATCH_BYTES: Final = 16 * 1024 * 1024  # of one record batch, aimed at by the sizes of the round before
_GONE_HEADER_BYTES: Final = 14  # u48 bytes gone, u16 count gone, u48 bytes blanked; then one bit a message


@dataclass(frozen=True, slots=True)
class Span:
    """Messages first..first+count-1, all of one segment, delivered `deliveries` times."""

    first: int
    count: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Messages as a round brought them, column by column."""

    sequences: Longs
    times_ms: Longs
    deliveries: Longs
    stored: list[bytes]


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


def fetch(
    broker: BlockingBroker, keys: QueueKeys, wanted: Iterable[Span], fetch_size: int, *, browsing: bool = False
) -> Iterator[Chunk]:
    """Fetch spans in rounds of up to `fetch_size` messages, fewer where they are large.

    Browsing, what has left the queue is left out. Otherwise a message that is not there shortens the chunk: the caller
    counts.
    """
    source = iter(wanted)
    segments_most = max(1, fetch_size // limits.SEGMENT_MESSAGES)
    segments = 1
    while spans_now := list(islice(source, segments)):
        chunk = _round(broker, keys, spans_now, browsing=browsing)
        if chunk.stored:
            each = max(1, sum(map(len, chunk.stored)) // len(chunk.stored))
            segments = max(1, min(segments_most, BATCH_BYTES // each // limits.SEGMENT_MESSAGES))
            yield chunk


def _round(broker: BlockingBroker, keys: QueueKeys, wanted: Sequence[Span], *, browsing: bool) -> Chunk:
    commands: list[tuple[str | int, ...]] = []
    for span in wanted:
        segment, place = place_of(span.first)
        # What has gone is asked for before the bodies: a segment that leaves in between then comes back empty.
        if browsing:
            commands.append(("HGET", keys.state, f"g{segment}"))
        commands.append(("GET", keys.times(segment)))
        commands.append(("LRANGE", keys.segment(segment), place, place + span.count - 1))
    replies = iter(broker.raw(*commands, repeatable=True))
    sequences, times, deliveries, stored = [], [], [], []
    for span in wanted:
        gone = next(replies) if browsing else None
        marks, bodies = next(replies), next(replies)
        if not bodies:
            continue
        numbers = np.arange(span.first, span.first + len(bodies), dtype=np.int64)
        moments = _times_ms(numbers, marks)
        there = np.fromiter(map(len, bodies), dtype=np.int64, count=len(bodies)) > 0  # what has gone may be blanked
        if gone is not None:
            there &= ~_gone(gone)[(numbers - 1) % limits.SEGMENT_MESSAGES]
        if not bool(there.all()):
            kept = np.flatnonzero(there)
            numbers, moments, bodies = numbers[kept], moments[kept], [bodies[n] for n in kept.tolist()]
        sequences.append(numbers)
        times.append(moments)
        deliveries.append(np.full(len(bodies), span.deliveries, dtype=np.int64))
        stored += bodies
    return Chunk(_joined(sequences), _joined(times), _joined(deliveries), stored)


def _joined(parts: list[Longs]) -> Longs:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _times_ms(sequences: Longs, marks: bytes | None) -> Longs:
    """`stored_message.enqueued_times` for a whole segment at once."""
    parsed = np.frombuffer(marks or b"\0" * 8, dtype="<u8")
    indexes, times = (parsed & 0xFFFF).astype(np.int64), (parsed >> 16).astype(np.int64)
    places = (sequences - 1) % limits.SEGMENT_MESSAGES
    found: Longs = times[np.maximum(np.searchsorted(indexes, places, side="right") - 1, 0)]
    return found


def _gone(record: bytes) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    bits = np.frombuffer(record, dtype=np.uint8, offset=_GONE_HEADER_BYTES)
    return np.unpackbits(bits, bitorder="little").astype(np.bool_)
