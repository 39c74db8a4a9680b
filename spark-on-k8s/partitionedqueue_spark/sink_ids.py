"""MessageIds for rows that have none of their own: the same for the same row when Spark writes it again.

A row is known by its content and not by its place: after a shuffle a replayed task may have its rows in another order,
and a place would then stand for another row, whose message a queue that detects duplicates would drop. Rows of one
task that are alike are told apart by counting them, which any order comes to the same. A row that Spark computes
differently the second time (rand(), current_timestamp() in a retried task) is another row: sent again, never dropped.
"""

from hashlib import blake2b
from typing import Final

from partitionedqueue.model.errors import PartitionedQueueError

ROWS_MAX: Final = 20_000_000  # of one task; each takes some 70 bytes here while the task runs
_ID_BYTES: Final = 16


class TooManyRows(PartitionedQueueError):
    """One task has more rows than are kept apart."""


class DerivedIds:
    """The MessageIds of one task. `write` names the write or the query's batch, `task` the Spark partition."""

    def __init__(self, write: str, task: int, rows_max: int = ROWS_MAX) -> None:
        self._hash = blake2b(f"{len(write)}:{write}:{task}:".encode(), digest_size=_ID_BYTES)
        self._seen: set[int] = set()
        self._alike: dict[int, int] = {}
        self._rows_max = rows_max

    def next(self, body: bytes, others: tuple[object, ...]) -> str:
        """The id of the next row: `others` is what it has beside its body. Raises TooManyRows."""
        content = self._hash.copy()
        content.update(b"%d:" % len(body))
        content.update(body)
        content.update(repr(others).encode())
        known = int.from_bytes(content.digest()[:8])
        if known not in self._seen:
            if len(self._seen) >= self._rows_max:
                raise TooManyRows(
                    f"one task writes more than {self._rows_max:,} rows, and message ids are derived for no more: make "
                    "more tasks of it (repartition), give a column message_id, or set option messageId to none"
                )
            self._seen.add(known)
            return content.hexdigest()
        count = self._alike.get(known, 0) + 1
        self._alike[known] = count
        content.update(b"#%d" % count)
        return content.hexdigest()
