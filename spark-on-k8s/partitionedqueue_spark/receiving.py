"""Receive-and-delete: what a task receives is gone at once, whether Spark keeps the task's rows or not."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from partitionedqueue.broker import calls
from partitionedqueue.broker.replies import Run
from partitionedqueue.model import limits
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.stored_message import enqueued_times
from partitionedqueue_spark.chunk import Chunk
from partitionedqueue_spark.fetching import broker_at
from partitionedqueue_spark.malformed import rows_of
from partitionedqueue_spark.options import SourceOptions
from partitionedqueue_spark.partition import PartitionUnreadable, ReceivedPartition, unreadable

_DELETE: Final = 0  # a lock of no time


def received(options: SourceOptions, task: ReceivedPartition) -> Iterator[pa.RecordBatch]:
    """The rows of a task that receives and deletes."""
    left = task.most
    try:
        with broker_at(task.address, options) as broker:
            while left > 0:
                most = min(left, limits.RECEIVE_MESSAGES_MAX)
                reply = broker.call(calls.receive(options.keys, most=most, lock_ms=_DELETE))
                if not reply.runs and not 0 <= reply.ask_again_ms <= reply.now_ms:
                    return
                left -= sum(len(run.messages) for run in reply.runs)
                if reply.runs:
                    yield from rows_of(task.partition, _chunk(reply.runs), options.shape, options.on_malformed)
    except PartitionUnreadable:
        raise
    except PartitionedQueueError as error:
        raise unreadable(task.partition, error) from error


def _chunk(runs: list[Run]) -> Chunk:
    counts = [len(run.messages) for run in runs]
    times = [enqueued_times(run.first, count, run.marks) for run, count in zip(runs, counts, strict=True)]
    return Chunk(
        np.concatenate([np.arange(run.first, run.first + n) for run, n in zip(runs, counts, strict=True)]),
        np.array([time for several in times for time in several], dtype=np.int64),
        np.repeat(np.array([run.delivery_count for run in runs], dtype=np.int64), counts),
        [message for run in runs for message in run.messages],
    )
