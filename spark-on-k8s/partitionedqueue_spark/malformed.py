"""What becomes of stored messages that cannot be read, damaged ones or those of a later version: option onMalformed."""

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa

from partitionedqueue.model import limits
from partitionedqueue.model.errors import InvalidMessage
from partitionedqueue_spark.chunk import Chunk
from partitionedqueue_spark.partition import PartitionUnreadable
from partitionedqueue_spark.rows import Shape, record_batch, unreadable_batch

FAIL: Final = "fail"
PERMISSIVE: Final = "permissive"
SKIP: Final = "skip"
CHOICES: Final = (FAIL, PERMISSIVE, SKIP)


def rows_of(partition: int, chunk: Chunk, shape: Shape, on_malformed: str) -> Iterator[pa.RecordBatch]:
    """The rows of a chunk. Raises PartitionUnreadable for a message that cannot be read, if such fail the query."""
    try:
        yield record_batch(partition, chunk, shape)
    except InvalidMessage as error:
        if on_malformed == FAIL:
            raise _told(partition, chunk, shape, error) from error
        yield from _mended(partition, chunk, shape, on_malformed)


def _mended(partition: int, chunk: Chunk, shape: Shape, on_malformed: str) -> Iterator[pa.RecordBatch]:
    """Halves, and halves of them, until what cannot be read stands alone."""
    try:
        yield record_batch(partition, chunk, shape)
    except InvalidMessage:
        if len(chunk) == 1:
            if on_malformed == PERMISSIVE:
                yield unreadable_batch(partition, chunk, shape)
            return
        half = len(chunk) // 2
        for part in (chunk.part(0, half), chunk.part(half, len(chunk))):
            yield from _mended(partition, part, shape, on_malformed)


def _told(partition: int, chunk: Chunk, shape: Shape, error: InvalidMessage) -> PartitionUnreadable:
    first = _first(lambda part: record_batch(partition, part, shape), chunk)
    number = int(first.sequences[0]) | partition << limits.SEQUENCE_BITS
    return PartitionUnreadable(
        f"partition {partition}: message {number} cannot be read: {error}; with option onMalformed set to permissive "
        "its row has the stored bytes as body and nulls, with skip there is no row"
    )


def _first(read: Callable[[Chunk], object], chunk: Chunk) -> Chunk:
    """The first message that cannot be read, where there is one."""
    while len(chunk) > 1:
        half = len(chunk) // 2
        try:
            read(chunk.part(0, half))
            chunk = chunk.part(half, len(chunk))
        except InvalidMessage:
            chunk = chunk.part(0, half)
    return chunk
